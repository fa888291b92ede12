"""Networks of the corpus as ONNX graphs: families, training steps, and layers of drawn sizes.

Each function writes one graph and returns the model. No exporter takes part, so a graph is the same
for every version of torch.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod, sqrt
from pathlib import Path

import numpy as np
import onnx
from net import Net

Build = Callable[[], onnx.ModelProto]


def _net(*shape: int) -> Net:
    return Net(random.Random(prod(shape)), *shape)


def linear(net: Net, x: str, wide: int, narrow: int) -> str:
    """Append a product with a weight, and a bias."""
    scaled = net.array(net.draw.standard_normal((wide, narrow)) / sqrt(wide))
    return net.put("Add", net.put("MatMul", x, scaled), net.weights(narrow))


def norm(net: Net, x: str, width: int) -> str:
    return net.put("LayerNormalization", x, net.weights(width), net.weights(width), axis=-1)


def convolution(
    net: Net, x: str, ins: int, outs: int, kernel: int, stride: int = 1, group: int = 1
) -> str:
    """Append a convolution with its bias; its padding keeps the size at stride 1."""
    scale = sqrt(ins // group * kernel * kernel)
    weight = net.array(net.draw.standard_normal((outs, ins // group, kernel, kernel)) / scale)
    facts = {"pads": [kernel // 2] * 4, "strides": [stride] * 2, "group": group}
    return net.put("Conv", x, weight, net.weights(outs), **facts)


def image_norm(net: Net, x: str, channels: int) -> str:
    """Append a BatchNormalization with running statistics."""
    positive = net.array(1 + net.draw.random(channels))
    shift = [net.weights(channels) for _ in range(2)]
    return net.put("BatchNormalization", x, positive, *shift, positive)


def attention(net: Net, x: str, batch: int, length: int, width: int, heads: int) -> str:
    """Append self-attention with one product for queries, keys and values."""
    part = width // heads
    read = linear(net, x, width, 3 * width)
    q, k, v = (
        net.put(
            "Transpose",
            net.view(net.cut(read, n * width, (n + 1) * width, -1), batch, length, heads, part),
            perm=[0, 2, 3, 1] if n == 1 else [0, 2, 1, 3],
        )
        for n in range(3)
    )
    scores = net.put("Mul", net.put("MatMul", q, k), net.number(1 / sqrt(part)))
    summed = net.put("MatMul", net.put("Softmax", scores, axis=-1), v)
    joined = net.view(net.put("Transpose", summed, perm=[0, 2, 1, 3]), batch, length, width)
    return linear(net, joined, width, width)


def encoder_layer(net: Net, x: str, batch: int, length: int, width: int, heads: int) -> str:
    """Append an encoder layer with the norms before attention and before the MLP."""
    attended = attention(net, norm(net, x, width), batch, length, width, heads)
    x = net.put("Add", x, attended)
    up = net.put("Gelu", linear(net, norm(net, x, width), width, 4 * width))
    return net.put("Add", x, linear(net, up, 4 * width, width))


def encoder(batch: int, length: int, width: int, heads: int, layers: int = 1) -> onnx.ModelProto:
    net, x = _net(batch, length, width), "x"
    for _ in range(layers):
        x = encoder_layer(net, x, batch, length, width, heads)
    return net.model([x])


def language_model(length: int, width: int, heads: int, words: int) -> onnx.ModelProto:
    """A decoder of one layer: embeddings, causal attention through a mask, a head."""
    net = _net(length, words)
    tokens = net.array(net.draw.integers(0, words, length), np.int64)
    table = net.weights(words, width)
    x = net.put("Add", net.put("Gather", table, tokens), net.weights(length, width))
    x = net.put("Add", x, linear(net, "x", words, width))
    x = encoder_layer(net, net.view(x, 1, length, width), 1, length, width, heads)
    logits = net.put("MatMul", norm(net, x, width), net.put("Transpose", table, perm=[1, 0]))
    return net.model([net.put("Softmax", logits, axis=-1)])


def perceptron(batch: int, widths: Sequence[int]) -> onnx.ModelProto:
    net, x = _net(batch, widths[0]), "x"
    for number, (wide, narrow) in enumerate(pairwise(widths)):
        x = net.put("Relu", x) if number else x
        x = linear(net, x, wide, narrow)
    return net.model([x])


def residual_perceptron(batch: int, width: int, layers: int) -> onnx.ModelProto:
    net, x = _net(batch, width), "x"
    for _ in range(layers):
        x = net.put("Add", x, net.put("Relu", linear(net, norm(net, x, width), width, width)))
    return net.model([x])


def small_cnn(batch: int, channels: int, size: int) -> onnx.ModelProto:
    """Two convolutions with norms and pools, a mean over pixels, a product."""
    net = _net(batch, 3, size, size)
    x = net.put("Relu", image_norm(net, convolution(net, "x", 3, channels, 3), channels))
    x = net.put("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = net.put("Relu", convolution(net, x, channels, 2 * channels, 3))
    x = net.put("GlobalAveragePool", x)
    return net.model([linear(net, net.put("Flatten", x), 2 * channels, 10)])


def bottleneck(batch: int, channels: int, size: int, stride: int = 1) -> onnx.ModelProto:
    """A bottleneck of a residual network; with a stride, its shortcut is a convolution."""
    net, wide = _net(batch, channels, size, size), channels
    x = net.put("Relu", convolution(net, "x", wide, wide // 4, 1))
    x = net.put("Relu", convolution(net, x, wide // 4, wide // 4, 3, stride))
    x = convolution(net, x, wide // 4, wide, 1)
    short = "x" if stride == 1 else convolution(net, "x", wide, wide, 1, stride)
    return net.model([net.put("Relu", net.put("Add", x, short))])


def inverted_bottleneck(batch: int, channels: int, size: int, kernel: int) -> onnx.ModelProto:
    """A depthwise block with squeeze and excitation."""
    net, wide = _net(batch, channels, size, size), 4 * channels

    def silu(value: str) -> str:
        return net.put("Mul", value, net.put("Sigmoid", value))

    x = silu(convolution(net, "x", channels, wide, 1))
    x = silu(convolution(net, x, wide, wide, kernel, group=wide))
    gate = net.put("GlobalAveragePool", x)
    gate = silu(convolution(net, gate, wide, channels, 1))
    gate = net.put("Sigmoid", convolution(net, gate, channels, wide, 1))
    x = convolution(net, net.put("Mul", x, gate), wide, channels, 1)
    return net.model([net.put("Add", "x", x)])


def pyramid(batch: int, channels: int, size: int) -> onnx.ModelProto:
    """A step down, a step up by resizing, and both ways joined."""
    net = _net(batch, channels, size, size)
    down = net.put("Relu", convolution(net, "x", channels, 2 * channels, 3, 2))
    up = net.put("Resize", down, "", net.array(np.array([1, 1, 2, 2])), mode="nearest")
    joined = net.put("Concat", "x", up, axis=1)
    return net.model([net.put("Relu", convolution(net, joined, 3 * channels, channels, 3))])


def recurrent(op: str, length: int, batch: int, wide: int, hidden: int) -> onnx.ModelProto:
    net, gates = _net(length, batch, wide), {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    weights = [net.weights(1, gates * hidden, size) for size in (wide, hidden)]
    outputs = 3 if op == "LSTM" else 2
    put = net.put(op, "x", *weights, outputs=outputs, hidden_size=hidden)
    return net.model([f"{put}_0"])


def embedding(rows: int, width: int, picks: int) -> onnx.ModelProto:
    """Rows of a table that indices of the call name, and a norm over them."""
    net = _net(picks)
    where = net.put("Cast", "x", to=onnx.TensorProto.INT64)
    return net.model([norm(net, net.put("Gather", net.weights(rows, width), where), width)])


def stencil(height: int, width: int, sweeps: int) -> onnx.ModelProto:
    """The mean of the four neighbours of each inner element, several times."""
    net, x = _net(height, width), "x"
    for _ in range(sweeps):
        cuts = [(0, -2, 1, -1), (2, 1 << 30, 1, -1), (1, -1, 0, -2), (1, -1, 2, 1 << 30)]
        parts = [net.cut(net.cut(x, top, end, 0), left, right, 1) for top, end, left, right in cuts]
        total = net.put("Add", net.put("Add", *parts[:2]), net.put("Add", *parts[2:]))
        inner = net.put("Mul", total, net.number(0.25))
        x = net.put("Pad", inner, net.ints(1, 1, 1, 1))
    return net.model([x])


def training_step(name: str) -> onnx.ModelProto:
    """Return a step that trains all weights of a network: mean square of its result, updates.

    The files are graphs, with drawn numbers as weights.
    """
    model = onnx.load(Path(__file__).parent / "steps" / f"{name}.onnx")
    draw = np.random.default_rng(0)
    for tensor in model.graph.initializer:
        if tensor.data_type == tensor.FLOAT and not (tensor.raw_data or tensor.float_data):
            tensor.raw_data = draw.standard_normal(tensor.dims).astype(np.float32).tobytes()
    return model


def drawn_encoder(number: int) -> onnx.ModelProto:
    """An encoder layer whose sizes are drawn; most of them are no round numbers."""
    dice = random.Random(f"encoder {number}")
    heads = dice.choice((1, 2, 3, 4, 5, 6))
    width = heads * dice.randint(-(-48 // heads), 300 // heads)
    return encoder(dice.choice((1, 1, 2, 3)), dice.randint(7, 150), width, heads)


def drawn_convolutions(number: int) -> onnx.ModelProto:
    """A block of convolutions of drawn kind and sizes."""
    dice = random.Random(f"convolutions {number}")
    batch, size = dice.choice((1, 2, 3, 5)), dice.randint(5, 30)
    kind = dice.choice(("bottleneck", "strided", "depthwise", "pyramid"))
    if kind == "depthwise":
        return inverted_bottleneck(batch, dice.randint(5, 40), size, dice.choice((3, 5)))
    if kind == "pyramid":
        return pyramid(batch, dice.randint(3, 40), 2 * (size // 2 + 1))
    return bottleneck(batch, 4 * dice.randint(3, 40), size, 2 if kind == "strided" else 1)


def drawn_product(number: int) -> onnx.ModelProto:
    """Two products of drawn sizes with a function between them."""
    dice = random.Random(f"product {number}")
    widths = [dice.randint(17, 700) for _ in range(3)]
    return perceptron(dice.randint(1, 300), widths)
