"""What the corpus keeps of a program, and how two records of it differ.

Texts are canonical before they are hashed: comments and sources are left out, and names of values
and nodes are numbered in the order of the graph. So a renaming changes no record.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from compiling import compiled

from pycompiler.errors import PycompilerError
from pycompiler.graph.graph import MNGraph
from pycompiler.graph.text import parse_graph, print_graph
from pycompiler.pfvm.optimise import optimise
from pycompiler.report.codegen_dir import DUMPS

from .programs import PROGRAMS

RECORDS = Path(__file__).parent / "records.json"
#: A name within text, such as the operand of a function in an attribute.
_NAME = re.compile(r"[A-Za-z_][\w./$-]*")


@dataclass(frozen=True)
class Record:
    """Digests (SHA-256) of the model, the text and the dump of each pass in order; what it takes.

    ``dram_words`` counts long words that are read and written. A compile that ends with a
    diagnostic has its code as ``refused``, and no numbers.
    """

    model: str
    text: str = ""
    dumps: Mapping[str, str] | None = None
    cycles: int = 0
    steps: int = 0
    dram_words: int = 0
    refused: str = ""


def record(name: str) -> Record:
    """Compile the program and return its record."""
    program = PROGRAMS[name]
    model = program.build()
    digest = _digest(model.SerializeToString(deterministic=True).hex())
    try:
        used = optimise(model) if program.optimised else model
        result, report = compiled(used, program.machine, **program.options)
    except PycompilerError as problem:
        return Record(digest, refused=problem.code)
    except Exception as problem:  # a bug: the table shows it, and the other programs go on
        return Record(digest, refused=repr(problem))
    passes = {
        key.removeprefix(DUMPS).removesuffix(".txt"): text for key, text in result.dumps.items()
    }
    return Record(
        digest,
        _digest(canonical_code(result.vsm)),
        {key: _digest(canonical_graph(text)) for key, text in passes.items()},
        report["cycles"],
        report["steps"],
        sum(report["dram_words"].values()),
    )


def canonical_code(text: str) -> str:
    """Return assembly without comments and empty lines."""
    lines = (line.partition("#")[0].rstrip() for line in text.splitlines())
    return "\n".join(line for line in lines if line)


def canonical_graph(text: str) -> str:
    """Return the dump of a graph with numbered names and without sources."""
    graph = parse_graph(text)
    made = [name for node in graph.nodes for name in node.outputs if name]
    order = dict.fromkeys([*graph.inputs, *graph.constants, *made, *graph.values])
    values = {name: f"v{number}" for number, name in enumerate(order)}
    values[""] = ""
    return print_graph(_renamed(graph, values))


def _renamed(graph: MNGraph, values: Mapping[str, str]) -> MNGraph:
    nodes = {node.name: f"n{number}" for number, node in enumerate(graph.nodes)}
    names = {**nodes, **values}

    def plain(attribute: Any) -> Any:
        if isinstance(attribute, str):
            return _NAME.sub(lambda found: names.get(found.group(), found.group()), attribute)
        return tuple(map(plain, attribute)) if isinstance(attribute, tuple) else attribute

    return replace(
        graph,
        inputs=tuple(values[name] for name in graph.inputs),
        outputs=tuple((key, values[name]) for key, name in graph.outputs),
        constants={values[name]: data for name, data in graph.constants.items()},
        nodes=tuple(
            replace(
                node,
                name=nodes[node.name],
                inputs=tuple(values[name] for name in node.inputs),
                outputs=tuple(values[name] for name in node.outputs),
                attributes=tuple((key, plain(value)) for key, value in node.attributes),
                source=None,
                reason=None,
            )
            for node in graph.nodes
        ),
        values={
            values[name]: replace(value, name=values[name]) for name, value in graph.values.items()
        },
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def read_records(path: Path = RECORDS) -> dict[str, Record]:
    return {name: Record(**kept) for name, kept in json.loads(path.read_text()).items()}


def write_records(records: Mapping[str, Record], path: Path = RECORDS) -> None:
    kept = {name: asdict(records[name]) for name in PROGRAMS if name in records}
    path.write_text(json.dumps(kept, indent=1) + "\n")
