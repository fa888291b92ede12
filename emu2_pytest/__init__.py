"""The pytest plug-in of emu2: programs as tests, machines as fixtures, cycles as stored facts.

pytest loads this module at every start, so it imports nothing but pytest. Everything else is
imported when a test uses it. No file is collected unless the ini option `emu2_vsm_files` names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    import emu2

    from .cycles import CycleRegression

_SPEC_HELP = "Machine of the fixtures and of programs: a built-in spec, or a path."
_FILES_HELP = "Names of programs to collect, such as test_*.vsm. None by default."
_FOLDER_HELP = "Folder of stored steps, cycles and DRAM words, beside the test."
_FIDELITY_HELP = "Say how the instructions that the collected programs execute are known."
_BLESS_HELP = "Store the steps, cycles and DRAM words of this run as the expected ones."


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    parser.addini("emu2_spec", _SPEC_HELP, default="mncore2")
    parser.addini("emu2_vsm_files", _FILES_HELP, type="args", default=[])
    parser.addini("emu2_cycles_folder", _FOLDER_HELP, default="cycles")
    group = parser.getgroup("emu2")
    group.addoption("--emu2-bless", action="store_true", help=_BLESS_HELP)
    group.addoption("--emu2-fidelity", action="store_true", help=_FIDELITY_HELP)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    line = "emu2_spec(name): the machine of the fixtures of this test, instead of the ini option"
    config.addinivalue_line("markers", line)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Sum up what `--emu2-fidelity` found in all programs, also in those of other processes."""
    if not config.getoption("emu2_fidelity"):
        return
    from .vsm import fidelity_rows

    reports = [one for kind in ("passed", "failed") for one in terminalreporter.getreports(kind)]
    terminalreporter.section("emu2: how executed instructions are known")
    for row in fidelity_rows(dict(report.user_properties) for report in reports):
        terminalreporter.write_line(row)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a program that `emu2_vsm_files` names."""
    patterns: list[str] = parent.config.getini("emu2_vsm_files")
    if not any(fnmatch(file_path.name, pattern) for pattern in patterns):
        return None
    from .vsm import ProgramFile

    return ProgramFile.from_parent(parent, path=file_path)


def _spec_name(request: pytest.FixtureRequest) -> str:
    marker = request.node.get_closest_marker("emu2_spec")
    if marker is None:
        return str(request.config.getini("emu2_spec"))
    if len(marker.args) != 1 or marker.kwargs:
        pytest.fail(
            'write @pytest.mark.emu2_spec("NAME") with the name of a machine', pytrace=False
        )
    return str(marker.args[0])


@pytest.fixture
def emu2_machine(request: pytest.FixtureRequest) -> emu2.Machine:
    """Return a machine (`emu2.Machine`) whose memories are zero."""
    import emu2

    return emu2.Machine(emu2.Spec.load(_spec_name(request)))


@pytest.fixture
def emu2_device(request: pytest.FixtureRequest) -> Iterator[emu2.Device]:
    """Yield a device (`emu2.Device`) whose memories are zero; it is closed after the test."""
    import emu2

    with emu2.Device(_spec_name(request)) as device:
        yield device


@pytest.fixture
def compiled(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Callable[..., Mapping[str, torch.Tensor]]:
    """Compile a torch function, run it on the emulator and compare it with torch.

    `compiled(function, inputs, *, rtol, atol, options)` is called like `Context.compile`; it
    returns the outputs of the device. See docs/pytest.md. Needs the extra `compiler`.
    """
    from .compare import Comparison

    return Comparison(_spec_name(request), tmp_path)


@pytest.fixture
def cycle_regression(request: pytest.FixtureRequest) -> CycleRegression:
    """Compare steps, cycles and DRAM words with those that were stored for this test.

    `cycle_regression.check(result, name="", margin=0.0)`; see docs/pytest.md.
    """
    from .cycles import CycleRegression

    config: Any = request.config
    folder = request.path.parent / str(config.getini("emu2_cycles_folder")) / request.path.stem
    return CycleRegression(folder, request.node.name, bless=bool(config.getoption("emu2_bless")))
