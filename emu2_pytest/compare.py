"""Compiles a torch function and compares what the emulator gives with torch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from pycompiler.mlsdk import Context, MNDevice

Tensors = Mapping[str, torch.Tensor]

RTOL = 1e-4
ATOL = 1e-5


class Comparison:
    """Compiles functions for one machine, and compares them with torch."""

    def __init__(self, spec: str, folder: Path) -> None:
        """Take the machine and the folder for the files of compiles."""
        self._context = Context(MNDevice(f"emu2:{spec}"))
        self._folder = folder
        self._count = 0
        self.codegen_dir: Path = folder
        """The folder of the last compile, for `cycle_regression`."""

    def __call__(
        self,
        function: Callable[[Tensors], Any] | torch.nn.Module,
        inputs: Tensors,
        *,
        rtol: float = RTOL,
        atol: float = ATOL,
        options: Mapping[str, Any] | None = None,
    ) -> Tensors:
        """Compile `function` for `inputs`, run both and compare every output.

        `rtol` and `atol` are those of `torch.testing.assert_close`. Returns the outputs of the
        device by name. Raises AssertionError, and the diagnostics of pycompiler.
        """
        self._count += 1
        self.codegen_dir = self._folder / f"compiled{self._count}"
        with _without_traces():
            compiled = self._context.compile(
                function, inputs, self.codegen_dir, options=options, quiet=True
            )
        got = {name: proxy.cpu() for name, proxy in compiled(inputs).items()}
        with torch.no_grad():
            expected = _named(_called(function, inputs))
        assert set(got) == set(expected), f"outputs {sorted(got)} instead of {sorted(expected)}"
        for name, value in expected.items():
            try:
                torch.testing.assert_close(got[name], value, rtol=rtol, atol=atol)
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from None
        return got


@contextmanager
def _without_traces() -> Iterator[None]:
    """Keep torch's records for its own trace files out of the reports of pytest: they say nothing.

    pytest listens to loggers that do not propagate too. The files still get the records.
    """
    logger = logging.getLogger("torch.__trace")
    others = [one for one in logger.handlers if not type(one).__module__.startswith("torch.")]
    for handler in others:
        logger.removeHandler(handler)
    try:
        yield
    finally:
        for handler in others:
            logger.addHandler(handler)


def _called(function: Callable[..., Any] | torch.nn.Module, inputs: Tensors) -> Any:
    """Call a function or module as the compiler does."""
    if not isinstance(function, torch.nn.Module):
        return function(dict(inputs))
    from pycompiler.frontend.modules import as_function

    return as_function(function, inputs)(dict(inputs))


def _named(results: Any) -> dict[str, torch.Tensor]:
    """Return the results by the names that the compiler gives them."""
    if isinstance(results, torch.Tensor):
        return {"out": results}
    if isinstance(results, Mapping):
        return dict(results)
    return {f"out{at}": result for at, result in enumerate(results)}
