"""Runs the stages of `compile_pp_llama.py`, one process for each, and compares with torch."""

import argparse
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from mlsdk import Context, MNDevice, storage
from stages import PROMPT, after_a_token, llama, padded_prompt


def run(rank, arguments, meeting):
    """Take what the stage before sends, and send on; the last sends the token to the first."""
    place = f"file://{meeting}"
    dist.init_process_group("gloo", init_method=place, rank=rank, world_size=arguments.stages)
    context = Context(MNDevice(arguments.device))
    Context.switch_context(context)
    stages = {
        phase: context.load_codegen_dir(storage.path(arguments.outdir) / phase / f"stage_{rank}")
        for phase in ("prefill", "decode")
    }
    inputs, tokens, last = padded_prompt(arguments.length), [], arguments.stages - 1
    parts = ("hidden_states", "position_embeddings_cos", "position_embeddings_sin")
    for step in range(arguments.tokens):
        stage = stages["decode" if step else "prefill"]
        if rank > 0:
            for name in parts[: 3 if rank < last else 1]:
                inputs[name] = torch.zeros(stage.input_specs[name].shape)
                dist.recv(inputs[name], rank - 1)
        outputs = stage(inputs)
        if rank < last:
            for name in parts[: 3 if rank < last - 1 else 1]:
                dist.send(outputs[f"{name}_out"].cpu().contiguous(), rank + 1)
            token = torch.zeros(1, 1, dtype=torch.int64)
        else:
            token = outputs["logits"].cpu().argmax(dim=2)[:, -1:]
        dist.broadcast(token, last)
        tokens.append(token.item())
        inputs = after_a_token(inputs, token)
        inputs["past_key_values"] = outputs.get("past_key_values_out")
    if rank == 0:
        prompt, count = torch.tensor([PROMPT]), arguments.tokens
        model = llama(arguments.layers, arguments.width)
        wanted = model.generate(prompt, max_new_tokens=count, do_sample=False, eos_token_id=None)
        print("tokens", tokens, flush=True)
        assert PROMPT + tokens == wanted[0].tolist()
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
    parser.add_argument("--tokens", type=int, default=3, help="tokens to generate")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        processes.spawn(run, (arguments, f"{folder}/meeting"), arguments.stages)
