"""Detects boxes with a small SSD: pictures of bytes, two feature maps; the host sorts the boxes."""

import argparse
import tempfile
from pathlib import Path

import torch
from mlsdk import Context, MNDevice, TensorLike, storage
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="mncore2:auto")
parser.add_argument("--outdir", default=str(Path(tempfile.gettempdir()) / "ssd"))
parser.add_argument("--side", type=int, default=1200)
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--classes", type=int, default=81)
arguments = parser.parse_args()
ANCHORS = 4


class SSD(nn.Module):
    """Two convolutions for each map; boxes and scores for each place of each map."""

    def __init__(self, width, classes):
        super().__init__()
        self.first = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        self.second = nn.Sequential(nn.Conv2d(width, width, 3, 2, 1), nn.ReLU())
        self.boxes = nn.ModuleList(nn.Conv2d(width, 4 * ANCHORS, 3, 1, 1) for _ in range(2))
        self.scores = nn.ModuleList(nn.Conv2d(width, classes * ANCHORS, 3, 1, 1) for _ in range(2))

    def forward(self, picture):
        x = picture.permute(0, 3, 1, 2).float() / 255
        maps = [self.first(x)]
        maps.append(self.second(maps[0]))
        boxes = [head(own).flatten(2) for head, own in zip(self.boxes, maps, strict=True)]
        scores = [head(own).flatten(2) for head, own in zip(self.scores, maps, strict=True)]
        return torch.cat(boxes, 2), torch.cat(scores, 2)


def best(boxes: TensorLike, scores: TensorLike) -> torch.Tensor:
    """Return the ten places with the highest scores, on the host."""
    return scores.flatten().topk(10).indices


torch.manual_seed(0)
model = SSD(arguments.width, arguments.classes).eval()
context = Context(MNDevice(arguments.device))
Context.switch_context(context)
context.registry.register("ssd", model)


def detect(inputs):
    boxes, scores = model(inputs["picture"])
    return {"boxes": boxes, "scores": scores}


sample = {"picture": torch.zeros(1, arguments.side, arguments.side, 3, dtype=torch.uint8)}
compiled = context.compile(
    detect, sample, storage.path(arguments.outdir), options={"option_json": "O1"}
)
picture = torch.randint(256, sample["picture"].shape, dtype=torch.uint8)
out = compiled({"picture": picture})
with torch.no_grad():
    wanted = model(picture)
assert torch.allclose(out["boxes"].cpu(), wanted[0], atol=1e-4)
print("best", best(out["boxes"], out["scores"]).tolist() == best(*wanted).tolist())
