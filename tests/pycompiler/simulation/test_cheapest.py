"""Which of several ways is the cheapest, and whose programs are made to find out."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from pycompiler.simulation.cheapest import NEAR, cheapest


@dataclass
class Way:
    estimated: int
    real: int
    made: list[int] = field(default_factory=list)

    @property
    def cycles(self) -> int:
        self.made.append(self.real)
        return self.real


FAR = int(100 * NEAR) + 1


@pytest.mark.parametrize(
    ("ways", "best", "made", "cycles"),
    [
        ([(100, 7)], "0", "", [100]),
        ([(100, 7), (FAR, 3)], "0", "", [100, FAR]),
        ([(FAR, 3), (100, 7)], "1", "", [FAR, 100]),
        ([(100, 90), (FAR - 1, 80)], "1", "01", [90, 80]),
        ([(100, 90), (101, 90), (FAR, 1)], "0", "01", [90, 90, FAR]),
    ],
)
def test_programs_decide_between_near_estimates(
    ways: list[tuple[int, int]], best: str, made: str, cycles: list[int]
) -> None:
    named = {str(number): Way(*numbers) for number, numbers in enumerate(ways)}
    found, counted = cheapest(named)
    assert found == best
    assert "".join(name for name, way in named.items() if way.made) == made
    assert list(counted.values()) == cycles
