"""GPFNApp: a compiled model in one file. Schema in ``gpfnapp.fbs``."""

from .model import FORMAT, App, AppValue, DeviceSegment, HostSegment, Port
from .reader import read_app
from .writer import write_app

__all__ = [
    "FORMAT",
    "App",
    "AppValue",
    "DeviceSegment",
    "HostSegment",
    "Port",
    "read_app",
    "write_app",
]
