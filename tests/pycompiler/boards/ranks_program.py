"""What one rank of the tests does: ``python ranks_program.py MODE FOLDER``."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import torch

from pycompiler.boards import DataParallel, Pipeline, Ranks
from pycompiler.errors import PycompilerError

STEPS = 2
LOST = ("dead", "still")
TIMEOUT = 8.0
Loss = torch.nn.functional.cross_entropy


def network() -> torch.nn.Sequential:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(7, 6, generator=torch.Generator().manual_seed(1)), torch.arange(7) % 3


def on_one_board() -> tuple[list[float], list[torch.Tensor]]:
    """Train in plain torch; return the losses, and the parameters afterwards."""
    model, losses = network(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    x, classes = batch()
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = Loss(model(x), classes)
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return losses, [parameter.detach() for parameter in model.parameters()]


def train(ranks: Ranks) -> tuple[list[float], list[torch.Tensor]]:
    model = network()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += ranks.rank  # the parameters of rank 0 count
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    own = DataParallel(
        model, lambda m, x, classes: Loss(m(x), classes), optimizer, ranks, "emu2:mini"
    )
    losses = [own.step(*batch()) for _ in range(STEPS)]
    return losses, [parameter.detach() for parameter in model.parameters()]


def stream(ranks: Ranks) -> tuple[list[float], list[torch.Tensor]]:
    layers = list(network())
    stage = torch.nn.Sequential(*(layers[:2] if ranks.rank == 0 else layers[2:]))
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.5)
    own = Pipeline(stage, ranks, Loss, optimizer, "emu2:mini")
    x, classes = batch()
    losses = [own.step(x, classes, micro_batches=3) for _ in range(STEPS)]
    made = own.forward(x, micro_batches=2)
    assert (made is None) == (ranks.rank == 0)
    return losses, [parameter.detach() for parameter in stage.parameters()]


def lost(ranks: Ranks, mode: str) -> None:
    """Rank 1 ends without a word, or stands still; rank 0 waits for it."""
    if ranks.rank == 1:
        if mode == "still":
            os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    start = time.monotonic()
    try:
        ranks.sum(torch.ones(2), "a sum")
    except PycompilerError as problem:
        print(problem.code, problem.fields["lost"], time.monotonic() - start)


def main() -> None:
    mode, folder = sys.argv[1], Path(sys.argv[2])
    ranks = Ranks(timeout=TIMEOUT if mode in LOST else 300)
    if mode in LOST:
        lost(ranks, mode)
        os._exit(0)
    torch.save((train if mode == "train" else stream)(ranks), folder / f"{ranks.rank}.pt")
    ranks.close()


if __name__ == "__main__":
    main()
