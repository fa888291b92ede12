"""Writes the tree of the SDK: headers, libraries, rules for ninja, tools."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import emu2
from emu2.console import diagnostic, fail

PACKAGE = "emu2_sdk"
"""The distribution that holds the tree."""
STAGED = "EMU2_SDK_TREE"
"""A variable with the path of such a tree, for builds from the sources."""
LIBRARY = Path("lib/libemu2.so")
"""A file that every tree has."""
TOOLS = {
    "assemble3": "emu2.words_cli:run_assemble3",
    "gpfn3_package_main": "emu2.words_cli:run_gpfn3_package_main",
    "vsmlink": "emu2.link.command:run_vsmlink",
    "sdk-versions": "emu2.sdk.tools:run_versions",
    "sdk-examples": "emu2.sdk.tools:run_examples",
    "mnc2-inspect": "emu2.sdk.tools:run_inspect",
}
"""Commands in ``bin``, and their entry points."""
BOARD_TOOLS = (
    *("pio-read", "pio-write", "pio", "send-dma", "recv-dma", "read-pdm", "write-pdm", "run-idma"),
    *("run-idma2", "write-DM", "read-DM", "set-descriptor-regset", "kick-idma2", "set-capture"),
    "reset",
)
"""Names of the program ``board-tools``, which is one for all of them."""

SCRIPT = """#!/bin/sh
EMU2_SDK_TREE="{root}"
export EMU2_SDK_TREE
exec "{python}" -c 'import sys
sys.path.insert(0, "{path}")
from {module} import {name}
{name}()' "$@"
"""

ACTIVATE = """# Source this file: `. {root}/activate`. `deactivate` undoes it.
if [ -n "${{SDK_ROOT:-}}" ] && command -v deactivate >/dev/null 2>&1; then deactivate; fi
_emu2_path="$PATH"
_emu2_library="${{LD_LIBRARY_PATH-}}"
_emu2_had_library="${{LD_LIBRARY_PATH+yes}}"
_emu2_packages="${{PKG_CONFIG_PATH-}}"
_emu2_had_packages="${{PKG_CONFIG_PATH+yes}}"
SDK_ROOT="{root}"
MN_CORE2_SDK="$SDK_ROOT"
PATH="$SDK_ROOT/bin:$PATH"
LD_LIBRARY_PATH="$SDK_ROOT/lib/emu-lib:$SDK_ROOT/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
PKG_CONFIG_PATH="$SDK_ROOT/share/pkgconfig${{PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}}"
export SDK_ROOT MN_CORE2_SDK PATH LD_LIBRARY_PATH PKG_CONFIG_PATH
deactivate() {{
    PATH="$_emu2_path"
    LD_LIBRARY_PATH="$_emu2_library"
    if [ -z "$_emu2_had_library" ]; then unset LD_LIBRARY_PATH; fi
    PKG_CONFIG_PATH="$_emu2_packages"
    if [ -z "$_emu2_had_packages" ]; then unset PKG_CONFIG_PATH; fi
    unset SDK_ROOT MN_CORE2_SDK _emu2_path _emu2_library _emu2_had_library _emu2_packages
    unset _emu2_had_packages
    unset -f deactivate
}}
"""

PKGCONFIG = """prefix={root}
libdir=${{prefix}}/lib
includedir=${{prefix}}/include

Name: mnc2
Description: Host programs for MN-Core 2, on the emulator emu2
Version: {version}
Cflags: -I${{includedir}}
Libs: -L${{libdir}} -Wl,-rpath,${{libdir}} -lmnc2 -lgpfn3
Libs.private: -lrt -lm -lpthread
"""

CMAKE = """# find_package(mnc2) gives the target mnc2::mnc2.
if(NOT TARGET mnc2::mnc2)
  get_filename_component(_mnc2_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
  add_library(mnc2::gpfn3 SHARED IMPORTED)
  set_target_properties(mnc2::gpfn3 PROPERTIES IMPORTED_LOCATION "${_mnc2_root}/lib/libgpfn3.so"
    INTERFACE_INCLUDE_DIRECTORIES "${_mnc2_root}/libgpfn3-emu/include")
  add_library(mnc2::mnc2 SHARED IMPORTED)
  set_target_properties(mnc2::mnc2 PROPERTIES IMPORTED_LOCATION "${_mnc2_root}/lib/libmnc2.so"
    INTERFACE_INCLUDE_DIRECTORIES "${_mnc2_root}/include" INTERFACE_LINK_LIBRARIES mnc2::gpfn3)
  unset(_mnc2_root)
endif()
set(mnc2_FOUND TRUE)
"""


def tree() -> Path:
    """Return the tree of the installed SDK. Fails with a diagnostic if there is none."""
    staged = os.environ.get(STAGED)
    if staged:
        found = Path(staged)
    else:
        spec = importlib.util.find_spec(PACKAGE)
        places = list(spec.submodule_search_locations or ()) if spec else []
        found = Path(places[0]) / "tree" if places else Path()
    if (found / LIBRARY).is_file():
        return found
    message = f"no SDK is installed, and {STAGED} names none"
    fail(diagnostic("F0001", message, "`pip install emu2-sdk` adds it to emu2"))


def install(target: Path) -> None:
    """Write the tree to ``target``, a folder that is new or holds such a tree."""
    source = tree()
    if target.exists() and any(target.iterdir()) and not (target / LIBRARY).is_file():
        message = f"{target}: the folder holds other files"
        fail(diagnostic("F0005", message, "name a folder that is new"))
    root = target.resolve()
    shutil.copytree(source, root, dirs_exist_ok=True)
    for folder in ("emu-lib", "emu-process"):
        archive = root / "lib" / folder / "libmnc2.a"
        archive.unlink(missing_ok=True)
        archive.symlink_to("../libmnc2.a")
    packages = Path(emu2.__file__).resolve().parents[1]
    for tool, entry in TOOLS.items():
        module, name = entry.split(":")
        text = SCRIPT.format(
            root=root, python=sys.executable, path=packages, module=module, name=name
        )
        write(root / "bin" / tool, text).chmod(0o755)
    for tool in BOARD_TOOLS:
        (root / "bin" / tool).unlink(missing_ok=True)
        (root / "bin" / tool).symlink_to("board-tools")
    activate = ACTIVATE.format(root=root)
    write(root / "activate", activate)
    write(root / "bin" / "activate", activate)
    pkgconfig = PKGCONFIG.format(root=root, version=emu2.__version__)
    for name in ("mnc2", "emu2"):
        write(root / "share" / "pkgconfig" / f"{name}.pc", pkgconfig)
    write(root / "lib" / "cmake" / "mnc2" / "mnc2-config.cmake", CMAKE)


def write(path: Path, text: str) -> Path:
    """Write a file of the tree."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def compiler_flags(*, cflags: bool, libs: bool, static: bool) -> Sequence[str]:
    """Return the flags for a C compiler."""
    root = tree()
    found = [f"-I{root / 'include'}"] if cflags else []
    if libs and static:
        found += [str(root / "lib" / "libmnc2.a"), "-lrt", "-lm", "-lpthread"]
    elif libs:
        folder = root / "lib"
        found += [f"-L{folder}", f"-Wl,-rpath,{folder}", "-lmnc2", "-lgpfn3"]
    return found
