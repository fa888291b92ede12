"""Adds two tensors and records a time line."""

import tempfile
from pathlib import Path

import torch
from mlsdk import CacheOptions, Context, MNDevice, storage, trace_scope


def main():
    folder = Path(tempfile.gettempdir())
    context = Context(MNDevice("mncore2:auto"))
    Context.switch_context(context)
    ones = torch.ones(3, 4)
    compiled = context.compile(
        lambda inputs: {"sum": inputs["a"] + inputs["b"]},
        {"a": torch.zeros(3, 4), "b": torch.zeros(3, 4)},
        storage.path(folder / "add_trace"),
        options={"float_dtype": "float"},
        cache_options=CacheOptions(folder / "add_trace_cache"),
    )
    with trace_scope(str(folder / "add_trace.pb")):
        out = compiled({"a": ones, "b": ones})["sum"].cpu()
    assert torch.allclose(out, 2 * ones)
    print("sum", out.unique().tolist())


if __name__ == "__main__":
    main()
