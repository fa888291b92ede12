"""Finds and reads presets: the option ``option_json``.

A preset is a JSON file: a dict of options. The key ``doc`` says what the preset is for. A preset is
named by its path, or by its name with or without ``.json``. A name is looked up in the folder of
the environment variable ``PRESET_OPTIONS_DIR``, then in this package. If a path does not exist, its
last part is looked up as a name: scripts name the folder of another installation.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emu2.near import did_you_mean

from ..errors import error
from ..files import TEXT_BYTES, read_input
from .variables import DEVICE, PREFIXES, unknown_variables
from .variables import FIND_BEST as FIND_BEST
from .variables import FOLDER as FOLDER
from .variables import SA_STEPS as SA_STEPS

OWN = Path(__file__).parent
_SUFFIX = ".json"
#: The preset for development: it has layouts of its own, so sums are added in another order.
DEV = "dev"


@dataclass(frozen=True)
class Preset:
    """A preset: the file that it stands in, what it is for, and its options."""

    path: Path
    doc: str
    options: Mapping[str, Any]


def names() -> list[str]:
    """Return the names of the presets in this package."""
    return sorted(path.stem for path in OWN.glob(f"*{_SUFFIX}"))


def same_bits() -> list[str]:
    """Return the names of the presets of this package that give the bits of each other."""
    return [name for name in names() if name != DEV]


def read_preset(name: Any, environment: Mapping[str, Any] | None = None) -> Preset:
    """Return the preset of a name or path. P0001 if it cannot be read, P0706 if it is none.

    ``environment`` wins over the environment of the process.
    """
    path = next((path for path in _places(Path(name), environment or {}) if path.exists()), None)
    if path is None:
        reason = f"there is no such file, and no preset has this name ({', '.join(names())})"
        near = did_you_mean(Path(name).name, names())
        raise error("P0706", name=name, reason=reason, near=near)
    try:
        found = json.loads(read_input(path, TEXT_BYTES))
    except (ValueError, RecursionError) as problem:
        raise error("P0706", name=path, reason=f"it is no JSON: {problem}") from problem
    if not isinstance(found, dict):
        raise error("P0706", name=path, reason="it is no dict of options")
    if "option_json" in found:
        raise error("P0706", name=path, reason="a preset cannot name another preset")
    doc = found.pop("doc", "")
    return Preset(path, str(doc), found)


def _places(path: Path, environment: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the files that a name or a path may mean, the first choice first."""
    yield path
    file = path.name if path.name.endswith(_SUFFIX) else path.name + _SUFFIX
    folder = environment.get(FOLDER) or os.environ.get(FOLDER)
    if folder:
        yield Path(str(folder)) / file
    yield OWN / file


def variable(name: str, environment: Mapping[str, Any] | None) -> Any:
    """Return a variable of the compile's environment, else of the process, else None."""
    return (environment or {}).get(name) or os.environ.get(name)


def wants_best(environment: Mapping[str, Any] | None) -> bool:
    """Whether the environment asks for a search for the best options."""
    value = {**os.environ, **(environment or {})}.get(FIND_BEST, "")
    return str(value).lower() not in ("", "0", "false", "off")


def environment_facts(
    environment: Mapping[str, Any] | None, preset: bool, search: bool = False, anneals: bool = False
) -> dict[str, dict[str, str] | list[str]]:
    """Return which variables of the environment a compile used, and which it ignored.

    ``environment`` are variables given to the compile; those of the process count if their names
    say that they steer a compile. ``preset`` says whether a preset was asked for, ``search``
    whether the environment decides if the best options are searched, ``anneals`` whether the
    scheduler searches. P0710 for a variable whose name only looks like one of MLSDK.
    """
    process = {
        name: value
        for name, value in os.environ.items()
        if name == FOLDER or name.startswith(PREFIXES)
    }
    found = {**process, **(environment or {})}
    for problem in unknown_variables(found):
        raise problem
    wanted = {FOLDER: preset, FIND_BEST: search, SA_STEPS: anneals}
    used = {name: str(found[name]) for name, own in wanted.items() if own and name in found}
    return {"used": used, "ignored": sorted(found.keys() - used.keys() - {DEVICE})}
