"""Plans: which schedule the code of a node has, and with which numbers.

The layout planner chooses a plan together with the layouts of the node's operands. From then on
the node says its plan, and nobody finds it out from digits of layouts. The text form of a plan is
a JSON object: the name of the schedule, and its numbers by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ..errors import PycompilerError
from .layout import Layout, Level, SubAxis
from .layout_text import parse_layout


@dataclass(frozen=True)
class Plan:
    """The plan of a node; each schedule is a subclass."""

    @property
    def json(self) -> dict[str, dict[str, Any]]:
        """The text form as an object."""
        return {type(self).__name__: {n.name: _shown(getattr(self, n.name)) for n in fields(self)}}


@dataclass(frozen=True)
class Resident(Plan):
    """A product of which every MAB holds its operands."""


@dataclass(frozen=True)
class Streamed(Plan):
    """A product whose vectors come through L1BM.

    ``along`` is the batch axis on which rows are spread, None for m. ``columns`` are the digits of
    the columns: MABs, L1Bs that divide them, L2Bs. ``rows`` are those of the rows: the other L1Bs
    and L2Bs.
    """

    along: int | None
    columns: tuple[SubAxis, ...]
    rows: tuple[SubAxis, ...]


@dataclass(frozen=True)
class OnePass(Plan):
    """A pass of a layout switch, which changes the digits of one level."""

    level: Level


@dataclass(frozen=True)
class WholeSums(Plan):
    """A weight gradient of which all units get all sums."""


@dataclass(frozen=True)
class PartSums(Plan):
    """A weight gradient whose units keep the sums of their own pixels, as parts of the result."""


@dataclass(frozen=True)
class SharedSums(Plan):
    """A weight gradient, or the sum of its parts, of which each unit keeps some sums.

    ``parts`` DRAMs each get an equal part of a piece; if that is 1, a PDM adds up whole pieces. The
    L2Bs get all pieces ``everywhere``, or all parts of theirs ``gathered``. ``places`` are the
    levels on which the digits of the pieces lie.
    """

    parts: int
    everywhere: bool = False
    gathered: bool = False
    places: tuple[Level, ...] = ()


#: The schedules by name.
SCHEDULES: Mapping[str, type[Plan]] = {one.__name__: one for one in Plan.__subclasses__()}


#: Plans by the names of nodes.
Plans = Mapping[str, Plan | None]


class Laid(dict[str, Layout]):
    """Layouts of values, and with them the plans of nodes; each by name."""

    def __init__(self, layouts: Mapping[str, Layout], plans: Plans | None = None):
        super().__init__(layouts)
        self.plans = dict(plans or {})

    def add(self, layouts: Mapping[str, Layout]) -> None:
        """Add layouts, and the plans that belong to them."""
        self.update(layouts)
        self.plans |= plans_of(layouts)


def plans_of(layouts: Mapping[str, Layout]) -> Plans:
    """Return the plans that belong to layouts; a layer without schedules names none."""
    return layouts.plans if isinstance(layouts, Laid) else {}


def follows(layouts: Mapping[str, Layout], name: str, plan: Plan | None) -> bool:
    """Whether layouts go with the plan that node ``name`` must have; None is any."""
    return plan is None or plans_of(layouts).get(name) == plan


def parse_plan(facts: Any) -> Plan:
    """Return the plan of a text form. ValueError, with the reason, if there is no such plan."""
    try:
        ((name, numbers),) = facts.items()
        wanted = {field.name: str(field.type) for field in fields(SCHEDULES[name])}
        values = {key: _read(one) for key, one in numbers.items()}
        if all(_kind(one) in wanted[key] for key, one in values.items()):
            return SCHEDULES[name](**values)
    except (AttributeError, KeyError, PycompilerError, TypeError, ValueError):
        pass
    known = (f"{key} ({', '.join(x.name for x in fields(one))})" for key, one in SCHEDULES.items())
    raise ValueError(f"{facts} is no plan; the schedules are {', '.join(known)}")


def _shown(number: object) -> object:
    if not isinstance(number, tuple):
        return number.value if isinstance(number, Level) else number
    if all(isinstance(one, SubAxis) for one in number):
        return f"({', '.join(map(str, number))})"
    return [one.value for one in number]


def _read(number: Any) -> Any:
    if isinstance(number, list):
        return tuple(map(Level, number))
    if isinstance(number, str) and number.startswith("("):
        return parse_layout(f"({number})").axes[0]
    return Level(number) if number in {level.value for level in Level} else number


def _kind(number: object) -> str:
    """Return the type of a number as the fields of schedules name it."""
    if isinstance(number, tuple):
        return f"tuple[{type(number[0]).__name__}, ...]" if number else "tuple"
    return "None" if number is None else type(number).__name__
