"""The command ``pycompiler partition``."""

from __future__ import annotations

from pathlib import Path

import click

from ..build import load_model
from ..command_files import READ, WRITTEN, claim_data
from ..errors import error, located
from ..files import write_file
from ..pfvm.sizes import Sizes
from ..size_options import takes_sizes
from ..sweep.command import read_options
from .costs import Costs
from .driver import partition
from .table import print_partition, print_support

_COSTS = Costs()


@click.command("partition")
@click.argument("model", type=READ, required=False)
@click.option("-o", "--out", type=WRITTEN, help="ONNX model of functions")
@click.option("--app", type=WRITTEN, help="one file that runs all pieces")
@click.option("--device", default="emu2", show_default=True, help="what to cut for")
@click.option("--threshold", default=1.0, show_default=True, help="inf keeps every piece")
@click.option("--estimate", is_flag=True, help="compile nothing: use the machine's bound")
@click.option("--launch", default=_COSTS.launch, show_default=True, help="seconds per piece")
@click.option("--bandwidth", default=_COSTS.bandwidth, show_default=True, help="bytes per second")
@click.option("-O", "--option", "settings", multiple=True, metavar="KEY=VALUE", help="of a compile")
@click.option("--support", is_flag=True, help="print what the device takes")
@takes_sizes
def partition_command(
    model: Path | None,
    out: Path | None,
    app: Path | None,
    device: str,
    threshold: float,
    estimate: bool,
    launch: float,
    bandwidth: float,
    settings: tuple[str, ...],
    support: bool,
    sizes: Sizes,
) -> None:
    """Cut an ONNX MODEL into pieces for the device and for the host.

    A piece is kept if its transfer takes at most --threshold times what the device gains.
    """
    if support:
        print_support()
        return
    if model is None:
        raise click.UsageError("name a MODEL, or ask for --support")
    if launch < 0 or not bandwidth > 0:
        raise error("P0704", name="--launch, --bandwidth", value="0 or less", legal="positive")
    with located(model):
        found = partition(
            load_model(model, sizes, claim_data),
            device,
            threshold=threshold,
            costs=Costs(bandwidth=bandwidth, launch=launch),
            simulate=not estimate,
            options=read_options(settings),
        )
    print_partition(found)
    if out is not None:
        write_file(out, found.model.SerializeToString())
        click.echo(f"wrote {out}")
    if app is not None:
        found.export(app)
        click.echo(f"wrote {app}")
