"""Train a model in two stages: `torchrun --nproc-per-node 2 pipeline_on_boards.py`."""

import torch

from pycompiler.boards import Pipeline, Ranks


def main() -> None:
    """Print the loss of three steps, and what the last stage makes of the batch."""
    ranks = Ranks(timeout=120)
    torch.manual_seed(0)  # every rank makes the same layers and keeps its own
    layers = [torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)]
    parts = {1: [layers], 2: [layers[:2], layers[2:]]}[ranks.size]
    stage = torch.nn.Sequential(*parts[ranks.rank])
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.5)
    loss_of = torch.nn.functional.cross_entropy
    pipeline = Pipeline(stage, ranks, loss_of, optimizer, device="emu2:mini")
    random = torch.Generator().manual_seed(0)
    x, classes = torch.randn(12, 8, generator=random), torch.arange(12) % 3
    for step in range(3):
        loss = pipeline.step(x, classes, micro_batches=4)
        if ranks.rank == 0:
            print(f"step {step}: loss {loss:.6f}")
    made = pipeline.forward(x, micro_batches=4)
    if made is not None:
        print("classes:", made.argmax(1).tolist())
    ranks.close()


if __name__ == "__main__":
    main()
