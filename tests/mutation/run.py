"""Change the spec in one place at a time and see whether the tests notice.

    python tests/mutation/run.py [--count 200] [--seed N]

Every flag, width, kernel, operand order, count, size, coefficient and rule of `isa_specs/mncore2`
may be changed; texts, examples and evidence are not. Each mutant is a copy of `isa_specs` that the
built test programs load instead of the built-in specs (EMU2_SPEC_PATH). Survivors are listed. The
exit code is 1 if the tests notice less than 95 % of the mutants.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SPECS = ROOT / "isa_specs"
# Fast ones first: most mutants do not load or break a fact. `manual` would notice any text.
TESTS = [
    "spec_load",
    "facts",
    "maps",
    "asm_parse",
    "asm_files",
    "spec_examples",
    "vectors",
    "acceptance",
    "l1bm_state",
    "word_vectors",
    "word_properties",
    "transfers_above",
]
KILLED_AT = 0.95
TIMEOUT_S = 300

TEXTS = {"doc", "evidence", "text", "expect", "expect_on", "note", "name", "syntax", "source_text"}
FLAGS = [
    "result_zero",
    "msb_clear",
    "no_carry",
    "no_borrow",
    "x_chosen",
    "x_bit_clear",
    "x_msb_clear",
    "y_msb_clear",
]
SWAPS = [
    ("long", "path"),
    ("shared", "split"),
    ("port", "data"),
    ("write", "read"),
    ("written", "always"),
    ("single", "half"),
    ("upper", "lower"),
    ("add", "sub"),
    ("inc", "dec"),
    ("and", "or"),
    ("lsl", "lsr"),
    ("bsl", "bsr"),
    ("max", "min"),
    ("band", "bor"),
    ("relu", "lrelu"),
    ("floor", "ftoi"),
    ("imm", "immu"),
    ("not", "lnot"),
    ("float", "int"),
    ("signed", "unsigned"),
]
NAMES = [
    "mab",
    "pe",
    "cycle",
    "l1b",
    "l2b",
    "group",
    "l2bm_lane",
    "l2bm_narrow",
    "mv_block",
    "mv_unit",
]


@dataclass(frozen=True)
class Mutant:
    """One line of one file, changed."""

    file: Path
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        """Show the change as a diff of one line."""
        return f"{self.file.name}:{self.line + 1}: {self.before.strip()}  ->  {self.after.strip()}"


def eligible_lines(text: str) -> list[tuple[int, str, str]]:
    """Return the lines that hold a fact: number, key, line. Texts and examples are skipped."""
    found = []
    inside = False  # a multi-line string
    section = ""
    for number, line in enumerate(text.splitlines()):
        quotes = line.count('"""')
        if inside or quotes:
            inside ^= quotes % 2 == 1
            continue
        header = re.match(r"^\[+([\w.]+)\]+", line)
        if header:
            section = header.group(1)
            continue
        pair = re.match(r"^(\w+) = (.*)$", line)
        if "example" in section or "vector" in section:
            continue
        if pair is None:
            if re.match(r"^\s+[\d]", line):
                found.append((number, "table", line))
            continue
        if pair.group(1) not in TEXTS:
            found.append((number, pair.group(1), line))
    return found


def variants(key: str, line: str) -> list[str]:
    """Return every single change of a line."""
    out = []
    code = line.split(" #")[0]
    rest = line[len(code) :]
    start = code.index("=") + 1 if "=" in code else 0
    head, value = code[:start], code[start:]

    def put(begin: int, end: int, new: str) -> None:
        out.append(head + value[:begin] + new + value[end:] + rest)

    for match in re.finditer(r"(?<![\w.])\d+(?![\w.])", value):
        number = int(match.group())
        for other in {number + 1, number - 1, number * 2} - {number}:
            if other >= 0:
                put(*match.span(), str(other))
    for match in re.finditer(r"\btrue\b|\bfalse\b", value):
        put(*match.span(), "false" if match.group() == "true" else "true")
    for match in re.finditer(
        r"(?<=[\w)\]] )[-+](?= )|(?<=[\w)])\*(?=[\w(])|(?<= )[/%](?= )", value
    ):
        other = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/"}[match.group()]
        put(*match.span(), other)
    if key in {
        "from",
        "to",
        "loop",
        "align",
        "unit",
        "tree",
        "minimum",
        "maximum",
        "source",
        "destination",
    }:
        for match in re.finditer(
            r"(?<![\w\"])\b("
            + "|".join(NAMES)
            + r")\b(?! =)(?!\")|(?<=\")("
            + "|".join(NAMES)
            + r")(?=\")",
            value,
        ):
            for other in NAMES:
                if other != match.group():
                    put(*match.span(), other)
    for match in re.finditer(r'"([^"]*)"', value):
        word = match.group(1)
        inner = (match.start(1), match.end(1))
        if key in {"flag", "unsigned_flag"}:
            for other in FLAGS:
                if other != word:
                    put(*inner, other)
        for a, b in SWAPS:
            if word in (a, b):
                put(*inner, b if word == a else a)
    items = re.match(r"^ \[(.*)\]\s*$", value)
    if items and "," in items.group(1):
        parts = [part.strip() for part in items.group(1).split(",") if part.strip()]
        for drop in range(len(parts)):
            out.append(f"{head} [{', '.join(parts[:drop] + parts[drop + 1 :])}]{rest}")
        if key in {"sources", "tree", "selectors"}:
            out.append(f"{head} [{', '.join(reversed(parts))}]{rest}")
    return [new for new in dict.fromkeys(out) if new != line]


def all_mutants() -> list[Mutant]:
    """Return every mutant of every file of the full chip's spec."""
    mutants = []
    for file in sorted((SPECS / "mncore2").glob("*.toml")):
        text = file.read_text()
        for number, key, line in eligible_lines(text):
            mutants += [Mutant(file, number, line, new) for new in variants(key, line)]
    return mutants


def built_tests() -> list[Path]:
    """Build the test programs and return those of TESTS that exist, in that order."""
    command = [
        "cargo",
        "test",
        "--release",
        "--package",
        "emu2",
        # Name the packages so that cargo selects the same features of emu2 as `make test`.
        "--package",
        "emu2-python",
        "--no-run",
        "--message-format=json",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    programs = {}
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and "test" in message["target"]["kind"]:
            programs[message["target"]["name"]] = Path(message["executable"])
    return [programs[name] for name in TESTS if name in programs]


def killed_by(mutant: Mutant, tests: list[Path]) -> str | None:
    """Return the name of the first test program that notices, or None."""
    with tempfile.TemporaryDirectory() as folder:
        specs = Path(folder) / "isa_specs"
        shutil.copytree(SPECS, specs)
        target = specs / "mncore2" / mutant.file.name
        lines = mutant.file.read_text().splitlines()
        lines[mutant.line] = mutant.after
        target.write_text("\n".join(lines) + "\n")
        environment = {**os.environ, "EMU2_SPEC_PATH": str(specs), "RUST_BACKTRACE": "0"}
        for test in tests:
            try:
                done = subprocess.run(
                    [test, "--quiet"],
                    cwd=ROOT / "emu2",
                    env=environment,
                    capture_output=True,
                    timeout=TIMEOUT_S,
                )
            except subprocess.TimeoutExpired:
                return f"{test.name} (hangs)"
            if done.returncode != 0:
                return test.name.rsplit("-", 1)[0]
    return None


def main() -> int:
    """Sample mutants, run the tests on each, and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument(
        "--only", metavar="FILE", help="mutants of this file alone, such as alu.toml"
    )
    parser.add_argument("--skip", metavar="FILE", help="no mutants of this file")
    options = parser.parse_args()
    mutants = [m for m in all_mutants() if m.file.name != options.skip]
    if options.only:
        mutants = [m for m in mutants if m.file.name == options.only]
    sample = random.Random(options.seed).sample(mutants, min(options.count, len(mutants)))
    tests = built_tests()
    clean = killed_by(
        Mutant(sample[0].file, sample[0].line, sample[0].before, sample[0].before), tests
    )
    if clean is not None:
        print(f"the tests fail without any change: {clean}")
        return 2
    print(f"{len(sample)} of {len(mutants)} mutants, seed {options.seed}", flush=True)
    survivors = []
    kills: dict[str, int] = {}
    for mutant in sample:
        killer = killed_by(mutant, tests)
        if killer is None:
            survivors.append(mutant)
            print(f"survived: {mutant}", flush=True)
        else:
            kills[killer] = kills.get(killer, 0) + 1
    share = 1 - len(survivors) / len(sample)
    print(f"killed {len(sample) - len(survivors)} of {len(sample)}: {100 * share:.1f} %")
    for name, count in sorted(kills.items(), key=lambda kill: -kill[1]):
        print(f"  {count:4} by {name}")
    return 0 if share >= KILLED_AT else 1


if __name__ == "__main__":
    sys.exit(main())
