"""The suite for authors of plug-ins, on the three of ours and on a made-up chip."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import made_up_chip
import pytest

from pycompiler.plugins import DeviceContext, open_device
from pycompiler.plugins.conformance import PluginConformance

MOST_LINES = 200


class TestHost(PluginConformance):
    @pytest.fixture
    def device(self) -> Iterator[DeviceContext]:
        device = open_device("host")
        yield device
        device.close()


class TestGraphMode(PluginConformance):
    @pytest.fixture
    def device(self) -> Iterator[DeviceContext]:
        device = open_device("emu2-graph", device="emu2:mini")
        yield device
        device.close()


class TestKernelMode(PluginConformance):
    @pytest.fixture
    def device(self) -> Iterator[DeviceContext]:
        device = open_device("emu2-kernel", device="emu2:mini")
        yield device
        device.close()


class TestMadeUpChip(PluginConformance):
    @pytest.fixture
    def device(self) -> Iterator[DeviceContext]:
        device = made_up_chip.Chip()
        yield device
        device.close()

    def test_is_small(self) -> None:
        assert len(Path(made_up_chip.__file__).read_text().splitlines()) < MOST_LINES
