"""Contexts and compiled functions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import onnx
import torch

from ..build import build
from ..errors import PycompilerError, error, internal
from ..frontend.export import Function as TorchFunction
from ..frontend.export import export
from ..frontend.torch_dtypes import TORCH_DTYPES, dtype_name
from ..runtime.device import Board
from ..runtime.function import Function
from ..runtime.proxy import TensorProxy
from ..runtime.tensors import to_array
from .cache import CacheOptions
from .device import MNDevice

TensorLike = torch.Tensor | TensorProxy


class CompiledFunction:
    """A function on a device. Call it with a dict of tensors."""

    def __init__(self, function: Function, codegen_dir: Path):
        #: What runs it: an app on a board, or a model on the host.
        self.function = function
        self.codegen_dir = codegen_dir

    def __call__(self, inputs: Mapping[str, TensorLike]) -> dict[str, TensorProxy]:
        """Run the function; inputs go by name. P0603 if they are not what it was compiled for."""
        arrays = {name: to_array(tensor) for name, tensor in self._checked(inputs).items()}
        try:
            outputs = self.function.run(arrays)
        except PycompilerError:
            raise
        except Exception as problem:
            raise internal(problem) from problem
        return {key: TensorProxy(output) for key, output in outputs.items()}

    def _checked(self, inputs: Mapping[str, TensorLike]) -> dict[str, torch.Tensor]:
        wanted = self.function.inputs
        if not isinstance(inputs, Mapping):
            raise self._wrong(f"a dict is needed, not {type(inputs).__name__}")
        for name in wanted:
            if name not in inputs:
                raise self._wrong(f"`{name}` is missing")
        for name in inputs:
            if name not in wanted:
                raise self._wrong(f"`{name}` is no input")
        checked = {name: _tensor(inputs[name]) for name in wanted}
        for name, tensor in checked.items():
            if tensor is None:
                raise self._wrong(f"`{name}` is a {type(inputs[name]).__name__}, no tensor")
            if tensor.layout is not torch.strided or tensor.is_meta:
                kind = "sparse" if tensor.layout is not torch.strided else "without data"
                raise self._wrong(f"`{name}` is {kind}")
            if tuple(tensor.shape) != wanted[name].shape:
                raise self._wrong(f"`{name}` has shape {tuple(tensor.shape)}")
            if tensor.dtype is not TORCH_DTYPES[wanted[name].elem]:
                raise self._wrong(f"`{name}` has dtype {dtype_name(tensor.dtype)}")
        return {name: tensor for name, tensor in checked.items() if tensor is not None}

    def _wrong(self, problem: str) -> PycompilerError:
        wanted = self.function.inputs
        signature = ", ".join(
            f"{name}: {dtype_name(TORCH_DTYPES[found.elem])} {found.shape}"
            for name, found in wanted.items()
        )
        return error("P0603", problem=problem, signature=signature or "none")


def _tensor(value: object) -> torch.Tensor | None:
    if isinstance(value, TensorProxy):
        return value.cpu()
    return value if isinstance(value, torch.Tensor) else None


class Context:
    """Owns the memory of a device and the functions compiled for it."""

    _active: ClassVar[Context | None] = None

    def __init__(self, device: MNDevice):
        if not isinstance(device, MNDevice):
            raise error("P0601", name=device, legal="MNDevice(name)")
        self.device = device
        machine = device.device.machine
        self._board = None if machine is None else Board(device.device.target)

    @staticmethod
    def switch_context(context: Context) -> None:
        """Make ``context`` the active one."""
        if not isinstance(context, Context):
            raise error("P0704", name="context", value=repr(context), legal="a Context")
        Context._active = context

    def compile(
        self,
        function: TorchFunction,
        inputs: Mapping[str, TensorLike],
        codegen_dir: str | os.PathLike[str],
        *,
        options: Mapping[str, Any] | None = None,
        cache_options: CacheOptions | None = None,
        optimizers: Any = None,
        training: bool | None = None,
        num_compiler_threads: int | None = -1,
        quiet: bool = False,
        export_kwargs: Mapping[str, Any] | None = None,
        io_spec_constraints: Mapping[str, Any] | None = None,
    ) -> CompiledFunction:
        """Traces ``function`` with tensors like ``inputs``, compiles it, writes ``codegen_dir``.

        ``function`` maps a dict of tensors to a dict of tensors; shapes are those of ``inputs``.
        ``cache_options`` takes compilations from a folder and keeps them there.
        Raises the diagnostics of :mod:`pycompiler.errors`; then an older ``codegen_dir`` is
        untouched and the report is in ``<codegen_dir>.failed``. Warns (HostFallbackWarning) if
        operators must run on the host.
        """
        try:
            folder = Path(codegen_dir)
        except TypeError as problem:
            raise error("P0003", path=codegen_dir, reason="it is no path") from problem
        for name, value, type, legal in (
            ("cache_options", cache_options, CacheOptions, "a CacheOptions or None"),
            ("num_compiler_threads", num_compiler_threads, int, "a count, -1 or None"),
            ("io_spec_constraints", io_spec_constraints, Mapping, "a dict or None"),
        ):
            if not isinstance(value, type | None):
                raise error("P0704", name=name, value=repr(value), legal=legal)
        without_effect = {
            "num_compiler_threads": num_compiler_threads not in (-1, None),
            "io_spec_constraints": bool(io_spec_constraints),
            "training": training is not None,
        }
        notes = [f"`{name}` has no effect yet" for name, given in without_effect.items() if given]

        def make_model() -> onnx.ModelProto:
            if optimizers:
                reason = "there is no training path through an optimizer yet"
                remedy = "write the update into the function and return the new parameters"
                raise error("P0703", name="optimizers", reason=reason, remedy=remedy)
            if not isinstance(inputs, Mapping):
                raise error("P0104", what="inputs", got=type(inputs).__name__)
            sample = {name: _sample(value) for name, value in inputs.items()}
            return export(function, sample, export_kwargs)

        cache = None if cache_options is None else cache_options.cache
        found = build(make_model, self.device.name, self._board, options, folder, notes, cache)
        return CompiledFunction(found, folder)


def _sample(value: TensorLike) -> torch.Tensor:
    """Return a sample input; anything that is no tensor is left for the exporter to refuse."""
    return value.cpu() if isinstance(value, TensorProxy) else value
