"""Types of the compiled part of emu2; the docstrings are those of the objects themselves."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Protocol, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from emu2.errors import Diagnostic, Finding

__all__ = [
    "Access",
    "ChoiceSearch",
    "Debugger",
    "Device",
    "IndexMap",
    "Kernel",
    "Machine",
    "MemoryFiles",
    "Op",
    "PlacingRules",
    "Program",
    "Ready",
    "Report",
    "Spec",
    "Timeline",
    "__version__",
    "anneal_schedule",
    "assemble",
    "built_in_specs",
    "choices",
    "codes",
    "count_move_steps",
    "count_pass_steps",
    "distance",
    "fit_offsets",
    "guess_switches",
    "level",
    "levels",
    "limit",
    "mab_way",
    "move_turns",
    "pack",
    "pass_moves",
    "place_rows",
    "plan_passes",
    "race",
    "read_asm",
    "read_source",
    "run_app",
    "schedule_lines",
    "search_offsets",
    "spec_texts",
    "spread_offsets",
    "straight_rows",
    "stream_limit",
    "threads",
    "to_text",
    "unpack",
    "walk_schedule",
    "webs",
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
def run_app(app: str | PathLike[str], inputs: str | PathLike[str] | None = None) -> bytes: ...
def stream_limit() -> int: ...

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

def plan_passes(
    switch: _Switch, facts: _Facts, most: int | None
) -> list[tuple[int, _Places | None, int]] | None: ...
def count_pass_steps(switch: _Switch, facts: _Facts, level: int) -> int | None: ...
def pass_moves(
    switch: _Switch, facts: _Facts, level: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]] | None: ...
def count_move_steps(
    rows: Sequence[tuple[int, int, int, int]], times: int, facts: _Facts, level: int
) -> int: ...
def move_turns(
    rows: Sequence[tuple[int, int, int, int]], facts: _Facts, level: int
) -> list[tuple[int, int, list[tuple[int, int]]]]: ...
def mab_way(
    rows: Sequence[tuple[int, int, int, int]], facts: _Facts, even: tuple[bool, bool]
) -> tuple[str, list[Any]]: ...
def straight_rows(
    rows: Sequence[tuple[int, int, int, int]], facts: _Facts
) -> list[tuple[int, int, int, int, int]] | None: ...
def guess_switches(
    sources: Sequence[_Places], results: Sequence[_Places], shape: Sequence[int], facts: _Facts
) -> list[list[int]]: ...

@final
class ChoiceSearch:
    def __new__(
        cls, sizes: Sequence[int], pairs: Sequence[tuple[int, int]], most: int
    ) -> ChoiceSearch: ...
    @property
    def held(self) -> list[int]: ...
    def cheapest(
        self,
        single: Sequence[NDArray[np.int64]],
        shared: Sequence[NDArray[np.int64]],
        start: Sequence[int],
    ) -> list[int]: ...
    def eliminated(
        self,
        single: Sequence[NDArray[np.int64]],
        shared: Sequence[NDArray[np.int64]],
        start: Sequence[int],
    ) -> list[int]: ...

@final
class PlacingRules:
    def __new__(
        cls,
        hazards: Sequence[Any],
        shares: Sequence[tuple[Sequence[str], int]],
        banks: Mapping[str, str],
        above: Sequence[str],
        shared: Sequence[str],
        operands: Sequence[type],
        issue: Callable[[str], tuple[str | None, Sequence[str], Sequence[str]]],
        *,
        cycles: int,
        unit: int,
        granule: int,
        l2bs: tuple[int, int],
        long: int,
        added: str,
        entries: str,
        blocks: str,
    ) -> PlacingRules: ...
    @property
    def reach(self) -> int: ...

@final
class Access:
    @property
    def memory(self) -> str: ...
    @property
    def unit(self) -> tuple[int | None, int | None]: ...
    @property
    def low(self) -> int: ...
    @property
    def high(self) -> int: ...
    @property
    def cycles(self) -> tuple[int, ...]: ...
    @property
    def anywhere(self) -> bool: ...

@final
class Op:
    slot: str
    takes: tuple[str, ...]
    def __new__(cls, rules: PlacingRules, instruction: Any, addresses: Mapping[str, int]) -> Op: ...

@final
class Ready:
    line: Any
    addresses: Mapping[str, int]
    ops: tuple[Op, ...]
    def __new__(
        cls, rules: PlacingRules, line: Any, addresses: Mapping[str, int], ops: tuple[Op, ...]
    ) -> Ready: ...
    @staticmethod
    def of_move(
        rules: PlacingRules,
        line: Any,
        addresses: Mapping[str, int],
        slot: str,
        transfer: tuple[Sequence[str], int, int],
    ) -> Ready: ...
    @property
    def shared(self) -> bool: ...
    @property
    def reads(self) -> tuple[Access, ...]: ...
    @property
    def writes(self) -> tuple[Access, ...]: ...
    def conflicts(self, later: Ready) -> bool: ...

def schedule_lines(
    rules: PlacingRules, steps: Sequence[Sequence[Op]]
) -> list[list[int]] | None: ...
def webs(
    rules: PlacingRules, memory: str, lines: Sequence[Ready]
) -> tuple[list[tuple[int, int, int, int]], list[list[tuple[int, int]]]]: ...
def distance(rules: PlacingRules, recent: Sequence[Ready | None], ready: Ready) -> int: ...

@final
class Timeline:
    def __new__(cls, rules: PlacingRules, mv: str, shifted: str, unlimited: bool) -> Timeline: ...
    def place_lines(self, run: Sequence[Ready]) -> int: ...
    def place_move(self, ready: Ready, owner: int) -> tuple[int, int]: ...
    def start_of(self, ready: Ready, shift: int) -> int: ...
    def soonest(self, ready: Ready) -> int: ...
    def last_of(self, access: Access, more: int) -> int: ...

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
