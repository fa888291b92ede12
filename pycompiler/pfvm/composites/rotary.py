"""RotaryEmbedding: turns of pairs of channels."""

from __future__ import annotations

from collections.abc import Sequence

from .writer import Writer


def rotary_embedding(write: Writer) -> str | bool:
    """Turn pairs of channels by an angle that depends on the place: two products each."""
    shape, elem = write.type(0).shape, write.type(0).elem
    short = elem in ("float16", "bfloat16")  # they are computed as singles
    given = (write.cast(name, "float") if short else name for name in write.node.input[:3])
    value, cosine, sine = given
    places = write.input(3)
    if len(shape) == 3:
        heads = int(write.attribute("num_heads", 0))
        if not heads or shape[2] % heads:
            return False
        batch, length, channels = shape[0], shape[1], shape[2] // heads
        wide: Sequence[int] = (batch, length, heads, channels)
        value, axis = write.reshape(value, wide), 2
    else:
        batch, heads, length, channels = shape
        wide, axis = shape, 1
    turned = int(write.attribute("rotary_embedding_dim", 0)) or channels
    pairs = turned // 2
    angles = [batch, length, pairs]
    angles.insert(axis, 1)
    if places:
        cosine, sine = (write.op("Gather", cache, places, axis=0) for cache in (cosine, sine))
    cosine, sine = (write.reshape(cache, angles) for cache in (cosine, sine))
    interleaved = bool(int(write.attribute("interleaved", 0)))
    rest = write.cut(value, [3], [turned], [channels]) if turned < channels else ""
    value = write.cut(value, [3], [0], [turned]) if rest else value
    apart = (*wide[:3], pairs, 2) if interleaved else (*wide[:3], 2, pairs)
    pair_axis = 4 if interleaved else 3
    value = write.reshape(value, apart)
    one, other = (
        write.reshape(write.cut(value, [pair_axis], [n], [n + 1]), (*wide[:3], pairs))
        for n in range(2)
    )
    real = write.op("Sub", write.op("Mul", one, cosine), write.op("Mul", other, sine))
    imaginary = write.op("Add", write.op("Mul", one, sine), write.op("Mul", other, cosine))
    single = (*apart[:pair_axis], 1, *apart[pair_axis + 1 :])
    parts = [write.reshape(part, single) for part in (real, imaginary)]
    value = write.reshape(write.op("Concat", *parts, axis=pair_axis), (*wide[:3], turned))
    if rest:
        value = write.op("Concat", value, rest, axis=3)
    value = write.reshape(value, shape)
    return write.cast(value, elem) if short else write.op("Identity", value)
