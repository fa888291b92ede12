"""The networks of the diffusion scripts: a UNet that hears of a text and a time, and a decoder."""

import torch
from torch import nn
from torch.nn.functional import interpolate, scaled_dot_product_attention, silu


class Cross(nn.Module):
    """Attention of the places of a map to the words of a text."""

    def __init__(self, width, words):
        super().__init__()
        self.q, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.k, self.v = nn.Linear(words, width), nn.Linear(words, width)

    def forward(self, x, text):
        places = x.flatten(2).transpose(1, 2)
        heard = scaled_dot_product_attention(self.q(places), self.k(text), self.v(text))
        return x + self.out(heard).transpose(1, 2).reshape(x.shape)


class Block(nn.Module):
    """Two convolutions beside a sum; the time is added between them."""

    def __init__(self, inside, outside):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(2, inside), nn.GroupNorm(2, outside)
        self.conv1 = nn.Conv2d(inside, outside, 3, 1, 1)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1)
        self.time, self.skip = nn.Linear(16, outside), nn.Conv2d(inside, outside, 1)

    def forward(self, x, time):
        y = self.conv1(silu(self.norm1(x))) + self.time(time)[:, :, None, None]
        return self.skip(x) + self.conv2(silu(self.norm2(y)))


class UNet(nn.Module):
    """Predicts the noise in a picture of 4 channels."""

    def __init__(self, width, words):
        super().__init__()
        self.begin, self.end = nn.Conv2d(4, width, 3, 1, 1), nn.Conv2d(width, 4, 3, 1, 1)
        self.time = nn.Linear(8, 16)
        self.down, self.middle = Block(width, width), Block(width, 2 * width)
        self.cross, self.up = Cross(2 * width, words), Block(3 * width, width)

    def forward(self, x, time, text):
        angles = time[:, None] * 0.1 ** torch.arange(4)
        time = silu(self.time(torch.cat([angles.sin(), angles.cos()], 1)))
        kept = self.down(self.begin(x), time)
        low = self.cross(self.middle(nn.functional.avg_pool2d(kept, 2), time), text)
        x = torch.cat([interpolate(low, scale_factor=2.0), kept], 1)
        return self.end(self.up(x, time))


def decoder(width):
    """Return what makes a picture of three channels, twice as large, of four channels."""
    return nn.Sequential(
        nn.Conv2d(4, width, 3, 1, 1),
        nn.SiLU(),
        nn.Upsample(scale_factor=2.0),
        nn.Conv2d(width, 3, 3, 1, 1),
    )
