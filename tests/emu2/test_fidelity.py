"""How instructions are known: counts, and the statements that are not reproduced."""

from __future__ import annotations

import json
import re
from pathlib import Path

from click.testing import CliRunner

import emu2
from emu2.cli import cli
from emu2.fidelity import MEANING, fidelity

SPEC = emu2.Spec.load("mncore2")


def test_counts() -> None:
    """A `nop/N` counts N times, and each instruction of a line counts."""
    text = (
        "nop/3; wait i10\nladd $lm0 $ln0 $lr0; dvadd $lm0 $ln0 $ls0\nmsl $lm0 $lr0\nmsl $lm0 $lr0\n"
    )
    found = fidelity(emu2.assemble(text + "d get $lr0 1\n", SPEC, policy="run"))
    assert found.counts == {"vendor-output": 6, "manual": 2}
    assert found.others == {("msl $lm0 $lr0", "manual"): 2}
    rows = list(found.rows())
    assert rows[0].split() == ["6", "75.0%", *MEANING["vendor-output"].split()]
    assert rows[-1] == "  stated by the manual, 2 x: msl $lm0 $lr0"


def test_every_instruction_is_known() -> None:
    """Each mnemonic has a page whose evidence has a meaning."""
    for name in SPEC.mnemonics:
        found = re.search(r"^Evidence: (\S+)", SPEC.page(name) or "", re.MULTILINE)
        assert found is not None, name
        assert found[1] in MEANING, name


def test_the_option(tmp_path: Path) -> None:
    (tmp_path / "k.vsm").write_text("msl $lm0 $lr0\n")
    done = CliRunner().invoke(cli, ["run", "--fidelity", str(tmp_path / "k.vsm")])
    assert (done.exit_code, done.stdout) == (0, "")
    assert "100.0%  stated by the manual" in done.stderr
    done = CliRunner().invoke(cli, ["run", "--fidelity", "--report", "-", str(tmp_path / "k.vsm")])
    found = json.loads(done.stdout)
    assert found["fidelity"] == {"vendor-output": 0, "manual": 1, "derived": 0, "guess": 0}
    assert found["steps"] == 1
