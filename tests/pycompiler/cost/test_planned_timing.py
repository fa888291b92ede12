"""Plans follow the timing of the machine: a program is the fastest where it was planned for."""

from __future__ import annotations

import pytest
from compiling import LONG, compiled, sampled
from corpus.programs import FAST_DRAM, NETWORKS, SLOW_MOVES

import emu2

#: `make test` has one that compiles quickly.
NAMES = ["residual_perceptron"]
if LONG:
    NAMES += ["embedding", "perceptron", "cnn", "bottleneck", "pyramid", "gru", "lstm"]
    NAMES += ["four_layers", "encoder"]


@pytest.mark.parametrize("machine", sampled([FAST_DRAM, SLOW_MOVES], first=1))
def test_programs_are_fastest_where_they_were_planned_for(machine: str) -> None:
    """The machines have the memories of `mncore2`, so its programs run on them."""
    spec, total, foreign = emu2.Spec.load(machine), 0, 0
    for name in NAMES:
        mine, other = (
            emu2.assemble(compiled(NETWORKS[name](), own, float_dtype="mixed")[0].vsm, spec)
            for own in (machine, "mncore2")
        )
        cycles, others = (program.report()["cycles"] for program in (mine, other))
        # The search for a plan is no proof: another one may be a little better.
        assert cycles <= 1.05 * others, name
        total, foreign = total + cycles, foreign + others
    assert total < foreign


@pytest.mark.long
def test_plans_change_as_the_timing_says() -> None:
    """What DRAM gives fast is loaded again; MVs that begin late are fewer, and larger."""
    found: dict[str, tuple[int, int]] = {}
    for machine in ("mncore2", FAST_DRAM, SLOW_MOVES):
        text = compiled(NETWORKS["bottleneck"](), machine, float_dtype="mixed")[0].vsm
        report = emu2.assemble(text, emu2.Spec.load(machine)).report()
        moves = sum(line.startswith("mv") for line in text.split("\n"))
        found[machine] = report["dram_words"]["read"], moves
    plain, fast, slow = found["mncore2"], found[FAST_DRAM], found[SLOW_MOVES]
    assert fast[0] > 1.5 * plain[0]
    assert slow[1] < plain[1]
    assert slow[0] / slow[1] > plain[0] / plain[1]
