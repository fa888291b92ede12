"""Tunes a Qwen2 of transformers: gradients on the device, the step of torch's AdamW on the host."""

import argparse
import json
import tempfile
from pathlib import Path

import torch
from mlsdk import Context, MNDevice, set_tensor_name, storage, trace_event, trace_scope
from transformers import Qwen2Config, Qwen2ForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="mncore2:auto")
parser.add_argument("--outdir", default=str(Path(tempfile.gettempdir()) / "slm_sft"))
parser.add_argument("--layers", type=int, default=28)
parser.add_argument("--width", type=int, default=1536)
parser.add_argument("--length", type=int, default=4096)
parser.add_argument("--steps", type=int, default=10)
arguments = parser.parse_args()

torch.manual_seed(0)
config = Qwen2Config(
    vocab_size=64,
    hidden_size=arguments.width,
    intermediate_size=2 * arguments.width,
    num_hidden_layers=arguments.layers,
    num_attention_heads=2,
    num_key_value_heads=1,
    attn_implementation="eager",
)
model = Qwen2ForCausalLM(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
context = Context(MNDevice(arguments.device))
Context.switch_context(context)
context.registry.register("model0", model)
for name, parameter in model.named_parameters():
    parameter.grad = torch.zeros_like(parameter)
    set_tensor_name(parameter.grad, f"gradient.{name}")
    context.register_buffer(parameter.grad)
gradients = [parameter.grad for parameter in model.parameters()]


def gradient_step(inputs):
    for parameter in model.parameters():
        parameter.grad.zero_()
    logits = model(input_ids=inputs["ids"]).logits
    loss = torch.nn.functional.cross_entropy(logits[0, :-1], inputs["ids"][0, 1:])
    loss.backward()
    return {"loss": loss}


folder = storage.path(arguments.outdir)
folder.mkdir(parents=True, exist_ok=True)
(folder / "layout_spec.json").write_text(json.dumps([]))
sample = {"ids": torch.arange(arguments.length)[None] % 7}
compiled = context.compile(
    gradient_step,
    sample,
    folder / "step",
    options={
        "layout_spec": str(folder / "layout_spec.json"),
        "envs": {"CODEGEN_OPS_ON_HOST": "ChainerAdamW"},
    },
)
losses = []
with trace_scope(str(folder / "trace.pb")):
    for _ in range(arguments.steps):
        with trace_event("gradients"):
            losses.append(compiled(sample)["loss"].item())
        with trace_event("update"):
            context.synchronize()
            optimizer.step()
            for parameter in model.parameters():
                context.get_registered_value_proxy(parameter).load_from(parameter.detach())
print("losses", " ".join(f"{loss:.4f}" for loss in losses))
assert losses[-1] < losses[0]
