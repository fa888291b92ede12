"""Types of the compiled part of emu2; the docstrings are those of the objects themselves."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Protocol, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from emu2.errors import Diagnostic, Finding

__all__ = [
    "ChoiceSearch",
    "CodeLines",
    "CodeMachine",
    "CodeProgram",
    "Debugger",
    "Device",
    "IndexMap",
    "Kernel",
    "Machine",
    "MemoryFiles",
    "Program",
    "Report",
    "Spec",
    "SwitchGuesses",
    "__version__",
    "anneal_schedule",
    "assemble",
    "built_in_specs",
    "check_app",
    "choices",
    "codes",
    "compare_units",
    "count_pass_steps",
    "fit_offsets",
    "from_half",
    "level",
    "levels",
    "limit",
    "move_lines",
    "pack",
    "pass_moves",
    "place_rows",
    "plan_passes",
    "race",
    "read_asm",
    "read_source",
    "run_app",
    "search_offsets",
    "spec_texts",
    "spread_offsets",
    "stream_limit",
    "threads",
    "to_half",
    "to_text",
    "unpack",
    "walk_schedule",
    "what_if_specs",
    "write_asm",
]

_Array = TypeVar("_Array", bound=NDArray[Any])
_Location = Sequence[int] | Mapping[str, int]

class _Sink(Protocol):
    def write(self, text: str, /) -> Any: ...

__version__: str

def built_in_specs() -> list[str]: ...
def spec_texts(name: str) -> list[tuple[str, str]]: ...
def what_if_specs() -> list[str]: ...
def codes() -> list[tuple[str, str, str]]: ...
def read_source(path: str | PathLike[str]) -> bytes: ...
def check_app(data: bytes) -> int: ...
def run_app(app: str | PathLike[str], inputs: str | PathLike[str] | None = None) -> bytes: ...
def stream_limit() -> int: ...
def to_half(singles: NDArray[np.float32]) -> NDArray[np.uint16]: ...
def from_half(words: NDArray[np.uint16]) -> NDArray[np.float32]: ...

# Nodes: inputs, outputs, choices, nodes before, segment. A choice: banks of inputs and outputs, the
# input that is overwritten, cycles.
_NodeChoice = tuple[Sequence[int], Sequence[int], int | None, int]
_NodeRow = tuple[Sequence[int], Sequence[int], Sequence[_NodeChoice], Sequence[int], int]
# Values: maker, size, words, cycles of download, upload and copy, given, stored, remakable.
_ValueRow = tuple[int | None, int, int, int, int, int, bool, bool, bool]
# Plans: order, biases of values, values that are computed again, choices of nodes.
_PlanRow = tuple[Sequence[int], Sequence[tuple[int, int]], Sequence[int], Sequence[tuple[int, int]]]

def anneal_schedule(
    nodes: Sequence[_NodeRow],
    values: Sequence[_ValueRow],
    rooms: tuple[int, int],
    words_per_cycle: int,
    orders: Sequence[Sequence[int]],
    steps: int,
    seed: int,
    progress: Callable[[int, int, int], bool],
) -> tuple[tuple[_PlanRow, int, int, int], BaseException | None]: ...
def walk_schedule(
    nodes: Sequence[_NodeRow],
    values: Sequence[_ValueRow],
    rooms: tuple[int, int],
    plan: _PlanRow,
) -> tuple[int, int, list[tuple[str, int, tuple[int, int] | None, int | None, bool]]] | None: ...

# Register files, banks, units, the unit that copies; the bank of each input and of the result;
# which constants have equal words; steps from a write to a read in LM, in registers and of masks.
_PlacesOfRows = tuple[int, int, int, int, Sequence[int | None], int, Sequence[bool], int, int, int]

def place_rows(
    operations: Sequence[tuple[int, Sequence[tuple[int, int, bool]], int | None]],
    order: Sequence[int],
    interval: int,
    places: _PlacesOfRows,
) -> (
    tuple[
        list[tuple[int | None, list[int]]],
        list[tuple[int, int]],
        list[list[int]],
        list[tuple[int, int, int]],
        list[tuple[int, int]],
        list[tuple[int, int]],
    ]
    | None
): ...
def search_offsets(
    buffers: Sequence[tuple[int, int, int, int]],
    capacity: int,
    orders: Sequence[Sequence[int]],
    seconds: float,
    work: int,
) -> list[int] | None: ...
def fit_offsets(
    buffers: Sequence[tuple[int, int, int, int]],
    fixed: Sequence[int | None],
    order: Sequence[int],
    narrowest: bool,
) -> list[int]: ...
def spread_offsets(
    buffers: Sequence[tuple[int, int, int, int]],
    offsets: Sequence[int],
    fixed: Sequence[bool],
    capacity: int,
    window: int,
) -> list[int]: ...

# A layout in numbers: size, number of the level and stride of the digits of each axis, and of those
# with copies.
_Digit = tuple[int, int, int]
_Places = tuple[list[list[_Digit]], list[_Digit]]

class _Switch(Protocol):
    @property
    def source(self) -> _Places: ...
    @property
    def result(self) -> _Places: ...
    @property
    def shape(self) -> Sequence[int]: ...

class _Facts(Protocol):
    @property
    def counts(self) -> Sequence[int]: ...
    @property
    def bits(self) -> int: ...
    @property
    def addressed_bits(self) -> int: ...
    @property
    def lm0(self) -> int: ...
    @property
    def cycles(self) -> int: ...
    @property
    def mv_latency(self) -> int: ...
    @property
    def mv_near(self) -> int: ...
    @property
    def mv_far(self) -> int: ...
    @property
    def mv_all(self) -> int: ...
    @property
    def row(self) -> int: ...
    @property
    def block(self) -> int: ...
    @property
    def l2bm_words(self) -> int: ...
    @property
    def spread(self) -> tuple[int, int]: ...
    @property
    def l2bm(self) -> int: ...
    @property
    def pdm(self) -> int: ...

def plan_passes(
    switch: _Switch, facts: _Facts, most: int | None
) -> list[tuple[int, _Places | None, int]] | None: ...
def count_pass_steps(switch: _Switch, facts: _Facts, level: int) -> int | None: ...
def pass_moves(
    switch: _Switch, facts: _Facts, level: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]] | None: ...
def move_lines(
    parts: Sequence[tuple[Sequence[NDArray[np.int64]], bool, int | None]],
    facts: _Facts,
    level: int,
    place: tuple[bool, bool, bool, bool],
) -> tuple[list[tuple[Any, ...]], tuple[str, int, int] | None]: ...
def compare_units(units: int, count: int) -> tuple[int, int] | None: ...

@final
class SwitchGuesses:
    def __new__(cls, shape: Sequence[int], facts: _Facts) -> SwitchGuesses: ...
    def number(self, places: _Places) -> int: ...
    def table(self, sources: Sequence[int], results: Sequence[int]) -> NDArray[np.int64]: ...

@final
class ChoiceSearch:
    def __new__(
        cls, sizes: Sequence[int], pairs: Sequence[tuple[int, int]], most: int
    ) -> ChoiceSearch: ...
    @property
    def held(self) -> list[int]: ...
    def take(self, costs: Mapping[tuple[int, int], NDArray[np.int64]]) -> None: ...
    def total(self, chosen: Sequence[int]) -> int: ...
    def cheapest(self, start: Sequence[int]) -> list[int]: ...
    def eliminated(self, start: Sequence[int]) -> list[int]: ...
    def answers(
        self, start: Sequence[int], variable: int, most: int
    ) -> list[tuple[int, int, list[int]]]: ...
    def part(self, kept: Sequence[Sequence[int]]) -> ChoiceSearch: ...
    def follow(self, whole: ChoiceSearch) -> None: ...

@final
class CodeMachine:
    def __new__(
        cls,
        hazards: Sequence[Any],
        facts: Any,
        operands: Sequence[type],
        issue: Callable[[str], tuple[str | None, Sequence[str], Sequence[str]]],
        cost: Callable[[Any], tuple[Sequence[str], int, int]],
    ) -> CodeMachine: ...

@final
class CodeLines:
    def __new__(
        cls, machine: CodeMachine, lines: tuple[Any, ...], short: tuple[Any, ...]
    ) -> CodeLines: ...

@final
class CodeProgram:
    def __new__(cls, machine: CodeMachine, merged: bool, window: int) -> CodeProgram: ...
    def add(
        self,
        comment: str,
        lines: CodeLines,
        kind: str,
        packed: bool,
        loose: bool,
        names: Mapping[str, str],
        addresses: Mapping[str, int],
    ) -> None: ...
    def finish(
        self,
    ) -> tuple[
        list[str],
        list[tuple[int, str, int]],
        list[tuple[int, int, int, dict[str, int], int]],
        int,
        list[tuple[int, int, list[int]]],
        list[tuple[int, str, str, int, int, int]],
        list[int],
        int,
    ]: ...
    def unlimited(self) -> list[tuple[int, int, list[tuple[str, int]]]] | None: ...

def assemble(
    text: str | bytes,
    spec: Spec,
    *,
    filename: str = "<string>",
    policy: Literal["run", "check", "strict"] = "run",
) -> Program: ...
def read_asm(text: str | bytes, spec: Spec, *, filename: str = "<string>") -> Program: ...
def write_asm(
    program: Program,
    sink: _Sink,
    *,
    form: Literal["words", "mixed", "flat"] = "words",
    allow_inferred: bool = False,
) -> None: ...
def to_text(program: Program) -> str: ...
def pack(program: Program) -> bytes: ...
def unpack(data: bytes) -> str: ...

@final
class Spec:
    @staticmethod
    def load(name: str) -> Spec: ...
    @property
    def name(self) -> str: ...
    @property
    def doc(self) -> str: ...
    @property
    def clock_mhz(self) -> int: ...
    @property
    def counts(self) -> dict[str, int]: ...
    @property
    def ports(self) -> dict[str, int]: ...
    @property
    def matrices(self) -> dict[str, tuple[int, int]]: ...
    @property
    def formats(self) -> dict[str, tuple[int, int]]: ...
    @property
    def products(self) -> dict[str, dict[str, Any]]: ...
    @property
    def forwards(self) -> dict[str, str]: ...
    @property
    def banks(self) -> dict[str, str]: ...
    @property
    def excludes(self) -> dict[str, list[str]]: ...
    @property
    def masks(self) -> dict[str, Any]: ...
    @property
    def memories(self) -> dict[str, dict[str, Any]]: ...
    @property
    def hazards(self) -> list[dict[str, Any]]: ...
    @property
    def shares(self) -> list[dict[str, Any]]: ...
    @property
    def syntax(self) -> dict[str, str | int]: ...
    @property
    def mv_tags(self) -> tuple[int, int]: ...
    @property
    def mnemonics(self) -> list[str]: ...
    def instruction(self, mnemonic: str) -> dict[str, Any] | None: ...
    def page(self, name: str) -> str | None: ...
    def list(self) -> str: ...
    def index_map(self, mnemonic: str, form: str, **parameters: int) -> IndexMap: ...
    def mv_rate(self, mnemonic: str, form: str, **parameters: int) -> tuple[int, int]: ...
    @property
    def mv_latency(self) -> int: ...

@final
class IndexMap:
    @property
    def source(self) -> dict[str, NDArray[np.int64]]: ...
    @property
    def destination(self) -> dict[str, NDArray[np.int64]]: ...
    @property
    def unit(self) -> int | None: ...
    @property
    def strides(self) -> tuple[int, int] | None: ...

@final
class Program:
    @property
    def filename(self) -> str: ...
    @property
    def spec(self) -> Spec: ...
    @property
    def warnings(self) -> list[Diagnostic]: ...
    def render_warnings(self) -> str: ...
    def report(self) -> dict[str, Any]: ...
    def stalls(self) -> list[tuple[int, int]]: ...
    def trace(self, sink: _Sink) -> None: ...

@final
class Machine:
    def __new__(cls, spec: Spec) -> Machine: ...
    @property
    def spec(self) -> Spec: ...
    def run(
        self, program: Program, *, dump: _Sink | None = None, sanitize: bool = False
    ) -> Report: ...
    def prepare(self, program: Program) -> None: ...
    def undefined(
        self,
        memory: str,
        *,
        addr: int = 0,
        count: int = 1,
        group: int | None = None,
        l2b: int | None = None,
        l1b: int | None = None,
        mab: int | None = None,
        pe: int | None = None,
    ) -> list[Finding]: ...
    def validity(
        self,
        memory: str,
        *,
        addr: int = 0,
        count: int = 1,
        group: int | None = None,
        l2b: int | None = None,
        l1b: int | None = None,
        mab: int | None = None,
        pe: int | None = None,
    ) -> NDArray[np.uint64]: ...
    def read(
        self,
        memory: str,
        *,
        addr: int = 0,
        count: int = 1,
        group: int | None = None,
        l2b: int | None = None,
        l1b: int | None = None,
        mab: int | None = None,
        pe: int | None = None,
    ) -> NDArray[np.uint64]: ...
    def write(
        self,
        memory: str,
        words: NDArray[np.uint64],
        *,
        addr: int = 0,
        group: int | None = None,
        l2b: int | None = None,
        l1b: int | None = None,
        mab: int | None = None,
        pe: int | None = None,
    ) -> None: ...
    def save_state(self, path: str | PathLike[str]) -> None: ...
    def load_state(self, path: str | PathLike[str]) -> None: ...
    def load_memory_file(self, path: str | PathLike[str]) -> None: ...
    def save_memory_file(self, path: str | PathLike[str]) -> None: ...
    @property
    def resident_bytes(self) -> int: ...
    def reset(self) -> None: ...

@final
class MemoryFiles:
    def __new__(
        cls,
        spec: Spec,
        *,
        config: str | PathLike[str] | None = None,
        load: str | PathLike[str] | None = None,
        save: str | PathLike[str] | None = None,
        outside: bool = False,
    ) -> MemoryFiles: ...
    @property
    def saved(self) -> list[tuple[str, int, int, int]]: ...
    @property
    def inputs(self) -> list[Path]: ...
    @property
    def outputs(self) -> list[Path]: ...
    def load(self, machine: Machine) -> None: ...
    def save(self, machine: Machine) -> None: ...

@final
class Debugger:
    def __new__(
        cls,
        program: Program,
        machine: Machine | None = None,
        *,
        room: int = 1 << 30,
        every: int | None = None,
    ) -> Debugger: ...
    @property
    def spec(self) -> Spec: ...
    @property
    def levels(self) -> list[tuple[str, str]]: ...
    @property
    def position(self) -> int: ...
    @property
    def statements(self) -> int: ...
    @property
    def line(self) -> int: ...
    def line_of(self, position: int) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def cycles(self) -> int: ...
    @property
    def history(self) -> tuple[int, int]: ...
    @property
    def breakpoints(self) -> list[dict[str, Any]]: ...
    def add(self, text: str) -> dict[str, Any]: ...
    def remove(self, id: int) -> None: ...
    def step(self, unit: str = "line", *, back: bool = False, count: int = 1) -> dict[str, Any]: ...
    def run(self, *, back: bool = False, limit: int | None = None) -> dict[str, Any]: ...
    def go(self, position: int) -> dict[str, Any]: ...
    def at_line(self, line: int) -> int: ...
    def at_cycle(self, cycle: int) -> int: ...
    def at_tag(self, tag: int) -> int: ...
    def first_write(self, place: str, first: int, last: int) -> int | None: ...
    def evaluate(self, place: str, *, most: int = 64) -> list[dict[str, Any]]: ...
    def holds(self, condition: str) -> bool: ...
    def read(
        self,
        memory: str,
        *,
        addr: int = 0,
        count: int = 1,
        group: int | None = None,
        l2b: int | None = None,
        l1b: int | None = None,
        mab: int | None = None,
        pe: int | None = None,
    ) -> NDArray[np.uint64]: ...
    def write(
        self,
        memory: str,
        words: NDArray[np.uint64],
        *,
        addr: int = 0,
        group: int | None = None,
        l2b: int | None = None,
        l1b: int | None = None,
        mab: int | None = None,
        pe: int | None = None,
    ) -> None: ...
    def differences(self, first: int, second: int, *, most: int = 256) -> dict[str, Any]: ...
    def parting(self, other: Debugger, *, most: int = 256) -> dict[str, Any] | None: ...
    def pause(self) -> None: ...

@final
class Device:
    def __new__(cls, spec: Spec | str | None = None, *, endian: int = 4) -> Device: ...
    @property
    def spec(self) -> Spec: ...
    @property
    def size(self) -> int: ...
    @property
    def endian(self) -> int: ...
    @endian.setter
    def endian(self, mode: int) -> None: ...
    @property
    def resident_bytes(self) -> int: ...
    def send(self, data: NDArray[Any] | bytes, offset: int = 0, tag: int = 0) -> None: ...
    def recv(self, out: _Array, offset: int = 0, tag: int = 0) -> _Array: ...
    def load_kernel(
        self, source: Program | str | PathLike[str] | bytes, *, filename: str | None = None
    ) -> Kernel: ...
    def exec(self, kernel: Kernel, *, dump: _Sink | None = None) -> Report: ...
    def debug_read(
        self,
        region: str,
        location: _Location | None = None,
        addr: int = 0,
        count: int = 1,
    ) -> NDArray[np.uint64]: ...
    def debug_write(
        self,
        region: str,
        location: _Location | None,
        addr: int,
        words: NDArray[np.uint64],
    ) -> None: ...
    def reset(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...

@final
class Kernel:
    @property
    def program(self) -> Program: ...

@final
class Report:
    @property
    def steps(self) -> int: ...
    @property
    def cycles(self) -> int: ...
    @property
    def dump(self) -> list[str]: ...
    @property
    def host(self) -> list[str]: ...
    @property
    def findings(self) -> list[Finding]: ...
    def render_findings(self) -> str: ...
    @property
    def counters(self) -> dict[str, Any]: ...

def race(
    machine: Machine,
    program: Program,
    *,
    threads: int,
    seconds: float,
    limit: str | None = None,
    words: int = 0,
    units: int = 1,
) -> tuple[float, float]: ...
def limit(name: str, *, seconds: float, words: int = 0, units: int = 1) -> float: ...
def level() -> str: ...
def levels() -> list[str]: ...
def choices() -> list[tuple[str, str]]: ...
def threads() -> int: ...
