"""Two models in one context, distinguished by the names of their parameters."""

import tempfile
from pathlib import Path

import torch
from mlsdk import Context, MNDevice, get_tensor_name, set_tensor_name_in_module


def linear(weight):
    model = torch.nn.Linear(4, 4, bias=False)
    torch.nn.init.constant_(model.weight, weight)
    return model.eval()


def main():
    context = Context(MNDevice("mncore2:auto"))
    Context.switch_context(context)
    models = [linear(1.0), linear(2.0)]
    for number, model in enumerate(models):
        assert get_tensor_name(model.weight) is None
        set_tensor_name_in_module(model, f"model{number}")
        for parameter in model.parameters():
            context.register_param(parameter)
    folder = Path(tempfile.mkdtemp())
    functions = [
        context.compile(
            lambda inputs, model=model: {"out": model(inputs["x"])},
            {"x": torch.zeros(4, 4)},
            folder / f"model{number}",
            options={"float_dtype": "mixed"},
        )
        for number, model in enumerate(models)
    ]
    for function, expected in zip(functions, (4.0, 8.0), strict=True):
        out = function({"x": torch.ones(4, 4)})["out"].cpu()
        assert torch.allclose(out, torch.full((4, 4), expected))
        print(out.unique().tolist())


if __name__ == "__main__":
    main()
