"""Fixed cases that are rare among random ones.

These are scalars, axes of size 1, axes counted from the end, kept axes, indices of any rank, and
whole ranges of integers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch_operators import Family, exact, numbers, relative, summed, whole

from pycompiler.tolerance import ELEMENTWISE, FUNCTION

F = torch.nn.functional
SEED = 11


def scalars() -> Family:
    """Tensors of rank 0, made, read, reduced and widened."""
    made = Family(
        {"s": numbers((), SEED), "p": numbers((), SEED).abs() + 0.5, "v": numbers((5,), 3)}
    )
    near, curve = relative(ELEMENTWISE), relative(FUNCTION, 4)
    made.add("Add", near, lambda d: d["s"] + d["p"])
    made.add("Mul, one side", near, lambda d: d["s"] * d["v"])
    made.add("Sub, other side", near, lambda d: d["v"] - d["s"])
    made.add("Exp", curve, lambda d: d["s"].exp())
    made.add("Pow", curve, lambda d: d["p"] ** d["s"])
    made.add("Where", exact, lambda d: torch.where(d["v"] > d["s"], d["s"], d["p"]))
    made.add("Where, scalar condition", exact, lambda d: torch.where(d["s"] > 0, d["v"], d["p"]))
    made.add("Clip", exact, lambda d: d["v"].clamp(-d["p"], d["p"]))
    made.add("Less", exact, lambda d: d["s"] < d["p"])
    made.add("Cast", exact, lambda d: d["s"].int())
    made.add("Sum", near, lambda d: d["s"].sum())
    made.add("Mean", near, lambda d: d["s"].mean())
    made.add("Amax", exact, lambda d: d["s"].amax())
    made.add("Sum to a scalar", summed(5, 8.0), lambda d: d["v"].sum() * d["s"])
    made.add("Reshape", exact, lambda d: d["s"].reshape(1, 1))
    made.add("To a scalar", exact, lambda d: d["v"][2:3].reshape(()))
    made.add("Unsqueeze", exact, lambda d: d["s"][None, None])
    made.add("Squeeze", exact, lambda d: d["v"][:1].squeeze(0))
    made.add("Expand", exact, lambda d: d["s"].expand(2, 3))
    made.add("Stack", exact, lambda d: torch.stack([d["s"], d["p"], d["s"]]))
    made.add("Pick", exact, lambda d: d["v"][-2])
    made.add("Softmax", exact, lambda d: torch.softmax(d["s"].reshape(1), 0))
    made.add("Dot", summed(5, 81.0, product=True), lambda d: torch.dot(d["v"], d["v"]))
    return made


def broadcasting() -> Family:
    """Axes of size 1 on both sides, and axes that one side lacks."""
    made = Family(
        {
            "c": numbers((3, 1), SEED),
            "r": numbers((1, 4), SEED + 1),
            "o": numbers((2, 1, 4), SEED + 2),
            "m": numbers((5, 1, 1, 1, 3, 1), SEED + 3),
            "n": numbers((1, 2, 1, 3, 1, 4), SEED + 4),
            "e": numbers((1,), SEED + 5),
        }
    )
    add = relative(ELEMENTWISE)
    made.add("Column and row", add, lambda d: d["c"] + d["r"])
    made.add("Row and column", add, lambda d: d["r"] - d["c"])
    made.add("Both ways, other ranks", add, lambda d: d["o"] * d["c"])
    made.add("Rank 6, both ways", add, lambda d: d["m"] + d["n"])
    made.add("Div", relative(FUNCTION), lambda d: d["c"] / (d["r"].abs() + 1))
    made.add("One element", add, lambda d: d["e"] + d["m"])
    made.add("Max", exact, lambda d: torch.maximum(d["o"], d["c"]))
    made.add("Where", exact, lambda d: torch.where(d["c"] > 0, d["r"], d["o"]))
    made.add("Less", exact, lambda d: d["c"] < d["o"])
    made.add("And", exact, lambda d: (d["c"] > 0) & (d["o"] > 0))
    made.add("Expand", exact, lambda d: d["c"].expand(2, 3, 4))
    limit = summed(1, 81.0, product=True)
    made.add("Outer product", limit, lambda d: d["c"] @ d["r"])
    limit = summed(4, 81.0, product=True)
    made.add(
        "MatMul, batches both ways",
        limit,
        lambda d: d["n"] @ d["m"].mT.expand(5, 1, 1, 1, 4, 3).contiguous(),
    )
    return made


def axes() -> Family:
    """Every axis from both ends, kept and dropped."""
    x = numbers((2, 3, 4, 5), SEED)
    made = Family({"x": x})
    for keep in (False, True):
        for axis in (-4, -2, 0, 3):
            name = f"{axis}, {keep}"
            for function, limit in (
                (torch.sum, summed(x.shape[axis], 8.0)),
                (torch.mean, summed(2, 8.0)),
                (torch.amax, exact),
                (torch.argmax, exact),
                (torch.argmin, exact),
            ):
                made.add(
                    f"{function.__name__} {name}",
                    limit,
                    lambda d, f=function, a=axis, k=keep: f(d["x"], a, keepdim=k),
                )
        made.add(f"Amin of three, {keep}", exact, lambda d, k=keep: d["x"].amin((-1, 0, 2), k))
    for axis in (-4, -3, -1):
        made.add(f"Softmax {axis}", summed(13, 1.0), lambda d, a=axis: d["x"].softmax(a))
        made.add(f"Cat {axis}", exact, lambda d, a=axis: torch.cat([d["x"], d["x"]], a))
        made.add(f"Split {axis}", exact, lambda d, a=axis: d["x"].split(1, a)[1])
        made.add(f"Stack {axis}", exact, lambda d, a=axis: torch.stack([d["x"], -d["x"]], a))
        made.add(f"Flip {axis}", exact, lambda d, a=axis: d["x"].flip(a))
        made.add(f"Unsqueeze {axis}", exact, lambda d, a=axis: d["x"].unsqueeze(a))
    made.add("Transpose", exact, lambda d: d["x"].transpose(-1, -3))
    made.add("Slice from the end", exact, lambda d: d["x"][..., -3:-1])
    return made


def picks() -> Family:
    """Indices of every rank, from both ends, on every axis."""
    x = numbers((3, 4, 5), SEED)
    made = Family(
        {
            "x": x,
            "i0": torch.tensor(2),
            "i1": torch.tensor([1, 0, -1, 2, 2]),
            "i2": torch.tensor([[0, 2], [1, 1], [-3, 0]]),
            "i3": torch.tensor([[[0], [1]], [[2], [1]]]),
            "short": torch.tensor([2, 0], dtype=torch.int32),
            "e": torch.tensor([[[3], [0], [1]], [[2], [2], [3]]]),
            "l": torch.tensor([[0, 3, 1, 2, 0]] * 3),
        }
    )
    for name in ("i0", "i1", "i2", "i3"):
        made.add(f"Index {name}", exact, lambda d, n=name: d["x"][d[n]])
    for name in ("i1", "i2", "i3"):
        made.add(f"Last axis {name}", exact, lambda d, n=name: d["x"][..., d[n]])
        made.add(f"Embedding {name}", exact, lambda d, n=name: F.embedding(d[n].abs(), d["x"][0]))
    made.add("index_select, int32", exact, lambda d: d["x"].index_select(-2, d["short"]))
    made.add("Two indices", exact, lambda d: d["x"][d["i1"], d["i1"]])
    made.add("Two of three axes", exact, lambda d: d["x"][:, d["i2"], d["i2"]])
    made.add("gather, middle axis", exact, lambda d: d["x"].gather(-2, d["e"].expand(2, 3, 5)))
    made.add("gather, last axis", exact, lambda d: d["x"][:, 0].gather(1, d["l"]))
    made.add("One hot of rank 2", exact, lambda d: F.one_hot(d["l"], 4))
    made.add("One hot of rank 0", exact, lambda d: F.one_hot(d["i0"], 4))
    loss = summed(15 + 4 + 8, 12.0)
    made.add("Cross entropy, rank 3", loss, lambda d: F.cross_entropy(d["x"], d["l"]))
    made.add(
        "Cross entropy, ignored", loss, lambda d: F.cross_entropy(d["x"], d["l"], ignore_index=0)
    )
    made.add(
        "Cross entropy, smoothed",
        loss,
        lambda d: F.cross_entropy(d["x"], d["l"], label_smoothing=0.1, ignore_index=0),
    )
    made.add("Cross entropy, chances", loss, lambda d: F.cross_entropy(d["x"], d["x"].softmax(1)))
    made.add("Cross entropy, no batch", loss, lambda d: F.cross_entropy(d["x"][0, 0], d["i0"]))
    made.add("NLL, each", exact, lambda d: F.nll_loss(d["x"], d["l"], reduction="none"))
    return made


def integers() -> Family:
    """Both ends of the range, and products over all of it."""
    made = Family({})
    for name, dtype in (("32", torch.int32), ("64", torch.int64)):
        info = torch.iinfo(dtype)
        ends = torch.tensor(
            [info.min, info.min + 1, -1, 0, 1, 2, info.max - 1, info.max], dtype=dtype
        )
        made.inputs |= {
            f"c{name}": ends[:, None].contiguous(),
            f"r{name}": ends.clone(),
            f"w{name}": whole((8, 6), SEED, dtype),
        }
        for op, function in {
            "Add": torch.add,
            "Sub": torch.sub,
            "Mul": torch.mul,
            "Equal": torch.eq,
            "Less": torch.lt,
            "LessOrEqual": torch.le,
            "Max": torch.maximum,
            "And": torch.bitwise_and,
        }.items():
            made.add(
                f"{op}, {name}", exact, lambda d, f=function, n=name: f(d[f"c{n}"], d[f"r{n}"])
            )
        made.add(f"Neg, {name}", exact, lambda d, n=name: -d[f"w{n}"])
        made.add(f"Square, {name}", exact, lambda d, n=name: d[f"w{n}"] * d[f"w{n}"])
        made.add(f"Cat, {name}", exact, lambda d, n=name: torch.cat([d[f"w{n}"], d[f"c{n}"]], 1))
        made.add(f"To float, {name}", exact, lambda d, n=name: d[f"r{n}"].float())
        made.add(f"To bool, {name}", exact, lambda d, n=name: d[f"r{n}"].bool())
    made.add("To 64", exact, lambda d: d["r32"].long())
    made.add("To 32", exact, lambda d: d["r64"].int())
    return made


HARD_CASES: Mapping[str, Callable[[], Family]] = {
    f.__name__: f for f in (scalars, broadcasting, axes, picks, integers)
}
