"""Two functions; the second reads the result of the first in place."""

import argparse
import tempfile
from pathlib import Path

import torch
from mlsdk import Context, MNDevice


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="mncore2:auto")
    device = MNDevice(parser.parse_args().device)
    context = Context(device)  # not made the active context
    folder = Path(tempfile.mkdtemp())
    sample = {"value": torch.zeros(32, 64)}
    plus_one = context.compile(
        lambda inputs: {"result": inputs["value"] + 1},
        sample,
        folder / "plus_one",
        training=False,
    )
    double = context.compile(
        lambda inputs: {"doubled": inputs["x"] * 2},
        {"x": torch.zeros(32, 64)},
        folder / "double",
        training=False,
        io_spec_constraints={"doubled": plus_one.input_specs["value"]},
    )
    spec = double.output_specs["doubled"]
    assert spec.is_memcopyable_to(plus_one.input_specs["value"])
    doubled = double({"x": torch.ones(32, 64)})["doubled"]
    result = plus_one({"value": doubled})["result"].cpu()
    assert torch.allclose(result, torch.full((32, 64), 3.0))
    print("result", result.unique().tolist())


if __name__ == "__main__":
    main()
