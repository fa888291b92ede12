"""Names of a model's constants, and of the values that calls change."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import onnx
import onnx.numpy_helper
import torch

from ..pfvm.held import tensor_of
from ..pfvm.names import all_names, fresh, rename, reserved
from .tensor_names import Memory, get_tensor_name, memory_of
from .training_step import TrainingStep


def update_names(
    step: TrainingStep | None, registered: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Return the tensors that ``step`` changes by name, in its order; private ones get a name."""
    names = {id(tensor): name for name, tensor in registered.items()}
    found: dict[str, torch.Tensor] = {}
    for tensor in step.changed if step is not None else ():
        name = names.get(id(tensor)) or get_tensor_name(tensor) or "buffer"
        found[fresh(name, {*found, *(registered if id(tensor) not in names else ())})] = tensor
    return found


def add_unread(model: onnx.ModelProto, tensors: Mapping[str, torch.Tensor]) -> dict[str, str]:
    """Add initializers for tensors that the model changes without reading them; return names."""
    taken = all_names(model.graph)
    found = {}
    for name, tensor in tensors.items():
        value = reserved(name, taken)
        model.graph.initializer.append(tensor_of(tensor.detach().numpy(), value))
        found[value] = name
    return found


def recognised(
    program: torch.export.ExportedProgram, known: Mapping[Memory, str]
) -> dict[str, str]:
    """Return the names of those constants of ``program`` whose memory is known.

    The tracer's own tensors, which transforms leave behind, have no memory.
    """
    if not known:
        return {}
    constants = {n: t for n, t in program.constants.items() if isinstance(t, torch.Tensor)}
    real = ((n, t) for n, t in constants.items() if t.numel() and not t.is_meta)
    found = ((n, known.get(memory_of(t))) for n, t in real)
    return {constant: name for constant, name in found if name is not None}


def name_constants(
    model: onnx.ModelProto, wanted: Mapping[str, str], keys: Collection[str]
) -> dict[str, str]:
    """Rename initializers, merge those with one name, and return the new names."""
    graph = model.graph
    present = {tensor.name for tensor in graph.initializer}
    taken = all_names(graph) | set(keys)
    chosen: dict[str, str] = {}
    for name in wanted.values():
        if name not in chosen:
            chosen[name] = reserved(name, taken)
    names = {constant: chosen[name] for constant, name in wanted.items() if constant in present}
    rename(graph, names)
    once = {tensor.name: tensor for tensor in graph.initializer}
    if len(once) < len(graph.initializer):
        kept = list(once.values())
        del graph.initializer[:]
        graph.initializer.extend(kept)
    return names
