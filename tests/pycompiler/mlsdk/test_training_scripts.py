"""The scripts that train networks, at sizes that compile in seconds, on the emulator."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from compiling import SCRIPTS

SIZES = {
    "gpt.py": "--layers 1 --width 12 --heads 2 --sequence 5 --batch 2 --steps 3",
    "language_model.py --cell lstm": "--width 5 --sequence 3 --batch 3 --steps 3",
    "language_model.py --cell gru": "--width 5 --sequence 3 --batch 3 --steps 3",
    "ncf.py": "--users 9 --items 24 --width 3 --batch 7 --steps 2 --epochs 2",
    "resnet20.py": "--blocks 1 --batch 3 --steps 2",
}
#: Compiling this network for the device takes too long for a test.
ON_HOST = ("resnet20.py",)


def losses(script: str, *arguments: str) -> list[float]:
    """Run a script of ``SIZES`` and return the losses that it prints."""
    name, *more = script.split()
    own = [str(SCRIPTS / name), *more, *SIZES[script].split(), *arguments]
    said = subprocess.run(
        [sys.executable, "-m", "pycompiler.mlsdk", *own],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    return [float(loss) for loss in re.findall(r"loss ([\d.]+)", said.stdout)]


# Attention, cells, convolutions and embeddings train in other tests; so does a shorter script.
@pytest.mark.long
@pytest.mark.parametrize("script", SIZES)
def test_a_script_trains_as_torch_does(script: str, tmp_path: object) -> None:
    device = "pfvm:cpu" if script in ON_HOST else "emu2:mini"
    found = losses(script, "--device", device, "--outdir", str(tmp_path))
    other = ("--device", "pfvm:cpu") if script == "ncf.py" else ("--plain",)
    wanted = losses(script, *other, "--outdir", f"{tmp_path}/other")
    assert found
    assert found == pytest.approx(wanted, abs=2e-4)
