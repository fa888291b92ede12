"""Compiles the stages of a Llama, each into a folder; `run_pp_llama.py` runs them as a pipeline."""

import argparse
import tempfile
from pathlib import Path

from mlsdk import Context, MNDevice, storage
from mlsdk.experimental.llm.kv_cache import kv_cache_to_legacy, kv_cache_to_tensor
from mlsdk.experimental.llm.modeling_staged_llama import split_llama
from stages import after_a_token, llama, padded_prompt

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="mncore2:auto")
parser.add_argument("--outdir", default=str(Path(tempfile.gettempdir()) / "pp_llama"))
parser.add_argument("--layers", type=int, default=22)
parser.add_argument("--width", type=int, default=2048)
parser.add_argument("--length", type=int, default=256)
parser.add_argument("--stages", type=int, default=4)
arguments = parser.parse_args()


def between(stage):
    """Take and return the cache as one tensor, of which the oldest place goes."""

    def forward(inputs):
        kept = inputs.get("past_key_values")
        inputs["past_key_values"] = None if kept is None else kv_cache_to_legacy(kept)
        outputs = stage(**inputs)
        pairs = outputs["past_key_values_out"]
        outputs["past_key_values_out"] = kv_cache_to_tensor(pairs)[:, :, :, :, 1:]
        return outputs

    return forward


stages = split_llama(llama(arguments.layers, arguments.width), arguments.stages)
inputs, caches = padded_prompt(arguments.length), {}
for phase in ("prefill", "decode"):
    passed = inputs
    for number, stage in enumerate(stages):
        context = Context(MNDevice(arguments.device))
        Context.switch_context(context)
        context.registry.register("model", stage)
        forward = between(stage)
        if number == 0:
            sample = {name: inputs[name] for name in ("input_ids", "position_ids")}
            forward = lambda inputs, stage=stage: stage(**inputs)  # noqa: E731
        elif number == len(stages) - 1:
            sample = {"hidden_states": passed["hidden_states_out"]}
            forward = lambda inputs, stage=stage: stage(**inputs)  # noqa: E731
        else:
            names = ("hidden_states", "position_embeddings_cos", "position_embeddings_sin")
            sample = {name: passed[f"{name}_out"] for name in names}
            sample |= {name: inputs[name] for name in ("attention_mask", "position_ids")}
            sample |= {"past_key_values": caches[number]} if phase == "decode" else {}
        folder = storage.path(arguments.outdir) / phase / f"stage_{number}"
        compiled = context.compile(forward, sample, folder)
        passed = {name: value.cpu() for name, value in compiled(sample).items()}
        caches[number] = passed.get("past_key_values_out")
        context.invalidate()
        print("compiled", phase, "of stage", number)
    inputs = after_a_token(inputs, passed["logits"].argmax(2)[:, -1:])
