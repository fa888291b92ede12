"""Trains a small network with ``torch.compile``: both passes run on the emulator."""

from __future__ import annotations

import torch

from pycompiler.torch_backend import emu2, explain

OPTIONS = {"device": "emu2:mini"}


def main() -> None:
    """Print the loss of three steps, and what ran where."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    x, classes = torch.randn(12, 8), torch.arange(12) % 3

    def loss_of(x: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(model(x), classes)

    compiled = torch.compile(loss_of, backend=emu2, options=OPTIONS)
    for step in range(3):
        optimizer.zero_grad()
        loss = compiled(x, classes)
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4f}")
    print(explain(loss_of, options=OPTIONS)(x, classes))


if __name__ == "__main__":
    main()
