"""How the instructions of a program are known: `emu2 run --fidelity`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import emu2

from .source_text import lines

#: Evidence from the best to the worst, as the spec names it, and what it means.
MEANING = {
    "vendor-output": "reproduced against real output",
    "manual": "stated by the manual",
    "derived": "derived",
    "guess": "a guess",
}
REPRODUCED = "vendor-output"
MOST_SHOWN = 20
_EVIDENCE = re.compile(r"^Evidence: (\S+)", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z]\w*")
_IDLE = re.compile(r"nop/(\d+)")
_DEBUG = ("d ", "#", "r ")


@dataclass(frozen=True)
class Fidelity:
    """Executed instructions by evidence, and the statements that are not reproduced."""

    counts: Counter[str]
    others: Counter[tuple[str, str]]
    """Statements with the evidence of their weakest instruction, and how often they run."""

    def counted(self) -> dict[str, int]:
        """Return how many executed instructions have each evidence, the best first."""
        return {evidence: self.counts[evidence] for evidence in MEANING}

    def rows(self) -> Iterator[str]:
        """Yield the lines of the report."""
        total = sum(self.counts.values())
        for evidence, meaning in MEANING.items():
            count = self.counts[evidence]
            if count:
                yield f"{count:>10} {count / total:>6.1%}  {meaning}"
        for (statement, evidence), count in self.others.most_common(MOST_SHOWN):
            yield f"  {MEANING[evidence]}, {count} x: {statement}"
        hidden = len(self.others) - MOST_SHOWN
        if hidden > 0:
            yield f"  and {hidden} more"


def fidelity(program: emu2.Program) -> Fidelity:
    """Return how the instructions of a program are known. A machine has no branches: all run once.

    The evidence is that of an instruction. A form of it may be known less well; its page says so.
    """
    known: dict[str, str] = {}
    order = list(MEANING)
    counts: Counter[str] = Counter()
    others: Counter[tuple[str, str]] = Counter()
    for line in lines(emu2.to_text(program)):
        if not line or line.startswith(_DEBUG):
            continue
        worst = REPRODUCED
        for part in line.split(";"):
            match = _NAME.match(part.strip())
            if match is None:
                continue
            name = match[0]
            if name not in known:
                found = _EVIDENCE.search(program.spec.page(name) or "")
                known[name] = found[1] if found and found[1] in MEANING else "guess"
            evidence = known[name]
            idle = _IDLE.match(part.strip())
            counts[evidence] += int(idle[1]) if idle else 1
            worst = max(worst, evidence, key=order.index)
        if worst != REPRODUCED:
            others[line, worst] += 1
    return Fidelity(counts, others)
