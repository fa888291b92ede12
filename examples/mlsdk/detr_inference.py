"""Detects objects with a DETR of transformers: ResNet, transformer encoder and decoder."""

import argparse
import tempfile
from pathlib import Path

import torch
from mlsdk import Context, MNDevice, storage
from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="mncore2:auto")
parser.add_argument("--outdir", default=str(Path(tempfile.gettempdir()) / "detr"))
parser.add_argument("--side", type=int, default=800)
parser.add_argument("--width", type=int, default=256)
parser.add_argument("--layers", type=int, default=6)
parser.add_argument("--queries", type=int, default=100)
arguments = parser.parse_args()

torch.manual_seed(0)
small = arguments.width // 8
config = DetrConfig(
    backbone_config=ResNetConfig(
        embedding_size=small,
        hidden_sizes=[small, 2 * small],
        depths=[1, 1],
        layer_type="basic",
        out_features=["stage2"],
    ),
    d_model=arguments.width,
    encoder_layers=arguments.layers,
    decoder_layers=arguments.layers,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
    encoder_ffn_dim=2 * arguments.width,
    decoder_ffn_dim=2 * arguments.width,
    num_queries=arguments.queries,
    num_labels=5,
)
model = DetrForObjectDetection(config).eval()
context = Context(MNDevice(arguments.device))
Context.switch_context(context)
context.registry.register("detr", model)


def detect(inputs):
    found = model(pixel_values=inputs["picture"], pixel_mask=inputs["mask"])
    return {"boxes": found.pred_boxes, "logits": found.logits}


side = arguments.side
sample = {"picture": torch.randn(1, 3, side, side), "mask": torch.ones(1, side, side).long()}
compiled = context.compile(
    detect, sample, storage.path(arguments.outdir), options={"option_json": "O1"}
)
out = compiled(sample)
with torch.no_grad():
    wanted = detect(sample)
for name, own in wanted.items():
    print(name, tuple(own.shape), torch.allclose(out[name].cpu(), own, atol=1e-3))
    assert torch.allclose(out[name].cpu(), own, atol=1e-3)
