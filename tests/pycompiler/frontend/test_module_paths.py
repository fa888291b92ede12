"""Parameters and nodes have the names that the modules of the model give them."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import onnx
import torch
from onnx import numpy_helper
from torch import nn

from pycompiler.frontend.export import export
from pycompiler.frontend.modules import as_function
from pycompiler.frontend.tensor_names import set_tensor_name
from pycompiler.profile.nodes import grouped


class Net(nn.Module):
    """A part that runs twice, and operators of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, 6), nn.Tanh())
        self.register_buffer("shift", torch.arange(6.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.encoder(self.encoder(x)).exp() + self.shift


def constants(model: onnx.ModelProto) -> dict[str, torch.Tensor]:
    return {one.name: torch.tensor(numpy_helper.to_array(one)) for one in model.graph.initializer}


def check(model: onnx.ModelProto, wanted: Mapping[str, torch.Tensor]) -> None:
    found = constants(model)
    assert set(found) == set(wanted)
    for name, tensor in wanted.items():
        torch.testing.assert_close(found[name], tensor.detach(), rtol=0, atol=0)


def test_a_module() -> None:
    net = Net()
    model = export(as_function(net, ["x"]), {"x": torch.ones(2, 6)})
    check(model, net.state_dict())
    names = [node.name for node in model.graph.node]
    assert len(set(names)) == len(names)
    paths = [name.rpartition("/")[0] for name in names if "/" in name]
    assert paths == 2 * ["encoder.0", "encoder.1"]
    assert not torch.nn.modules.module._global_forward_hooks
    assert not torch.nn.modules.module._global_forward_pre_hooks


def test_several_modules_and_names_of_others() -> None:
    """Variables name the modules; constants of one name would be taken for one constant."""
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    other, plain = torch.full((3,), 7.0), torch.full((3,), 9.0)
    set_tensor_name(other, "first.bias")
    set_tensor_name(second.weight, "mine")

    def run(given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"y": second(first(given["x"])) * other + plain}

    model = export(run, {"x": torch.ones(2, 3)})
    found = constants(model)
    unnamed = set(found) - {"first.weight", "first.bias", "first.bias__1", "mine", "second.bias"}
    assert len(unnamed) == 1
    wanted = {"first.weight": first.weight, "first.bias__1": first.bias, "first.bias": other}
    wanted |= {"mine": second.weight, "second.bias": second.bias, unnamed.pop(): plain}
    check(model, wanted)
    assert [n.name for n in model.graph.node][:2] == ["first/linear", "second/linear_1"]


def test_functions_without_a_module_and_parts_of_functions() -> None:
    """Functions that come from text may have None as `__module__`."""
    place = {"net": nn.Linear(3, 3), "partial": functools.partial}
    exec("def run(bias, d): return {'y': net(d['x']) + bias}\nmade = partial(run, 1.0)", place)
    place["run"].__module__ = None
    found = constants(export(place["made"], {"x": torch.ones(2, 3)}))
    assert set(found) >= {
        "weight",
        "bias",
    }


def test_rows_by_module() -> None:
    names = (
        *("encoder.0/linear", "encoder.0/linear.download.encoder.0.weight", "node_exp"),
        *("/body/conv/Conv.download./other/Relu_output_0", "node_exp.upload.a/b"),
    )
    numbers = {"steps": 1, "wait_cycles": 0, "dram_words": {"read": 0, "written": 0}}
    rows = [
        {"node": name, "op": "X", "source": None, "cycles": 10**at, "busy_steps": {}, **numbers}
        for at, name in enumerate(names)
    ]
    found = {group.name: group.cycles for group in grouped(rows, "module")}
    assert found == {"(no module)": 10100, "/body/conv": 1000, "encoder.0": 11}
