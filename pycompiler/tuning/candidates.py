"""Which options the search tries, in rounds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..options import OFF, Options, decisive, parse_options
from ..pfvm.update_order import IMMEDIATE, LAST
from ..planners.layout import PLANNERS
from ..presets.read import read_preset, same_bits


@dataclass(frozen=True)
class Candidate:
    """Options to try: ``changes`` are what they have beside those that were asked for."""

    name: str
    changes: Mapping[str, Any]
    options: Options


@dataclass(eq=False)
class Candidates:
    """Makes candidates; each is made once.

    ``asked`` are the options that the caller gave, with those of a preset that they name, and
    ``fixed`` the names of those that the search must keep. ``checked`` are the same, checked.
    ``training`` says whether the model computes new values of registered ones.
    """

    _asked: Mapping[str, Any]
    _fixed: Collection[str]
    _checked: Options
    training: bool = False
    _seen: set[str] = field(default_factory=set)

    def as_asked(self) -> Candidate:
        """Return the options as they were asked for."""
        (found,) = self._new([("as asked", {})])
        return found

    def presets(self) -> list[Candidate]:
        """Return a candidate for each preset; what it does not say stays as asked."""
        return self._new((f"preset {name}", read_preset(name).options) for name in same_bits())

    def families(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Yield the strategy families: an option, and the values that are tried."""
        yield "layout_planner", tuple(PLANNERS)
        yield "time_slice", ("auto", "fit", "off")
        if self.training:
            yield "update", (LAST, IMMEDIATE)

    def family(self, option: str, values: Collection[Any], best: Candidate) -> list[Candidate]:
        """Return a candidate for each value of an option, on top of the best options so far."""
        return self._new(
            (f"{best.name}, {option}={value}", {**best.changes, option: value}) for value in values
        )

    def _new(self, made: Iterator[tuple[str, Mapping[str, Any]]] | list[Any]) -> list[Candidate]:
        out = []
        for name, changes in made:
            own = {key: value for key, value in changes.items() if key not in self._fixed}
            options = replace(
                parse_options({**self._asked, **own}), io_layouts=self._checked.io_layouts, tune=OFF
            )
            key = repr(sorted(decisive(options).items()))
            if key not in self._seen:
                self._seen.add(key)
                out.append(Candidate(name, own, options))
        return out
