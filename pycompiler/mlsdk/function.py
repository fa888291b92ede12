"""Compiled functions, called with dicts of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from ..errors import PycompilerError, error, internal
from ..frontend.torch_dtypes import TORCH_DTYPES, dtype_name
from ..pfvm.session import Array
from ..runtime.conversion import UnfitError, converted
from ..runtime.executable import DeviceFunction, Function
from ..runtime.held_tensor import Source
from ..runtime.io_spec import IOSpec, specs_of
from ..runtime.proxy import TensorProxy
from ..summary.performance import Performance, of_folder, report_text

TensorLike = torch.Tensor | TensorProxy

_OWNS = "a compiled function owns memory of a device"


class CompiledFunction:
    """A function on a device. Call it with a dict of tensors."""

    #: Called before each run: what the host changed reaches the device.
    _renew: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self, function: Function, codegen_dir: Path):
        #: The app on a board, or the model on the host.
        self.function = function
        self.codegen_dir = codegen_dir
        #: Read now: another compile may write the folder anew.
        self._report = report_text(codegen_dir)

    @cached_property
    def report(self) -> Performance:
        """How fast the function is: cycles, bound, kinds of work, slowest nodes.

        A function that was loaded from an app alone knows less, and says so. P0004 for a folder of
        an earlier version without a program.
        """
        found = None if self._report is None else of_folder(self.codegen_dir, self._report)
        if found is None and isinstance(self.function, DeviceFunction):
            return self.function.report
        if found is None:
            reason = "its report is missing, damaged, or of another version"
            raise error("P0004", path=self.codegen_dir, reason=reason, wanted="report.json")
        return found

    def __str__(self) -> str:
        return str(self.report)

    def _repr_html_(self) -> str:
        """Return the report with the picture of the time line, for notebooks."""
        return self.report._repr_html_()

    def __call__(self, inputs: Mapping[str, TensorLike]) -> dict[str, TensorProxy]:
        """Run the function on inputs by name. P0603 if it was compiled for others.

        Other keys are ignored. Arrays and numbers will do, and other dtypes where every element has
        a value in the one of the compile (see :mod:`pycompiler.runtime.conversion`).

        A proxy of the same context whose bytes fit (:meth:`IOSpec.is_memcopyable_to`) is read in
        place, without a copy. P0604, P0607.
        """
        checked = self._checked(inputs)
        self._renew()
        try:
            outputs = self.function.run(checked)
        except PycompilerError:
            raise
        except Exception as problem:
            raise internal(problem) from problem
        return {key: TensorProxy(output) for key, output in outputs.items()}

    def __copy__(self) -> CompiledFunction:
        """Return the same function: it has no state of its own."""
        return renewed(CompiledFunction(self.function, self.codegen_dir), self._renew)

    def __reduce__(self) -> Any:
        """Raise P0703 for deep copies and pickles: a function owns memory of a device."""
        load = f"context.load_codegen_dir({str(self.codegen_dir)!r})"
        raise error("P0703", name="copy", reason=_OWNS, remedy=f"load it again: {load}")

    @property
    def input_specs(self) -> dict[str, IOSpec]:
        """Shape, dtype and layout of each input."""
        return specs_of(self.function, self.function.inputs)

    @property
    def output_specs(self) -> dict[str, IOSpec]:
        """Shape, dtype and layout of each output."""
        return specs_of(self.function, self.function.outputs)

    def allocate_input_proxy(self) -> dict[str, TensorProxy]:
        """Return a new tensor of zeros on the device for each input.

        Fill them with ``load_from`` and call the function with them as often as you like: it reads
        them in place. P0302 if the device is full.
        """
        return {key: TensorProxy(self.function.allocate(key)) for key in self.function.inputs}

    def _checked(self, inputs: Mapping[str, TensorLike]) -> dict[str, Array | Source]:
        wanted = self.function.inputs
        if not isinstance(inputs, Mapping):
            raise self._wrong(f"a dict is needed, not {type(inputs).__name__}")
        for name in wanted:
            if name not in inputs:
                raise self._wrong(f"`{name}` is missing")
        return {name: self._checked_one(name, inputs[name]) for name in wanted}

    def _checked_one(self, name: str, given: object) -> Array | Source:
        wanted = self.function.inputs[name]
        if isinstance(given, TensorProxy):
            if given.source.type == wanted:
                return given.source
            given = given.source.values()
        try:
            return converted(given, wanted)
        except UnfitError as problem:
            raise self._wrong(f"`{name}` {problem}") from problem

    def _wrong(self, problem: str) -> PycompilerError:
        wanted = self.function.inputs
        signature = ", ".join(
            f"{name}: {dtype_name(TORCH_DTYPES[found.elem])} {found.shape}"
            for name, found in wanted.items()
        )
        return error("P0603", problem=problem, signature=signature or "none")


def renewed(function: CompiledFunction, renew: Callable[[], None]) -> CompiledFunction:
    """Return the function; before each of its runs ``renew`` is called."""
    function._renew = renew
    return function
