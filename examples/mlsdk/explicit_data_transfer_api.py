"""Moves inputs and parameters to the device by hand."""

import tempfile

import torch
from mlsdk import Context, MNDevice


def main():
    torch.manual_seed(0)
    context = Context(MNDevice("mncore2:auto"))
    Context.switch_context(context)
    model = torch.nn.Linear(4, 4).eval()
    context.registry.register("model", model)
    compiled = context.compile(
        lambda inputs: {"y": model(inputs["x"])}, {"x": torch.zeros(4, 4)}, tempfile.mkdtemp()
    )
    inputs = compiled.allocate_input_proxy()
    x = torch.randn(4, 4)
    inputs["x"].load_from(x, clone=True)
    expected = model(x).detach()
    x.zero_()
    print(compiled(inputs)["y"].cpu())
    assert torch.allclose(compiled(inputs)["y"].cpu(), expected, atol=1e-5)

    weight, before = context.get_registered_value_proxy(model.weight), model.weight.detach().clone()
    weight.load_from(torch.eye(4))
    context.get_registered_value_proxy(model.bias).load_from(torch.zeros(4))
    inputs["x"].load_from(torch.arange(16.0).reshape(4, 4))
    moved = compiled(inputs)["y"]
    print(moved.cpu())
    assert torch.allclose(moved.cpu(), torch.arange(16.0).reshape(4, 4), rtol=1e-5)
    assert torch.equal(model.weight, before)
    context.synchronize()
    assert torch.equal(model.weight, torch.eye(4))
    assert moved[0].sum().item() == 6.0


if __name__ == "__main__":
    main()
