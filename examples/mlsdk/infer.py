"""Inference of one linear layer in mixed precision."""

import tempfile

import torch
from mlsdk import Context, MNDevice, set_tensor_name_in_module, storage


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4).eval()
    context = Context(MNDevice("mncore2:auto"))
    Context.switch_context(context)
    set_tensor_name_in_module(model, "linear")
    for parameter in model.parameters():
        context.register_param(parameter)
    for buffer in model.buffers():
        context.register_buffer(buffer)

    def infer(inputs):
        return {"y": model(inputs["x"])}

    compiled = context.compile(
        infer,
        {"x": torch.randn(4, 4)},
        storage.path(tempfile.mkdtemp()) / "infer",
        options={"float_dtype": "mixed"},
    )
    x = torch.randn(4, 4)
    y = compiled({"x": x})["y"].cpu()
    print(y)
    assert (y - model(x)).abs().max() < 4 * 2**-8 * x.abs().max()


if __name__ == "__main__":
    main()
