"""Lay out the tree of the SDK from the sources and the libraries that cargo has built.

``python emu2/capi/sdk/stage.py OUT [--libraries TARGET/release]``. Needs cargo, a C compiler and
binutils, and the package emu2 for the numbers of the machine. Nothing else: the wheel of emu2-sdk
is this tree.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
TREE = HERE.parents[2]
CC = os.environ.get("CC", "cc")
#: The back ends: the folder of their libraries, and their number in the interface.
BACKENDS = {"lib": 2, "lib/emu-lib": 2, "lib/emu-process": 1}
DECLARED = re.compile(r"\b((?:mnc2|gpfn3|emu2)_\w+)\(")
#: Where the shared libraries look for libemu2.so, seen from each of the folders.
SEARCH = "-Wl,-rpath,$ORIGIN:$ORIGIN/.."


def run(*command: str | Path) -> None:
    """Run a tool; end with its status if it fails."""
    done = subprocess.run([str(part) for part in command], check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}")


def functions(*headers: str) -> list[str]:
    """Return the names of the functions that headers declare."""
    texts = [(HERE / "include" / header).read_text(encoding="utf-8") for header in headers]
    code = [re.sub(r"/\*.*?\*/|//[^\n]*|^#[^\n]*", "", text, flags=re.S | re.M) for text in texts]
    return sorted({name for text in code for name in DECLARED.findall(text)})


def forwarding(target: Path, name: str, names: Sequence[str], *flags: str | Path) -> None:
    """Build a library whose functions jump to the engine."""
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "forwarded.h"
        rows = " ".join(f"X({function})" for function in names)
        listed.write_text(f"#define FUNCTIONS(X) {rows}\n", encoding="utf-8")
        run(
            *(CC, "-shared", "-fPIC", "-O2", "-s", "-Wall", "-Wextra", f'-DFORWARDED="{listed}"'),
            *(f"-Wl,-soname,{name}.so", f"-Wl,--version-script={HERE / 'shim' / name}.map"),
            *(SEARCH, HERE / "shim" / "forward.c", "-o", target / f"{name}.so"),
            *(*flags, "-ldl"),
        )


def archive(source: Path, target: Path, names: Sequence[str]) -> None:
    """Make the archive: one object, without the symbols of Rust, so that it fits beside others."""
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "mnc2.o"
        keep = [*names, "emu2_engine"]
        wanted = [flag for name in keep for flag in ("-u", name)]
        run("ld", "-r", "--gc-sections", *wanted, "-o", whole, source)
        kept = [f"--keep-global-symbol={name}" for name in keep]
        run("objcopy", "--strip-debug", "-R", ".llvmbc", "-R", ".llvmcmd", *kept, whole)
        target.unlink(missing_ok=True)
        run("ar", "rcs", target, whole)


def hardware(spec_name: str) -> str:
    """Return the C source with the numbers of the machine."""
    import emu2

    spec = emu2.Spec.load(spec_name)
    counts, words = spec.counts, {name: memory["words"] for name, memory in spec.memories.items()}
    pes = 1
    for level in ("group", "l2b", "l1b", "mab", "pe"):
        pes *= counts[level]
    bits = 8
    values = {
        "ngroups": counts["group"],
        "nl2b_per_group": counts["l2b"],
        "nl1b_per_l2b": counts["l1b"],
        "nmab_per_l1b": counts["mab"],
        "npe_per_mab": counts["pe"],
        "total_pe": pes,
        "pdm_size_lw": words["pdm"],
        "dram_size_lw": words["dram"],
        "l2bm_size_lw": words["l2bm"],
        "lm_size_lw": words["lm0"],
        "grf_size_lw": words["grf0"],
        "nlm_per_pe": sum(name.startswith("lm") for name in words),
        "ngrf_per_pe": sum(name.startswith("grf") for name in words),
        "pdm_size_bytes": words["pdm"] * bits,
        "pdm_align_bytes": bits,
        "ddma_unit_bytes": 4,
        "ddma_max_bytes": words["pdm"] * bits,
        "dmaid_max": 63,
        "wd_max": 63,
    }
    rows = "\n".join(f"    info->{field} = {value};" for field, value in values.items())
    head = f"/* Generated from the spec of {spec.name}. */"
    includes = '#include "mnc2_hw_info.h"\n\n#include <stddef.h>'
    body = f"    if (info == NULL) {{\n        return -1;\n    }}\n{rows}\n    return 0;"
    return f"{head}\n{includes}\n\nint mnc2_get_hw_info(mnc2_hw_info_t *info) {{\n{body}\n}}\n"


def stage(out: Path, libraries: Path) -> None:
    """Write the tree to ``out``."""
    headers = ["mnc2.h", "emu2.h", "gpfn3.h"]
    for folder in (*BACKENDS, "include", "libgpfn3-emu/include", "bin", "src/mnc2-inspect"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    for header in sorted((HERE / "include").iterdir()):
        folder = "libgpfn3-emu/include" if header.name == "gpfn3.h" else "include"
        shutil.copy(header, out / folder)
    for source in sorted((HERE / "inspect").iterdir()):
        shutil.copy(source, out / "src/mnc2-inspect")
    numbers = out / "src/mnc2-inspect/mnc2_hw_info.c"
    numbers.write_text(hardware("mncore2"), encoding="utf-8")
    shutil.copy(libraries / "libemu2_capi.so", out / "lib/libemu2.so")
    run("strip", "--strip-unneeded", out / "lib/libemu2.so")
    archive(libraries / "libemu2_capi.a", out / "lib/libmnc2.a", functions(*headers))
    for folder, backend in BACKENDS.items():
        names = functions("gpfn3.h")
        forwarding(out / folder, "libgpfn3", names, f"-DBACKEND={backend}")
        upper = functions("mnc2.h", "emu2.h")
        needs = (f"-L{out / folder}", "-Wl,--no-as-needed", "-lgpfn3")
        forwarding(out / folder, "libmnc2", upper, *needs)
    for tool in sorted((HERE / "tools").glob("*.c")):
        flags = (f"-I{out / 'libgpfn3-emu/include'}", f"-L{out / 'lib'}", "-lgpfn3")
        rpath = "-Wl,-rpath,$ORIGIN/../lib"
        target = out / "bin" / tool.stem.replace("_", "-")
        run(CC, "-O2", "-s", "-Wall", "-Wextra", "-o", target, tool, *flags, rpath)
    shutil.copytree(HERE / "share", out / "share", dirs_exist_ok=True)


def built() -> Path:
    """Build the libraries, and return cargo's folder."""
    manifest = TREE / "Cargo.toml"
    run("cargo", "build", "--release", "--package", "emu2-capi", "--manifest-path", manifest)
    return Path(os.environ.get("CARGO_TARGET_DIR", TREE / "target")) / "release"


def main() -> None:
    """Build the libraries, if they are not given, and stage them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--libraries", type=Path, help="cargo's folder with libemu2_capi.a")
    given = parser.parse_args()
    stage(given.out, given.libraries or built())


if __name__ == "__main__":
    main()
