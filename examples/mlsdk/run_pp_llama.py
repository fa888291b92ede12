"""Runs the stages of `compile_pp_llama.py`, one process for each, and compares with torch."""

import argparse
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from mlsdk import Context, MNDevice, storage
from stages import llama, sample_of


def run(rank, arguments, meeting):
    dist.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=arguments.stages
    )
    context = Context(MNDevice(arguments.device))
    Context.switch_context(context)
    stage = context.load_codegen_dir(storage.path(arguments.outdir) / f"stage{rank}")
    inputs = sample_of(rank, arguments.length, arguments.width)
    if rank > 0:
        dist.recv(inputs["x"], rank - 1)
    found = stage(inputs)["y"].cpu()
    if rank < arguments.stages - 1:
        dist.send(found, rank + 1)
    else:
        tokens = sample_of(0, arguments.length, arguments.width)["x"]
        with torch.no_grad():
            wanted = llama(arguments.layers, arguments.width)(tokens).logits
        print("difference", f"{(found - wanted).abs().max().item():.0e}", flush=True)
        assert torch.allclose(found, wanted, atol=1e-3)
    context.invalidate()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="mncore2:auto")
    parser.add_argument("--outdir", default=str(Path(tempfile.gettempdir()) / "pp_llama"))
    parser.add_argument("--layers", type=int, default=22)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--stages", type=int, default=4)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        processes.spawn(run, (arguments, f"{folder}/meeting"), arguments.stages)
