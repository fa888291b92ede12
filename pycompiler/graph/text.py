"""The text form of an MNGraph (``l3ir.txt``): printed by ``print_graph``, read by ``parse_graph``.

The text begins with one line per property of the graph. Each node then has a line
``Op(inputs) -> (outputs)``, followed by one line for every value that it touches. That line has
direction and index, name, ONNX type, num_lw, padded_shape, layout, layout_kind, dtype, gene,
location and address (words of 32 bits in LM, long words in DRAM). ``parse_graph`` gives a graph
that is equal to the printed one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..errors import PycompilerError, error
from ..machine import WORDS_PER_LONG
from .dtypes import MNDtype
from .graph import Location, MNGraph, MNNode, MNValue, Side, Stage, TensorType
from .layout import PadLayout
from .layout_text import parse_pad_layout
from .plan import parse_plan

_PLAIN = re.compile(r"[A-Za-z_][\w./$-]*\Z")
_LM = (Location.LM0, Location.LM1)


def _quote(name: str) -> str:
    return name if _PLAIN.match(name) else json.dumps(name)


def _names(names: tuple[str, ...]) -> str:
    return "(" + ", ".join(_quote(n) for n in names) + ")"


def _value_line(value: MNValue) -> str:
    layout = "?" if value.layout is None else str(PadLayout(value.shape, value.layout))
    padded = "?" if value.layout is None else _tuple(value.layout.padded_shape)
    addr = "?" if value.addr is None else str(value.addr * (WORDS_PER_LONG if _lm(value) else 1))
    kind = "?" if value.layout is None else "MNCore"
    num_lw = "?" if value.num_lw is None else str(value.num_lw)
    return (
        f"name={_quote(value.name)} type={value.type} num_lw={num_lw} padded_shape={padded} "
        f"layout={layout} layout_kind={kind} dtype={value.dtype.value} "
        f"gene=[{','.join(value.gene)}] loc={value.location.value} addr={addr}"
    )


def _lm(value: MNValue) -> bool:
    return value.location in _LM


def _tuple(numbers: tuple[int, ...]) -> str:
    return "(" + ",".join(map(str, numbers)) + ")"


def _node_line(node: MNNode) -> str:
    facts: dict[str, Any] = {"node": node.name, "on": node.side.value}
    if node.attributes:
        facts["attributes"] = dict(node.attributes)
    for key in ("segment", "inplace", "slice", "source", "reason"):
        if getattr(node, key) is not None:
            facts[key] = getattr(node, key)
    if node.plan is not None:
        facts["plan"] = node.plan.json
    shown = " ".join(f"{k}={v if k == 'on' else json.dumps(v)}" for k, v in facts.items())
    return f"{_quote(node.op)}{_names(node.inputs)} -> {_names(node.outputs)} {shown}"


def _graph_lines(graph: MNGraph) -> Iterator[str]:
    yield f"graph {_quote(graph.name)} target={_quote(graph.target)} stage={graph.stage.name}"
    for name in graph.inputs:
        yield f"input {_quote(name)}"
    for name, digest in graph.constants.items():
        yield f"constant {_quote(name)} data={digest}"
    for key, name in graph.outputs:
        yield f"output {_quote(key)} = {_quote(name)}"
    touched = {name for node in graph.nodes for name in (*node.inputs, *node.outputs)}
    for name in graph.values:
        if name not in touched:
            yield f"  value {_value_line(graph.values[name])}"
    for node in graph.nodes:
        yield ""
        yield _node_line(node)
        for direction, names in (("in", node.inputs), ("out", node.outputs)):
            for index, name in enumerate(names):
                if name:
                    yield f"  {direction}{index} {_value_line(graph.values[name])}"


def print_graph(graph: MNGraph) -> str:
    """Return the text of ``graph``, ending in a newline."""
    return "\n".join(_graph_lines(graph)) + "\n"


class _Line:
    """A cursor over one line."""

    def __init__(self, number: int, text: str):
        self.number, self.text, self.at = number, text, 0

    def fail(self, reason: str) -> PycompilerError:
        return error("P0203", reason=f"line {self.number}: {reason}")

    def match(self, pattern: str, what: str) -> re.Match[str]:
        match = re.compile(r"\s*" + pattern).match(self.text, self.at)
        if match is None:
            raise self.fail(f"{what} expected at `{self.text[self.at :][:20]}`")
        self.at = match.end()
        return match

    def take(self, literal: str) -> None:
        self.match(re.escape(literal), f"`{literal}`")

    def peek(self, literal: str) -> bool:
        return self.text[self.at :].lstrip().startswith(literal)

    def done(self) -> bool:
        return not self.text[self.at :].strip()

    def name(self) -> str:
        text = self.match(r'([A-Za-z_][\w./$-]*|"(?:[^"\\]|\\.)*")', "a name").group(1)
        return str(json.loads(text)) if text.startswith('"') else text

    def names(self) -> tuple[str, ...]:
        self.take("(")
        out: list[str] = []
        while not self.peek(")"):
            if out:
                self.take(",")
            out.append(self.name())
        self.take(")")
        return tuple(out)

    def literal(self) -> Any:
        try:
            value, end = json.JSONDecoder().raw_decode(self.text, self._skip_blanks())
        except json.JSONDecodeError as problem:
            raise self.fail(f"a value expected: {problem.msg}") from None
        self.at = end
        return value

    def _skip_blanks(self) -> int:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.at

    def optional_number(self) -> int | None:
        text = self.match(r"(\?|-?\d+)", "a number").group(1)
        return None if text == "?" else int(text)


def _tensor_type(line: _Line) -> TensorType:
    match = line.match(r"(\w+)\[([\d,]*)\]", "a tensor type")
    dims = tuple(int(d) for d in match.group(2).split(",") if d)
    return TensorType(match.group(1), dims)


def _parse_value(line: _Line) -> MNValue:
    line.take("name=")
    name = line.name()
    line.take("type=")
    type = _tensor_type(line)
    line.take("num_lw=")
    num_lw = line.optional_number()
    padded = line.match(r"padded_shape=(\?|\([\d,]*\))", "padded_shape").group(1)
    text = line.match(r"layout=(\?|PadLayout\{[^}]*\})", "layout").group(1)
    line.match(r"layout_kind=(\?|MNCore)", "layout_kind")
    dtype = line.match(r"dtype=(\w+)", "dtype").group(1)
    gene = line.match(r"gene=\[([^,\]]*),([^,\]]*)\]", "gene")
    loc = line.match(r"loc=(\S+)", "loc").group(1)
    line.take("addr=")
    addr = line.optional_number()
    layout = None if text == "?" else parse_pad_layout(text).layout
    if layout is not None and padded != _tuple(layout.padded_shape):
        raise line.fail(f"padded_shape {padded} is not that of the layout")
    if not line.done():
        raise line.fail(f"`{line.text[line.at :].strip()}` after the end")
    try:
        location, genes = Location(loc), (gene.group(1), gene.group(2))
        value = MNValue(name, type, MNDtype(dtype), location, layout, num_lw, genes, addr)
    except ValueError as problem:
        raise line.fail(str(problem)) from None
    if addr is not None and _lm(value):
        value = replace(value, addr=addr // WORDS_PER_LONG)
    return value


def _parse_node(line: _Line) -> MNNode:
    op = line.name()
    inputs = line.names()
    line.take("->")
    outputs = line.names()
    facts: dict[str, Any] = {}
    while not line.done():
        key = line.match(
            r"(node|on|attributes|segment|inplace|slice|source|reason|plan)=", "a node property"
        ).group(1)
        facts[key] = line.match(r"(MNCore|Host)", "a side").group(1) if key == "on" else None
        if key != "on":
            facts[key] = line.literal()
    attributes = facts.get("attributes", {})
    if not isinstance(attributes, dict):
        raise line.fail("attributes must be an object")
    try:
        plan = parse_plan(facts["plan"]) if "plan" in facts else None
    except ValueError as problem:
        raise line.fail(str(problem)) from None
    return MNNode(
        facts.get("node", ""),
        op,
        inputs,
        outputs,
        tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in attributes.items()),
        Side(facts.get("on", "MNCore")),
        facts.get("source"),
        facts.get("reason"),
        facts.get("segment"),
        facts.get("inplace"),
        facts.get("slice"),
        plan,
    )


def parse_graph(text: str) -> MNGraph:
    """Read the text that :func:`print_graph` wrote.

    P0203, with the number of the line, if the text is not such a graph.
    """
    header: dict[str, Any] = {}
    inputs: list[str] = []
    constants: dict[str, str] = {}
    outputs: list[tuple[str, str]] = []
    nodes: list[MNNode] = []
    values: dict[str, MNValue] = {}
    for number, content in enumerate(text.split("\n"), 1):
        line = _Line(number, content)
        if line.done():
            continue
        if content.startswith(" "):
            line.match(r"(value|in\d+|out\d+)\s", "in, out or value")
            value = _parse_value(line)
            if values.setdefault(value.name, value) != value:
                raise line.fail(f"`{value.name}` has two different records")
        elif line.peek("graph ") and not header:
            line.take("graph")
            header["name"] = line.name()
            line.take("target=")
            header["target"] = line.name()
            stages = "|".join(stage.name for stage in Stage)
            header["stage"] = Stage[line.match(rf"stage=({stages})\Z", "a stage").group(1)]
        elif line.peek("input "):
            line.take("input")
            inputs.append(line.name())
        elif line.peek("constant "):
            line.take("constant")
            name = line.name()
            constants[name] = line.match(r"data=(\S+)", "data").group(1)
        elif line.peek("output "):
            line.take("output")
            key = line.name()
            line.take("=")
            outputs.append((key, line.name()))
        else:
            nodes.append(_parse_node(line))
    if not header:
        raise error("P0203", reason="the line `graph NAME target=... stage=...` is missing")
    return MNGraph(
        header["name"],
        header["target"],
        header["stage"],
        tuple(inputs),
        tuple(outputs),
        constants,
        tuple(nodes),
        values,
    )
