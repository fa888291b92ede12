"""Makes a training step of a model that computes a loss: backward pass and updates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import onnx
from onnx import TensorProto, helper, numpy_helper

from ..errors import error
from ..graph.graph import TensorType
from ..machine import Target
from ..pfvm.names import all_names, keys, record_keys, reserved
from ..pfvm.prepare import prepare, static_types
from ..pfvm.registered import attach, detach, mark, mark_updates, registered, updates
from ..pfvm.session import Array
from .back import Back
from .differentiate import ROLE, differentiate
from .updates import UPDATE, Group, Step

#: The input with the gradient of the loss itself: a float, 1 for plain gradients.
SCALE = "mncore_grad_scale_factor"
LOSS = "loss"


def add_training(
    model: onnx.ModelProto,
    groups: Sequence[Group],
    state: Callable[[str], Array],
    target: Target | None = None,
) -> onnx.ModelProto:
    """Return the model with a backward pass from its loss and the updates of ``groups``.

    The loss is the only output, or the one named `loss`. ``state`` returns the values of a
    registered state by name, ``target`` is as in
    :func:`differentiate`. The inputs `SCALE` and, per group, rate and count are new. New values
    are outputs behind the model's own. P0118, P0119; P0608 for a parameter that is not registered.
    """
    given, shown = keys(model)
    loss = _loss(model, shown)
    values = {name: value for value, name in registered(model).items()}
    plain, tensors = detach(model)
    plain = prepare(_with_inputs(plain, groups, len(given)))
    wanted = [values[name] for group in groups for name in group.parameters if name in values]
    types = static_types(plain)
    work, grads = differentiate(plain, loss, wanted, SCALE, target)
    taken = all_names(work.graph)
    new: dict[str, str] = {}
    made: dict[str, str] = {}
    for group in groups:
        first = helper.make_node("Identity", [SCALE], [f"{group.name}@step"], name=group.name)
        step = Step(group, Back(first, types, taken, {}))
        for name, own in group.parameters.items():
            value = values.get(name, "")
            if value not in grads:
                continue  # the loss does not depend on it
            inputs = {key: reserved(full, taken) for key, full in own.items()}
            for key, full in own.items():
                made[inputs[key]] = full
                tensors.append(numpy_helper.from_array(state(full), inputs[key]))
                types[inputs[key]] = types[value]
            found = step.update(value, grads[value], inputs)
            for key, result in found.items():
                new[result] = inputs[key] if key else value
        _append(work, step.writer)
    changed = _outputs(work, new, registered(model) | made, types)
    added = [name for group in groups for name in (group.rate, group.count)]
    record_keys(work, [*given, *added, SCALE], [*shown, *changed])
    mark_updates(work, dict(zip(changed, new.values(), strict=True)))
    work = attach(work, tensors)
    mark(work, made)
    return work


def _outputs(
    model: onnx.ModelProto,
    new: Mapping[str, str],
    names: Mapping[str, str],
    types: Mapping[str, TensorType],
) -> list[str]:
    """Make the new values outputs, each named by the registered value; return the names."""
    taken = all_names(model.graph)
    out: list[str] = []
    for result, value in new.items():
        name = reserved(f"{names[value]}__new", taken)
        model.graph.node.append(helper.make_node("Identity", [result], [name], name=name))
        elem = TensorProto.DataType.Value(types[value].elem.upper())
        shown = helper.make_tensor_value_info(name, elem, types[value].shape)
        model.graph.output.append(shown)
        out.append(name)
    return out


def _loss(model: onnx.ModelProto, shown: Sequence[str]) -> str:
    own = shown[: len(shown) - len(updates(model))]
    outputs = dict(zip(own, (value.name for value in model.graph.output), strict=False))
    name = own[0] if len(own) == 1 else LOSS
    if name in outputs:
        return str(outputs[name])
    raise error("P0118", name=LOSS, type="missing among the results " + ", ".join(own))


def _with_inputs(model: onnx.ModelProto, groups: Sequence[Group], place: int) -> onnx.ModelProto:
    """Return the model with the new inputs behind its first ``place`` ones."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    made = [
        helper.make_tensor_value_info(name, elem, ())
        for group in groups
        for name, elem in ((group.rate, TensorProto.FLOAT), (group.count, TensorProto.INT64))
    ]
    made.append(helper.make_tensor_value_info(SCALE, TensorProto.FLOAT, ()))
    old = list(out.graph.input)
    del out.graph.input[:]
    out.graph.input.extend([*old[:place], *made, *old[place:]])
    return out


def _append(model: onnx.ModelProto, writer: Back) -> None:
    for node in writer.nodes:
        node.name = node.output[0]
        node.metadata_props.add(key=ROLE, value=UPDATE)
    model.graph.node.extend(writer.nodes)
    model.graph.initializer.extend(writer.constants)
