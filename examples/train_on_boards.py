"""Train with one process per board: `torchrun --nproc-per-node 2 train_on_boards.py`."""

import torch

from pycompiler.boards import DataParallel, Ranks


def loss_of(model: torch.nn.Module, x: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    """Return the mean loss of a part of the batch."""
    return torch.nn.functional.cross_entropy(model(x), classes)


def main() -> None:
    """Print the loss of three steps."""
    ranks = Ranks(timeout=120)
    torch.manual_seed(ranks.rank)  # the parameters of rank 0 count
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    training = DataParallel(model, loss_of, optimizer, ranks, device="emu2:mini")
    random = torch.Generator().manual_seed(0)
    x, classes = torch.randn(12, 8, generator=random), torch.arange(12) % 3
    for step in range(3):
        loss = training.step(x, classes)
        if ranks.rank == 0:
            print(f"step {step}: loss {loss:.6f}")
    ranks.close()


if __name__ == "__main__":
    main()
