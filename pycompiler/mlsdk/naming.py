"""Names of tensors. Scripts also import these from ``fx2onnx``."""

from __future__ import annotations

from ..frontend.tensor_names import get_tensor_name, set_tensor_name, set_tensor_name_in_module

__all__ = ["get_tensor_name", "set_tensor_name", "set_tensor_name_in_module"]
