"""Random networks of pictures, compiled, written, loaded and run, against onnxruntime."""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import numpy as np
from compiling import with_seeds
from random_pictures import random_pictures

from pycompiler.build import build, load_function
from pycompiler.pfvm.session import HostSession
from pycompiler.runtime.device import Board, find_device

DEVICE = "emu2:mini"


def test_random_pictures(tmp_path: Path) -> None:
    def check(seed: int) -> None:
        model, inputs = random_pictures(random.Random(seed), edges=(4, 11))
        wanted = HostSession(model, "model").run(inputs)
        board = Board(find_device(DEVICE).target)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            build(lambda: model, DEVICE, board, {}, tmp_path / "out")
        found = load_function(tmp_path / "out", board).run(inputs)
        for name, reference in wanted.items():
            scale = float(np.abs(reference).max(initial=0)) + 1
            error = np.abs(found[name].values() - reference).max(initial=0)
            assert error <= 1e-4 * scale, f"seed {seed}"

    with_seeds(check, 1, 200)
