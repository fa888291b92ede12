"""Facts about a model that ONNX has no place for: JSON in the model's metadata."""

from __future__ import annotations

import json
from typing import Any

import onnx


def read(model: onnx.ModelProto, key: str, default: Any) -> Any:
    """Return the recorded value of ``key``."""
    for item in model.metadata_props:
        if item.key == key:
            return json.loads(item.value)
    return default


def record(model: onnx.ModelProto, key: str, value: Any) -> None:
    """Record a value of ``key`` in place of an older one."""
    for item in model.metadata_props:
        if item.key == key:
            item.value = json.dumps(value)
            return
    model.metadata_props.add(key=key, value=json.dumps(value))
