"""The back end that ``torch.compile`` calls with each graph that it captures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd

from ..errors import error
from ..frontend.resizes import keep_kernels
from ..frontend.training_step import plain_kernels, step_rules
from ..summary.performance import Performance, in_turn
from .module_paths import name_inputs, name_modules
from .partition import Parts, partitioned
from .settings import DEVICE, Settings

#: Told of each graph that is cut: whether it is the `forward` or the `backward` one, and its parts.
Watcher = Callable[[str, Parts], None]

#: The device and the cut graphs of the last graph that was captured: forward, then backward.
_last: tuple[str, list[Parts]] = (DEVICE, [])


def emu2(
    module: torch.fx.GraphModule,
    inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
    watcher: Watcher | None = None,
) -> Callable[..., Any]:
    """Compile a graph for ``torch.compile(function, backend="emu2", options=...)``.

    torch's AOT autograd writes the graph, and its backward pass if one is needed, in operators
    without side effects. Those that the device can run form pieces, the others stay in torch.
    ``options`` are ``device`` (`emu2`), ``codegen_dir``, ``cache_dir``, and those of a compile
    (P0601, P0701, P0702, P0704). A ``mode`` of torch is refused (P0704): modes are those of
    torch's own code generator. ``watcher`` is told of each graph.
    """
    if mode is not None:
        legal = "left out; `options` has `preset` and `tune`"
        raise error("P0704", name="mode", value=repr(mode), legal=legal)
    global _last
    settings = Settings.of(options)
    _last = settings.device, (cut := [])
    whole = ExitStack()

    def compiler(kind: str) -> Callable[..., Any]:
        def compiled(graph: torch.fx.GraphModule, _: Sequence[Any]) -> Any:
            whole.close()  # all is traced, and exports need the forms
            name_modules(graph)
            name_inputs(module, graph)
            with torch._guards.tracing(None):
                parts = partitioned(graph, settings)
            cut.append(parts)
            if watcher is not None:
                watcher(kind, parts)
            return make_boxed_func(parts.graph.forward)

        return compiled

    # Where memory is read by strides, they must be those of torch's own kernels.
    by_strides = any("as_strided" in str(node.target) for node in module.graph.nodes)
    compile_graph = aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("forward"),
        decompositions={} if by_strides else step_rules(),
    )
    with plain_kernels(), whole:
        keep_kernels(whole)
        return compile_graph(module, inputs)


def last_report() -> Performance:
    """Return how fast the last graph is that ``torch.compile`` captured for the back end.

    Its parts are the pieces on the device, of the forward graph and of the backward one. A piece
    counts with the shapes that it was compiled for last.
    """
    device, graphs = _last
    parts = [piece.reports[-1] for parts in graphs for piece in parts.pieces]
    left = sum(len(parts.in_torch) for parts in graphs)
    unknown = [f"the time of {left} operators that stay in torch"] if left else []
    return in_turn("torch.compile", device, parts, unknown)
