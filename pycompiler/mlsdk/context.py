"""Contexts: a device, the values registered on it, and the functions compiled for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import onnx
import torch

from ..build import build, load_function
from ..errors import error
from ..frontend.export import Function as TorchFunction
from ..frontend.export import export
from ..frontend.modules import as_function
from ..options import parse_options
from ..pfvm.registered import registered, set_defaults, updates
from ..pfvm.session import with_cuda
from ..runtime.device import Board
from ..runtime.io_spec import IOSpec
from ..runtime.proxy import TensorProxy
from .automap import Arguments, AutomapFunction, Results, flat_function
from .backprop import wanted_groups, with_training
from .cache import CacheOptions
from .device import MNDevice
from .function import CompiledFunction, TensorLike, renewed
from .optimizers import MNCoreOptimizer, check_optimizer
from .registry import ContextRegistry
from .settings import Settings


class Context:
    """Owns the memory of a device, the values registered there, and functions compiled for it.

    Registered values live on the device between calls. They are shared by all functions of the
    context that close over the tensor, and by loaded functions that registered one of that name.
    """

    device: MNDevice
    registry: ContextRegistry
    _active: ClassVar[Context | None] = None

    def __init__(self, device: MNDevice):
        if not isinstance(device, MNDevice):
            raise error("P0601", name=device, legal="MNDevice(name)")
        self.device = device
        self.registry = ContextRegistry()
        machine = device.device.machine
        self._board = None if machine is None else Board(device.device.target)
        self._invalid = False

    @staticmethod
    def switch_context(context: Context) -> None:
        """Make ``context`` the active one."""
        if not isinstance(context, Context):
            raise error("P0704", name="context", value=repr(context), legal="a Context")
        Context._active = context

    # -- compiling -----------------------------------------------------------------------------

    def compile(
        self,
        function: TorchFunction | torch.nn.Module,
        inputs: Mapping[str, TensorLike],
        codegen_dir: str | os.PathLike[str],
        *,
        options: Mapping[str, Any] | None = None,
        cache_options: CacheOptions | None = None,
        optimizers: Sequence[torch.optim.Optimizer] | None = None,
        training: bool | None = None,
        num_compiler_threads: int | None = -1,
        quiet: bool = False,
        export_kwargs: Mapping[str, Any] | None = None,
        io_spec_constraints: Mapping[str, IOSpec] | None = None,
    ) -> CompiledFunction:
        """Trace ``function`` with tensors like ``inputs``, compile it and write ``codegen_dir``.

        ``function`` maps a dict of tensors to a dict of tensors; shapes are those of ``inputs``.
        It may also be a ``torch.nn.Module``: its ``forward`` gets the tensors by the names of its
        parameters, or the dict if those names do not fit. A result that is one tensor is the
        output ``out``. The tensors of a tuple or list are ``out0``, ``out1`` and so on.

        Registered tensors that the function closes over stay on the device, others become
        constants. ``cache_options`` takes compilations from a folder and keeps them there.
        ``io_spec_constraints`` gives inputs and outputs the layouts of another function, so that
        one function can read the other's results in place (P0705 where it cannot). On a terminal,
        a long compile shows its passes unless ``quiet``. ``num_compiler_threads`` above 1 is the
        option `num_threads`: how many simulations of nodes run at once.

        ``function`` may differentiate, and may change registered tensors: call ``zero_grad()``,
        ``loss.backward()`` and ``optimizer.step()`` inside. Each call of the compiled function
        then changes their values on the device. Tracing changes nothing. ``training`` False
        refuses such a function (P0116), None finds out.

        With the option `backprop`, ``function`` returns the loss alone, or as `loss`, and the
        compiler adds the backward pass and the step of ``optimizers``, a list of registered
        optimizers (MNCoreSGD, MNCoreAdam, MNCoreAdamW, or torch's of these names). Each call then
        needs more scalars: `<optimizer>@<group>@mncore_learning_rate` (float32),
        `<optimizer>@<group>@mncore_global_step` (int64, from 0 on) and `mncore_grad_scale_factor`
        (float32): the gradient of the loss itself. P0118.

        Raises the diagnostics of :mod:`pycompiler.errors`; then an older ``codegen_dir`` is
        untouched and the report is in ``<codegen_dir>.failed``. Warns of operators that must run
        on the host (HostFallbackWarning) and of arguments that change nothing (OptionWarning).
        """
        self._check_valid()
        self.registry.check()
        folder = folder_of(codegen_dir)
        for name, value, kind, legal in (
            ("cache_options", cache_options, CacheOptions, "a CacheOptions or None"),
            ("num_compiler_threads", num_compiler_threads, int, "a count, -1 or None"),
            ("training", training, bool, "True, False or None"),
            ("io_spec_constraints", io_spec_constraints, Mapping, "a dict or None"),
        ):
            if not isinstance(value, kind | None):
                raise error("P0704", name=name, value=repr(value), legal=legal)
        if isinstance(options, Mapping | None) and (num_compiler_threads or 0) > 1:
            options = {"num_threads": num_compiler_threads, **(options or {})}
        backprop = parse_options(options).backprop if isinstance(options, Mapping) else False
        groups = wanted_groups(optimizers, self.registry, backprop=backprop)
        if groups and training is False:
            raise error("P0116", name="training")
        settings = Settings(self.registry, optimizers or ())

        def make_model() -> onnx.ModelProto:
            if not isinstance(inputs, Mapping):
                raise error("P0104", what="inputs", got=type(inputs).__name__)
            # The exporter refuses inputs that are not tensors.
            sample = {n: v.cpu() if isinstance(v, TensorProxy) else v for n, v in inputs.items()}
            called, step = as_function(function, sample), training
            if groups:
                (called, added), step = with_training(called, groups, list(sample)), True
                sample |= added
            with settings.noted():
                model = export(called, sample, export_kwargs, self.registry.tensors, step)
            names = registered(model)
            self.registry.check_apart({names[old] for old in updates(model).values()})
            set_defaults(model, lambda name: self.registry.values[name].values())
            return model

        with with_cuda(self.device.on_gpu):
            found = build(
                make_model,
                self.device.name,
                self._board,
                options,
                folder,
                cache=None if cache_options is None else cache_options.cache,
                registry=self.registry.values,
                io_specs=io_spec_constraints,
                progress=not quiet,
                backprop=backprop,
            )
        return renewed(CompiledFunction(found, folder), settings.renew)

    def compile_automap(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any] | None,
        codegen_dir: str | os.PathLike[str],
        **settings: Any,
    ) -> AutomapFunction:
        """Compile a function over nested structures of tensors; the result is called like ``fn``.

        ``args`` and ``kwargs`` are sample arguments. Tensors may be nested in tuples, lists,
        dicts, named tuples and dataclasses (see ``register_pytree_dataclass``). Other values
        become part of the function. ``settings`` are those of :meth:`compile`, but optimizers.
        """
        if not isinstance(args, list | tuple):
            raise error("P0704", name="args", value=repr(args), legal="a tuple of arguments")
        if not isinstance(kwargs, Mapping | None):
            raise error("P0704", name="kwargs", value=repr(kwargs), legal="a dict or None")
        if settings.get("optimizers"):
            reason = "calls with nested structures have no place for learning rates"
            raise error("P0703", name="optimizers", reason=reason, remedy="use Context.compile")
        arguments, results = Arguments(fn, args, kwargs or {}), Results()
        flat = flat_function(fn, arguments, results)
        compiled = self.compile(flat, arguments.tensors, codegen_dir, **settings)
        return AutomapFunction(fn, compiled, arguments, results)

    def load_codegen_dir(self, path: str | os.PathLike[str]) -> CompiledFunction:
        """Return the function that a compile, maybe in another process, left in the folder.

        It shares this context's registered values by name. Values that are new to the context start
        with their values at compile time. P0004 if the folder has no function, P0503 if the
        function is for another machine, P0608.
        """
        self._check_valid()
        folder = folder_of(path)
        with with_cuda(self.device.on_gpu):
            found = load_function(folder, self._board, self.registry.values)
        return renewed(CompiledFunction(found, folder), Settings(self.registry).renew)

    # -- registered values ---------------------------------------------------------------------

    def register_param(self, tensor: torch.Tensor) -> None:
        """Keep a named tensor on the device from now on; its current values are used. P0608."""
        self._check_valid()
        self.registry.add(tensor)

    register_buffer = register_param

    def register_optimizer_buffers(self, optimizer: MNCoreOptimizer) -> None:
        """Keep the state of an optimizer on the device from now on.

        Name it first, with set_buffer_name_in_optimizer. P0608, P0704.
        """
        self._check_valid()
        check_optimizer(optimizer)
        self.registry.add_optimizer(optimizer)

    def get_registered_value_proxy(self, tensor: torch.Tensor) -> TensorProxy:
        """Return the device's copy of a registered tensor. P0608."""
        self._check_valid()
        return TensorProxy(self.registry.find(tensor))

    def synchronize(self) -> None:
        """Copy the values on the device to the registered tensors. P0608."""
        self._check_valid()
        self.registry.synchronize()

    def invalidate(self) -> None:
        """Free the device's memory. Later uses of the context are refused (P0607)."""
        self._invalid = True
        self.registry.clear()
        if self._board is not None:
            self._board.close()

    def _check_valid(self) -> None:
        if self._invalid:
            raise error("P0607", device=self.device.name)


def folder_of(path: str | os.PathLike[str], name: str = "codegen_dir") -> Path:
    """Return the argument ``name`` as a path. P0704."""
    if not isinstance(path, str | os.PathLike):
        raise error("P0704", name=name, value=repr(path), legal="a str or a path")
    return Path(path)
