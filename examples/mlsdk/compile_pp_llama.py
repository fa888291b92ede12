"""Compiles the stages of a Llama, each into a folder; `run_pp_llama.py` runs them as a pipeline."""

import argparse
import tempfile
from pathlib import Path

from mlsdk import Context, MNDevice, storage
from stages import Stage, llama, sample_of

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="mncore2:auto")
parser.add_argument("--outdir", default=str(Path(tempfile.gettempdir()) / "pp_llama"))
parser.add_argument("--layers", type=int, default=22)
parser.add_argument("--width", type=int, default=2048)
parser.add_argument("--length", type=int, default=256)
parser.add_argument("--stages", type=int, default=4)
arguments = parser.parse_args()

model = llama(arguments.layers, arguments.width)
for number in range(arguments.stages):
    context = Context(MNDevice(arguments.device))
    Context.switch_context(context)
    stage = Stage(model, number, arguments.stages)
    context.registry.register(f"stage{number}", stage)
    context.compile(
        lambda inputs, stage=stage: {"y": stage(inputs["x"])},
        sample_of(number, arguments.length, arguments.width),
        storage.path(arguments.outdir) / f"stage{number}",
    )
    context.invalidate()
    print("compiled stage", number)
