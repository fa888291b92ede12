"""The vendor's larger examples, as scripts of our own with the same calls, at small sizes.

Scripts that infer compare their results with torch and fail if they differ; those that train fail
if the loss does not fall. The easy examples are in `test_sdk_examples.py`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from compiling import SCRIPTS
from forked import Forks

from pycompiler.mlsdk.check import check_scripts

PAGE = Path(__file__).parents[3] / "docs" / "mlsdk_scripts.md"
LEGACY = "MNCORE_USE_LEGACY_ONNX_EXPORTER=1 "
DIGITS = "--pictures 320 --test-pictures 250"
TIMM = "run_timm.py --model_name test_resnet --side 32"
LLAMA = "--layers 2 --width 16 --length 6 --stages 4"
WHISPER = "--layers 1 --width 16 --heads 2 --frames 8 --positions 8 --tokens 3"
DIFFUSION = "--side 8 --width 8 --steps 4"

#: By the row of the page: the commands, and words of what the last one prints.
ROWS: dict[int, tuple[list[str], str]] = {
    10: ([f"mnist_train.py {DIGITS}", f"mnist_infer.py {DIGITS}"], r"accuracy 0\.\d+"),
    11: ([f"mnist.py {DIGITS}"], r"epoch 1: 5 steps, .*\naccuracy 0\.\d+"),
    12: ([f"{TIMM} --batch_size 2"], r"top (.*)\ntop \1\n"),
    14: (
        [f"whisper_inference.py {WHISPER}"],
        r"tokens \[1(, \d+){3}\]",
    ),
    15: (["ssd_inference.py --side 32 --width 4 --classes 3"], "best True"),
    16: (["detr_inference.py --side 32 --width 16 --layers 1 --queries 5"], r"logits .* True"),
    17: (["llm_infer.py --layers 1 --width 16 --positions 8 --tokens 3"], r"tokens \[3, 14, 15"),
    18: ([f"compile_pp_llama.py {LLAMA}", f"run_pp_llama.py {LLAMA}"], r"tokens \[\d+, \d+, \d+\]"),
    19: ([f"stable_diffusion.py {DIFFUSION}"], r"picture \(1, 3, 16, 16\) True"),
    20: ([f"train_diffusion.py {DIFFUSION} --batch 2"], r"losses( \d\.\d{4}){4}"),
    21: (["slm_sft.py --layers 1 --width 16 --length 8 --steps 3"], r"losses( \d\.\d{4}){3}"),
}
TRAINED = f"{TIMM} --batch_size 2 --mode train --steps 3"
#: Those that take few seconds on the host. The others run in `make test-long`, on the device too.
QUICK = (10, 15)


def said(command: str, device: str, folder: Path) -> str:
    """Return what a script prints; variables may stand before its name."""
    variables = dict(re.findall(r"(\w+)=(\S+) ", command))
    words = re.sub(r"\w+=\S+ ", "", command).split()
    done = subprocess.run(
        [sys.executable, "-m", "pycompiler.mlsdk", *words, "--outdir", str(folder)],
        cwd=SCRIPTS,
        capture_output=True,
        text=True,
        env={**os.environ, "MLSDK_DEVICE": device, **variables},
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def printed(row: int, device: str, folder: Path) -> str:
    commands, words = ROWS[row]
    found = [said(command, device, folder) for command in commands][-1]
    assert re.search(words, found)
    return found


@pytest.mark.parametrize("row", QUICK)
def test_on_the_host(row: int, tmp_path: Path, forks: Forks) -> None:
    commands, words = ROWS[row]
    for command in commands:
        name, *arguments = command.split()
        own = (SCRIPTS / name, *arguments, "--outdir", tmp_path)
        done = forks.module("pycompiler.mlsdk", *own, MLSDK_DEVICE="pfvm:cpu")
        assert done.returncode == 0, done.stderr
    assert re.search(words, done.stdout)


@pytest.mark.long
@pytest.mark.parametrize("row", [row for row in ROWS if row not in QUICK])
def test_more_on_the_host(row: int, tmp_path: Path) -> None:
    printed(row, "pfvm:cpu", tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("row", [row for row in ROWS if row != 10])
def test_on_the_device(row: int, tmp_path: Path) -> None:
    found = printed(row, "emu2:mini", tmp_path)
    if row in (20, 21):
        host = printed(row, "pfvm:cpu", tmp_path / "host").split()[1:]
        assert list(map(float, found.split()[1:])) == pytest.approx(
            list(map(float, host)), abs=2e-4
        )


@pytest.mark.long
def test_both_ways_to_train_agree(tmp_path: Path) -> None:
    losses = [said(f"{way}{TRAINED}", "pfvm:cpu", tmp_path) for way in ("", LEGACY)]
    assert losses[0] == losses[1]
    assert re.fullmatch(r"losses( \d\.\d{4}){3}\n", losses[0])


def test_every_row_has_a_script_that_the_check_knows(capfd: pytest.CaptureFixture[str]) -> None:
    """The page has all rows, in order, and its scripts are those of the folder."""
    text = PAGE.read_text()
    rows = re.findall(r"^\| (\d+) \|(.*)$", text, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 22))
    linked = {name for _, row in rows for name in re.findall(r"examples/mlsdk/(\w+\.py)", row)}
    assert linked <= {path.name for path in SCRIPTS.glob("*.py")}
    for number, row in rows:
        names = re.findall(r"examples/mlsdk/(\w+\.py)", row)
        assert names, number
        for command in ROWS.get(int(number), ([], ""))[0]:
            assert re.findall(r"\w+\.py", command)[0] in names
    assert check_scripts([str(SCRIPTS / name) for name in sorted(linked)]) == 0
    assert ", 0 findings" in capfd.readouterr().out
