"""The packages ``mlsdk`` and ``fx2onnx`` of an environment, for scripts that plain Python runs.

They hold only imports of this package. Each has a record of its files, by which they are known.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import sysconfig
from importlib.machinery import PathFinder
from pathlib import Path

from ..errors import PycompilerError, error
from ..files import blame

#: The packages, as they stand in an environment.
SOURCES = Path(__file__).parent / "importable"
#: What stands beside the examples of MLSDK: the environment of a runner, and tools that it calls.
TREE = Path(__file__).parent / "codegen_tree"
PACKAGES = ("fx2onnx", "mlsdk")
#: The file of a package that maps its other files to their digests.
RECORD = "written_by_pycompiler.json"


def site_packages() -> Path:
    """Return the folder of the environment's packages."""
    return Path(sysconfig.get_path("purelib"))


def install(target: Path | None = None) -> list[Path]:
    """Write the packages to ``target``, by default the environment's; return their folders.

    P0011 if there is one that this function did not write, P0003 if the folder cannot be written.
    """
    site = site_packages() if target is None else target
    # `python -m` also looks in the current folder, which is no part of the environment.
    known = [path for path in sys.path if path and Path(path) != Path.cwd()]
    _check([str(site)] if target is not None else [*known, str(site)], site)
    uninstall(site)
    places = [site / name for name in PACKAGES]
    for place in places:
        try:
            shutil.copytree(
                SOURCES / place.name, place, ignore=shutil.ignore_patterns("__pycache__")
            )
            (place / RECORD).write_text(json.dumps(_digests(place)), encoding="utf-8")
        except OSError as problem:
            for begun in places:
                shutil.rmtree(begun, ignore_errors=True)
            raise error("P0003", path=place, reason=blame(problem, place)) from problem
    return places


def uninstall(target: Path | None = None) -> list[Path]:
    """Remove the packages that :func:`install` wrote; return their folders.

    P0011, and nothing is removed, if one has files that it did not write, P0003.
    """
    site = site_packages() if target is None else target
    _check([str(site)], site)
    found = [site / name for name in PACKAGES if (site / name).exists()]
    for place in found:
        try:
            shutil.rmtree(place)
        except OSError as problem:
            raise error("P0003", path=place, reason=blame(problem, place)) from problem
    return found


def write_tree(target: Path | None = None) -> list[Path]:
    """Write what shell runners of MLSDK look for two folders above themselves.

    The folder is ``target`` or `codegen`. P0011, and nothing is written, if a file of one of these
    names has another text, P0003.
    """
    folder = Path("codegen") if target is None else target
    for source in filter(Path.is_file, sorted(TREE.rglob("*"))):
        place = folder / source.relative_to(TREE)
        if place.exists() and place.read_bytes() != source.read_bytes():
            raise _foreign(place, "it has another text")
    try:
        shutil.copytree(TREE, folder, dirs_exist_ok=True)
    except (OSError, shutil.Error) as problem:
        raise error("P0003", path=folder, reason=str(problem)) from problem
    return [folder]


def _check(folders: list[str], site: Path) -> None:
    """Raise P0011 if a folder has a package that was not written to ``site`` by :func:`install`."""
    PathFinder.invalidate_caches()
    for name in PACKAGES:
        place = site / name
        spec = PathFinder.find_spec(name, folders)
        if spec is not None and spec.origin and Path(spec.origin).parent != place:
            raise _foreign(Path(spec.origin), "it is another package of this name")
        if not place.exists():
            continue
        if place.is_symlink() or not (place / RECORD).is_file():
            raise _foreign(place, f"it has no `{RECORD}`")
        try:
            written = json.loads((place / RECORD).read_text(encoding="utf-8"))
            found = _digests(place).items()
            others = sorted(file for file, digest in found if written.get(file) != digest)
        except (OSError, ValueError, AttributeError) as problem:
            raise _foreign(place / RECORD, str(problem)) from problem
        if others:
            raise _foreign(place / others[0], "it is new or was changed")


def _digests(place: Path) -> dict[str, str]:
    """Return the digests of the files of a package, but for the record and Python's own files."""
    return {
        str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(place.rglob("*"))
        if path.is_file() and path.name != RECORD and path.parent.name != "__pycache__"
    }


def _foreign(path: Path, reason: str) -> PycompilerError:
    return error("P0011", path=path, reason=reason)
