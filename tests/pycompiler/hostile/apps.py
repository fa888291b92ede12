"""Random damage to apps whose digest is right."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from typing import Any

import flatbuffers
import numpy as np

from pycompiler.app import FORMAT, read_app
from pycompiler.app.generated import gpfnapp_generated
from pycompiler.app.model import ALIGNED, DIGEST_BYTES

from .models import damaged_bytes

_fb: Any = gpfnapp_generated
_NUMBERS = (0, 1, 2, 3, 63, 64, 65, 255, 4096, (1 << 20) - 1, 1 << 20, (1 << 31) - 1, 1 << 40)


def sealed(data: bytes) -> bytes:
    """Return the bytes of an app with their digest."""
    return data + hashlib.sha256(data).digest()


def damaged_app(data: bytes, random: random.Random) -> bytes:
    """Return an app with a right digest and one or two faults: in its bytes or in its fields."""
    if random.random() < 0.4:
        body = data[:-DIGEST_BYTES]
        return sealed(body[:8] + damaged_bytes(body[8:], random))
    root = _fb.AppT.InitFromObj(_fb.App.GetRootAs(data, 0))
    app = read_app(data, "app")
    held = sum(-(-array.nbytes // ALIGNED) * ALIGNED for array in app.constants.values())
    held *= root.format == FORMAT
    for _ in range(random.choice((1, 1, 2))):
        _change(*random.choice(list(_fields(root))), random)
    builder = flatbuffers.Builder(1 << 12)
    try:
        builder.Finish(root.Pack(builder), b"GPFN")
    except Exception:  # a number that its field cannot hold: take other bytes instead
        return sealed(data[:8] + damaged_bytes(data[8:-DIGEST_BYTES], random))
    made, behind = bytes(builder.Output()), data[-DIGEST_BYTES - held : -DIGEST_BYTES]
    return sealed(made + bytes(-len(made) % ALIGNED) + behind)


def _fields(found: Any) -> Iterator[tuple[Any, str]]:
    for name, value in vars(found).items():
        yield found, name
        for part in value if isinstance(value, list) else []:
            if hasattr(part, "__dict__"):
                yield from _fields(part)
        if hasattr(value, "__dict__"):
            yield from _fields(value)


def _change(found: Any, name: str, random: random.Random) -> None:
    value = getattr(found, name)
    if isinstance(value, bool):
        setattr(found, name, not value)
    elif isinstance(value, int):
        setattr(found, name, random.choice((*_NUMBERS, value + 1, max(0, value - 1))))
    elif isinstance(value, bytes):
        text = bytearray(value)
        for _ in range(random.choice((1, 2))):
            at = random.randrange(len(text) + 1)
            kind = random.randrange(3)
            if kind == 0 and at < len(text):
                text[at] = random.choice(b"0123456789$dlmnxyzw/;:@ \n")
            elif kind == 1:
                del text[at : at + random.choice((1, 3))]
            else:
                text[at:at] = bytes(random.choice(b"0123456789$dlmn/;@ \n") for _ in range(2))
        setattr(found, name, bytes(text).decode(errors="replace"))
    elif isinstance(value, np.ndarray):
        kind = random.randrange(3)
        made = value.copy()
        if kind == 0 and made.size:
            made = made[:-1]
        elif kind == 1:
            made = np.append(made, made[:1]).astype(value.dtype)
        elif made.size:
            choices = (0, 1, 7, 255) if made.dtype.itemsize == 1 else _NUMBERS
            made[random.randrange(made.size)] = random.choice(choices)
        setattr(found, name, made)
    elif isinstance(value, list) and value:
        at = random.randrange(len(value))
        kind = random.randrange(3)
        if kind == 0:
            setattr(found, name, value[:at] + value[at + 1 :])
        elif kind == 1:
            setattr(found, name, [*value, value[at]])
        else:
            setattr(found, name, value[::-1])
    else:
        setattr(found, name, None if isinstance(value, list) else value)
