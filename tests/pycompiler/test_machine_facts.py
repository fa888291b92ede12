"""The compiler contains no facts of a machine: other machines work without a change to it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path

import numpy as np
import onnx
import pytest
from compiling import LONG, compiled, model_of, random_inputs, run, sampled

import emu2
from pycompiler.code.lines import (
    Fragment,
    Instruction,
    MatrixOperand,
    PeOperand,
    Special,
    Step,
)
from pycompiler.emit.program import concatenate
from pycompiler.errors import BUG_EXIT, PycompilerError
from pycompiler.graph.layout_text import parse_pad_layout
from pycompiler.layers.dram_transfer_plan import plan_transfer
from pycompiler.machine import Target, load_target
from pycompiler.pfvm.session import HostSession
from pycompiler.runtime.device import Board
from pycompiler.runtime.executable import DeviceFunction

# Machines unlike MN-Core 2: counts that are no powers of two, other memories.
MACHINES = {
    "odd": """
        [counts]
        group = 3
        l2b = 1
        l1b = 4
        mab = 6

        [ports]
        reduce_inputs = 2
        """,
    "wide": """
        [counts]
        group = 2
        l2b = 3
        l1b = 2
        mab = 2

        [ports]
        reduce_inputs = 2
        """,
    "tight": """
        [[memory]]
        name = "l2bm"
        words = 512

        [[memory]]
        name = "l1bm"
        words = 128

        [[memory]]
        name = "lm0"
        words = 64

        [[memory]]
        name = "lm1"
        words = 64

        [[memory]]
        name = "grf0"
        words = 8

        [[memory]]
        name = "grf1"
        words = 16
        """,
}

NODES = [
    ("Mul", ["x", "y"], "p"),
    ("Add", ["p", "z"], "s"),
    ("Relu", ["s"], "r"),
    ("Sub", ["c", "y"], "o"),
]
SHAPES = {"x": (12, 35), "y": (35,), "z": (12, 1), "c": (12, 1)}


def reference(d: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {"r": np.maximum(d["x"] * d["y"] + d["z"], 0), "o": d["c"] - d["y"]}


@pytest.mark.parametrize("name", ["mini", "mncore2", *MACHINES])
def test_other_machines(name: str, tmp_path: Path) -> None:
    machine = name
    if name in MACHINES:
        lines = [line.strip() for line in MACHINES[name].splitlines()]
        head = ['extends = "mini"', "[machine]", f'name = "{name}"', 'doc = "A test."']
        (tmp_path / "topology.toml").write_text("\n".join([*head, *lines]))
        machine = str(tmp_path)
    target = load_target(machine)
    assert target.name == name
    model = model_of(NODES, SHAPES, ["r", "o"])
    result, report = compiled(model, machine)
    assert report["host_fallback"] == []
    inputs = random_inputs(SHAPES, 9)
    found = run(result, inputs, machine)
    for key, wanted in reference(inputs).items():
        assert np.allclose(found[key], wanted, rtol=1e-6, atol=1e-4)


def test_a_large_layout_uses_the_counts(tmp_path: Path) -> None:
    text = 'extends = "mini"\n[machine]\nname = "m"\ndoc = "A test."\n[counts]\nmab = 8\n'
    (tmp_path / "topology.toml").write_text(text)
    model = model_of([("Relu", ["x"], "y")], {"x": (4096,)}, ["y"])
    layouts = {}
    for machine in ("mini", str(tmp_path)):
        result, _ = compiled(model, machine)
        layouts[machine] = str(result.graph.values["y"].layout)
        function = DeviceFunction(result.app, Board(load_target(machine)))
        x = np.arange(4096, dtype=np.float32)
        assert np.array_equal(function.run({"x": x})["y"].values(), x)
    assert "4_MAB:1" in layouts["mini"]
    assert "8_MAB:1" in layouts[str(tmp_path)]


# -- one fact at a time ----------------------------------------------------------------------


def one_entry(kind: str, name: str, key: str, value: object) -> str:
    """Return the overlay that changes one fact of one list entry."""
    return f'[[{kind}]]\nname = "{name}"\n{key} = {json.dumps(value)}\n'


#: A letter that has no meaning in the assembly of mini.
UNUSED = "y"


def variants() -> dict[str, str]:
    """Return overlays of mini by name, each with one changed fact; facts are read from the spec.

    New facts of the spec are varied without a change here: a count, the size of a memory, the width
    of a link, a distance, a limit, a letter of the assembly.
    """
    spec = emu2.Spec.load("mini")
    out: dict[str, str] = {}
    for name, count in spec.counts.items():
        for other in {1, 2, 3, 2 * count} - {count}:
            out[f"{name}={other}"] = f"[counts]\n{name} = {other}\n"
    for name, width in spec.ports.items():
        for other in {width // 2, 2 * width}:
            out[f"{name}={other}"] = f"[ports]\n{name} = {other}\n"
    for name, facts in spec.memories.items():
        for other in {facts["words"] // 2, 2 * facts["words"]} - {0}:
            out[f"{name}={other}"] = one_entry("memory", name, "words", other)
    for rule in spec.hazards:
        for key in ("steps", "cycles"):
            if rule[key] is not None:
                for other in {0, rule[key] + 3} - {rule[key]}:
                    label = f"{rule['name']}.{key}={other}"
                    out[label] = one_entry("hazard", rule["name"], key, other)
    for share in spec.shares:
        out[f"{share['name']}.limit=1"] = one_entry("share", share["name"], "limit", 1)
    for name, (rows, columns) in spec.matrices.items():
        for key, value in (("rows", rows), ("columns", columns)):
            out[f"{name}.{key}={value // 2}"] = one_entry("mau_precision", name, key, value // 2)
    for name, (exponent, fraction) in spec.formats.items():
        text = one_entry("format", name, "exponent", exponent - 1)
        out[f"{name}={exponent - 1}"] = text + f"fraction = {fraction + 1}\n"
    for name, memories in spec.excludes.items():
        for other in ([], ["lm1"], [*memories, "lm1"], ["grf0"]):
            out[f"{name} excludes {other}"] = one_entry("alu", name, "excludes", other)
    for port in ("x", "y", "z"):
        out[f"mwrite through {port}"] = one_entry("matrix_op", "mwrite", "port", port)
    for role in ("destination", "source"):
        out[f"mask {role}={UNUSED}"] = f'[mask]\n{role} = "{UNUSED}{spec.masks[role]}"\n'
    first, _ = spec.mv_tags
    out["tags from 9"] = f"[timing]\ntag_minimum = {first + 8}\n"
    out["two tags"] = f"[timing]\ntag_maximum = {first + 1}\n"
    for name, letter in spec.syntax.items():
        if isinstance(letter, int) or len(letter) == 1:
            new = letter + 1 if isinstance(letter, int) else UNUSED
            out[f"syntax {name}={new}"] = f"[syntax]\n{name} = {json.dumps(new)}\n"
    return out


#: Variants that must compile and give right results; `make test` runs these.
RIGHT = (
    *("l1b=1", "l1b=3", "l1b=4", "mab=8", "l2bm=8192", "dram=524288", "l1b_pair=1"),
    *("reduce_inputs=2", "l1bm=2048", "lm0=256", "lm1=1024", "grf1=128"),
    *("lm.steps=5", "grf.cycles=9", "l1bm_from_pe_up.steps=5", "mau.limit=1"),
    *("imm excludes ['lm1']", "imm excludes ['lm0', 'lm1']", "tags from 9", "two tags"),
    *("syntax stride=y", "syntax indirect=y", "syntax extend=y", "syntax reduce=y"),
    *("syntax mv_size=y", "syntax mv_tag=y", "syntax tag_digits=3"),
    *("mwrite through x", "mwrite through z", "mask destination=y", "mask source=y"),
)
#: Rows, terms and columns of the product; with halves, a whole block of terms.
M, K, N = 6, 16, 10


def small_model() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Elementwise operators, a product, a reduction, a gather; layout switches come with them."""
    rng = np.random.default_rng(5)
    weight = rng.standard_normal((K, N)).astype(np.float32) / 4
    nodes = [
        ("MatMul", ["x", "w"], "p"),
        ("Add", ["p", "b"], "a"),
        ("ReduceMax", ["a", "axis"], "m"),
        ("Sub", ["a", "m"], "d"),
        ("Exp", ["d"], "e"),
        ("Transpose", ["e"], "t"),
        ("Gather", ["t", "i"], "g"),
        ("MatMul", ["g", "x"], "y"),
    ]
    constants = {
        "w": weight,
        "b": rng.standard_normal(N).astype(np.float32),
        "axis": np.array([1], dtype=np.int64),
        "i": np.array([3, 0, 9], dtype=np.int64),
    }
    model = model_of(nodes, {"x": (M, K)}, ["y", "e"], constants)
    return model, {"x": rng.standard_normal((M, K)).astype(np.float32)}


#: Variants of the letters that only the code of `converting_model` contains.
CONVERTING = ("syntax extend=y", "syntax reduce=y")


def converting_model() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A cast of singles to integers, and with `mixed` a product that rounds singles to halves."""
    rng = np.random.default_rng(6)
    weight = rng.standard_normal((K, N)).astype(np.float32) / 4
    nodes = [("Exp", ["x"], "e"), ("MatMul", ["e", "w"], "p")]
    model = model_of(nodes, {"x": (M, K)}, ["e", "p"], {"w": weight})
    integer = onnx.TensorProto.INT64
    model.graph.node.append(onnx.helper.make_node("Cast", ["x"], ["c"], "cast", to=integer))
    model.graph.output.append(onnx.helper.make_tensor_value_info("c", integer, (M, K)))
    return model, {"x": 2 * rng.standard_normal((M, K)).astype(np.float32)}


#: The modes of floats, and the largest error that each may have.
LIMITS = {"float": 1e-5, "mixed": 2e-2}


def outcome(name: str, text: str, folder: Path, modes: Collection[str] = tuple(LIMITS)) -> str:
    """Return ``right``, the code of the refusal, or a description of the error."""
    head = 'extends = "mini"\n[machine]\nname = "other"\ndoc = "A test."\n'
    (folder / "other.toml").write_text(head + text)
    model, inputs = converting_model() if name in CONVERTING else small_model()
    wanted = HostSession(model, "model").run(inputs)
    for dtype in modes:
        try:
            result, report = compiled(model, str(folder), float_dtype=dtype)
            found = run(result, inputs, str(folder))
        except PycompilerError as problem:
            ours = problem.exit_code == BUG_EXIT
            return f"{dtype}: {problem}" if ours else problem.code
        assert report["host_fallback"] == []
        for key, array in wanted.items():
            worst = np.abs(found[key] - array).max() / np.abs(array).max()
            if not worst <= LIMITS[dtype]:
                return f"{dtype}: `{key}` is off by {worst}"
    return "right"


#: Variants that must be refused with a code that blames the user; `make test` runs these too.
REFUSED = (
    "group=2",
    "l2b=2",
    "mask.steps=3",
    "matrix.steps=3",
    "l2bm_narrow=32",
    "half=5",
    "imm excludes ['grf0']",
)


QUICK = (*RIGHT[::3], *REFUSED)


@pytest.mark.parametrize("name", variants() if LONG else QUICK)
def test_one_other_fact(name: str, tmp_path: Path) -> None:
    modes = tuple(LIMITS)
    if not LONG and name in RIGHT and name not in CONVERTING:
        # In `make test` the modes take turns.
        modes = modes[RIGHT.index(name) % 2 :][:1]
    found = outcome(name, variants()[name], tmp_path, modes)
    if name in RIGHT:
        assert found == "right"
    if name in REFUSED:
        assert found != "right"
    assert found == "right" or re.fullmatch(r"P0\d\d\d", found)


# Counts of L1Bs and long words of l2bm. By default l2bm has 4096: four buffers of 1024.
@pytest.mark.parametrize(
    ("l1b", "l2bm", "wanted"),
    [
        *sampled(
            [
                # A mask of three L1Bs would also choose the last one.
                (33, 4096, "P0606"),
                (40, 4096, "right"),
                (64, 65536, "right"),
                (48, 4096, "right"),
                (8, 512, "right"),
                (64, 4096, "right"),
                (16, 1024, "right"),
            ]
        ),
        # The description does not load, or l2bm has no room for one step.
        (4, 192, "P0606"),
        (4, 128, "P0606"),
        (8, 256, "P0606"),
    ],
)
def test_steps_that_fill_l2bm(l1b: int, l2bm: int, wanted: str, tmp_path: Path) -> None:
    text = f"[counts]\nl1b = {l1b}\n" + one_entry("memory", "l2bm", "words", l2bm)
    # In `make test` the modes take turns.
    modes = tuple(LIMITS) if LONG else tuple(LIMITS)[l1b // 8 % 2 :][:1]
    assert outcome("filled", text, tmp_path, modes) == wanted


def test_a_switch_without_room(tmp_path: Path) -> None:
    """One vector of all PEs fills L1BM: a switch over MABs would never end."""
    assert outcome("narrow", one_entry("memory", "l1bm", "words", 64), tmp_path) == "P0606"


@pytest.mark.parametrize("memory", ["l1bm", "l2bm"])
def test_a_step_that_does_not_fit(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = Target.words
    monkeypatch.setattr(Target, "words", lambda t, name: 1 if name == memory else words(t, name))
    layout = parse_pad_layout("((16:1), (32:1, 2_W:1))").layout
    with pytest.raises(
        PycompilerError, match=f"one step needs .* long words of {memory}"
    ) as caught:
        plan_transfer.__wrapped__(layout, load_target("mini"))
    assert caught.value.code == "P0606"


def test_the_inputs_of_the_mau_decide_what_shares_a_line(tmp_path: Path) -> None:
    """A vector product and a matrix write share a line unless they share an input of the MAU."""

    def shared(overlay: str) -> set[str]:
        text = f'extends = "mini"\n[machine]\nname = "other"\ndoc = "A test."\n{overlay}'
        (tmp_path / "other.toml").write_text(text)
        load_target.cache_clear()
        target = load_target(str(tmp_path))
        spec, cycles = target.spec, target.cycles
        one, other = (PeOperand(file, tuple(range(cycles))) for file in ("grf0", "grf1"))
        write = Instruction("mwrite", "fmwrite", (other,), (MatrixOperand("x", 0),))
        accepted = set()
        for name in ("fvfma", "fvmul", "fvadd", "fvpassa", "fmmul", "fmfma"):
            inputs = len(spec.instruction(name)["inputs"])  # type: ignore[index]
            matrix = (MatrixOperand("y"),) if name[1] == "m" else ()
            sources = (*matrix, *(one,) * inputs)
            product = Instruction("mau", name, sources, (Special("nowrite"),))
            lines = Fragment((Step((write,)), Step((product,))))
            text = concatenate([("n", "n", lines)], {}, target).lines
            found = [line for line in text if not line.startswith("#")]
            if len(found) == 1:
                accepted.add(name)
                emu2.assemble(found[0], spec, policy="check")
            else:
                with pytest.raises(emu2.AssembleError, match="A0615"):
                    emu2.assemble("; ".join(found), spec)
        return accepted

    products = {"fvfma", "fvmul"}
    sums = {"fvfma", "fvadd", "fmfma"}
    everything = {*products, *sums, "fvpassa", "fmmul"}
    assert shared("") == everything - products
    assert shared(one_entry("matrix_op", "mwrite", "port", "z")) == everything - sums
    assert shared(one_entry("matrix_op", "mwrite", "port", "x")) == set()
