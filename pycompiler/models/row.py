"""A row of the table: what became of one model in one mode."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import TABLE, USER_EXIT

#: Codes beside those of diagnostics.
RAISED, TIME, MEMORY, DIED = "raised", "time", "memory", "died"

#: The modes of a compile: the values of option ``float_dtype``.
MODES = ("float", "mixed")
#: The mode of models that go through ``torch.compile``, with the option ``float_dtype=float``.
DOOR = "torch.compile"


@dataclass(frozen=True)
class Row:
    """The result of a model with one batch in one mode; a model that did not compile has zeros.

    ``code`` is the code of a diagnostic, or RAISED (the model's own code raised an exception),
    TIME, MEMORY (a limit was reached) or DIED (the process ended by a signal), and ``reason`` its
    text. ``host`` counts operators on the host by kind. ``error`` is the largest difference from
    torch, divided by the largest magnitude of the output. ``bound`` is in cycles, the largest of
    ``mau``, ``dram`` and ``vector``; all are 0 if the report has none. ``shares`` says what the
    cycles are spent on, by kind. ``seconds`` is the time of the compile, ``emulated`` that of the
    run, ``megabytes`` the peak of memory. In the mode DOOR, ``graphs`` and ``pieces`` count what
    torch captured and what of it runs on the device, and ``in_torch`` the operators that stay in
    torch.
    """

    name: str
    batch: int
    mode: str
    code: str = ""
    reason: str = ""
    operators: int = 0
    host: Mapping[str, int] = field(default_factory=dict)
    host_reasons: Mapping[str, str] = field(default_factory=dict)
    error: float = 0.0
    matched: bool = False
    steps: int = 0
    cycles: int = 0
    multiply_adds: int = 0
    words: int = 0
    mau: int = 0
    dram: int = 0
    vector: int = 0
    bound: int = 0
    shares: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    emulated: float = 0.0
    megabytes: int = 0
    graphs: int = 0
    pieces: int = 0
    in_torch: Mapping[str, int] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int, str]:
        """The model, its batch and its mode: a run has one row of each."""
        return self.name, self.batch, self.mode

    @property
    def title(self) -> str:
        """The same as text."""
        return f"{self.name} batch {self.batch} {self.mode}"

    @property
    def result(self) -> str:
        """A code, or whether the outputs are those of torch."""
        return self.code or ("matched" if self.matched else "differs")

    @property
    def times(self) -> float:
        """Cycles over the bound; it does not count what the host computes."""
        return self.cycles / self.bound if self.bound else 0.0

    @property
    def exit_code(self) -> int:
        """0 if the model compiled and matched, else that of its diagnostic, or 1 without one."""
        if self.code in TABLE:
            return TABLE[self.code].raises.exit_code
        return 0 if self.matched else USER_EXIT

    def data(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        return asdict(self)

    @classmethod
    def read(cls, data: Any) -> Row:
        """Return the row of JSON values. ValueError if they are of no row, with what is wrong."""
        if not isinstance(data, dict):
            raise ValueError("is no row")
        example = asdict(cls("", 1, ""))
        for name in example:
            if name not in data:
                raise ValueError(f"has no field `{name}`, as rows of another version may")
        for name in data:
            if name not in example:
                raise ValueError(f"has the field `{name}`, which rows have not")
        kinds = {"host": int, "host_reasons": str, "shares": float, "in_torch": int}
        for name, like in example.items():
            value = data[name]
            parts = value.values() if isinstance(value, dict) else ()
            right = _is(value, type(like)) and all(_is(part, kinds[name]) for part in parts)
            if not right:
                raise ValueError(f"has {reprlib.repr(value)} as `{name}`")
        return cls(**data)


def _is(value: object, kind: type) -> bool:
    """Whether a JSON value is of a kind; a whole number may stand for a float."""
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def exit_code(rows: list[Row]) -> int:
    """Return the exit code of a run: the largest, so that of an error of ours first."""
    return max((row.exit_code for row in rows), default=0)
