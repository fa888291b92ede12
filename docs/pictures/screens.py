"""Pictures of one compiled model: what commands draw and print, and pages in a browser."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.text import Text

from .terminal import drawn, said

_MODEL = """
import torch
from pycompiler.mlsdk import Context, MNDevice

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(64, 4, 256, batch_first=True, dropout=0.0).eval()


def forward(inputs):
    return {"out": layer(inputs["x"])}


sample = {"x": torch.randn(4, 32, 64)}
for name, options in (("encoder", {}), ("mixed", {"float_dtype": "mixed"})):
    Context(MNDevice("emu2")).compile(forward, sample, name, options=options)
"""
_KEPT = TemporaryDirectory()
_FOLDER = Path(_KEPT.name)


@cache
def compiled() -> Path:
    """Compile an encoder layer twice, and write the pages about it; return the folder."""
    (_FOLDER / "layer.py").write_text(_MODEL)
    subprocess.run([sys.executable, "layer.py"], cwd=_FOLDER, check=True)
    said("pycompiler dashboard encoder mixed", _FOLDER)
    return _FOLDER


def profiling() -> str:
    """Return what `pycompiler profile` prints."""
    text = said("pycompiler profile encoder --by operator --top 8", compiled(), 136)
    return drawn(Text.from_ansi(text), 136)


def _drawn(command: str) -> str:
    said(f"pycompiler {command} --draw out.svg", compiled())
    return (_FOLDER / "out.svg").read_text()


def browser() -> str | None:
    """Return the browser; None if there is none (`make browser`)."""
    return shutil.which("chromium")


def shot(address: str, wide: int, high: int, dark: bool = False) -> bytes:
    """Return the picture (PNG) that a browser without a window shows of a page."""
    program = browser()
    assert program is not None, "make browser"
    picture = _FOLDER / "shot.png"
    picture.unlink(missing_ok=True)
    flags = (
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
        *(f"--window-size={wide},{high}", f"--screenshot={picture}"),
        *("--virtual-time-budget=4000", "--force-device-scale-factor=1"),
        *(["--blink-settings=preferredColorScheme=0"] if dark else []),
    )
    subprocess.run([program, *flags, address], check=True, capture_output=True)
    return picture.read_bytes()


def page(place: str, high: int) -> bytes:
    """Return a page of the dashboard about the compiled layer."""
    return shot(f"file://{compiled()}/dashboard/index.html#/{place}", 1100, high)


def notebook() -> bytes:
    """Return the first notebook of the examples, with its outputs."""
    import nbformat
    from nbclient import NotebookClient
    from nbconvert import HTMLExporter

    path = Path(__file__).parents[2] / "examples" / "notebooks" / "first_kernel.ipynb"
    read = nbformat.read(path, as_version=4)
    NotebookClient(read, resources={"metadata": {"path": _FOLDER}}).execute()
    read.cells = read.cells[1:6]
    body, _ = HTMLExporter(template_name="classic").from_notebook_node(read)
    (_FOLDER / "notebook.html").write_text(body)
    return shot(f"file://{_FOLDER}/notebook.html", 900, 700)


PRINTED: dict[str, Callable[[], str]] = {
    "gap.svg": lambda: _drawn("gap encoder"),
    "profiling.svg": profiling,
    "roofline.svg": lambda: _drawn("profile encoder"),
}
SHOTS: dict[str, Callable[[], bytes]] = {
    "dashboard_memory.png": lambda: page("0/memory/LM0", 760),
    "dashboard_switch.png": lambda: page("0/switches/0", 1000),
    "dashboard_timeline.png": lambda: page("0/timeline", 760),
    "notebooks.png": notebook,
}
