"""Host programs in C, built and run as public ones are: link lines, compilers, ninja, make."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from sdk_root import LINKS, SOURCES, STRICT, build, done, folder_of, kernels, passes, root

OTHERS = {"inspect", "linked", "low", "undefined"}
"""Programs with link lines of their own, in other files."""
PROGRAMS = sorted({path.stem for path in SOURCES.glob("*.c")} - OTHERS)
QUICK = (
    *("copy", "state", "tags", "queue", "debug", "beside", "pools", "refused", "threads"),
    *("kernel_life", "two_devices", "kept_state", "forked"),
)
"""Programs of the normal run."""
C_ONLY = {"copy"}
"""A program that declares its device as a pointer to the handle, as some public ones do."""
SPECULATIVE = {"numbered"}
"""A program for which valgrind reports a read of a variant that the compiler has moved up."""
COMPILERS = {
    "gcc": STRICT,
    "clang": STRICT,
    "g++": ("-x", "c++", "-std=c++17", *STRICT[1:]),
    "clang++": ("-x", "c++", "-std=c++17", *STRICT[1:]),
}


def link_of(name: str) -> str:
    """Return one of the link lines for a program, so that all of them have some."""
    return list(LINKS)[PROGRAMS.index(name) % len(LINKS)]


@pytest.mark.parametrize("name", QUICK)
def test_programs(name: str, tmp_path: Path) -> None:
    passes(build(folder_of(tmp_path / name), name, link_of(name), *STRICT))


@pytest.mark.long
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_every_compiler(name: str, compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is missing")
    if name in C_ONLY and compiler.endswith("++"):
        pytest.skip("a program in C only")
    flags = COMPILERS[compiler]
    program = build(folder_of(tmp_path / name), name, link_of(name), *flags, compiler=compiler)
    for backend in ("lib/emu-lib", "lib/emu-process", "lib"):
        passes(program, backend)


@pytest.mark.long
@pytest.mark.parametrize("how", LINKS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_every_link_line(name: str, how: str, tmp_path: Path) -> None:
    passes(build(folder_of(tmp_path / name), name, how, *STRICT))


def folder_in_tree(name: str) -> tuple[Path, list[str]]:
    """Put a program and its kernels into the installed tree, and return its folder and kernels."""
    folder = root() / "share" / "examples" / "own" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    text = (SOURCES / f"{name}.c").read_text()
    used = sorted(set(re.findall(r'_build/(\w+)\.idma|KERNEL\(\w+, "(\w+)"', text)))
    names = sorted(
        {one or other for one, other in used} & {path.stem for path in SOURCES.glob("*.vsm")}
    )
    for file in (f"{name}.c", "check.h", "Makefile", *(f"{kernel}.vsm" for kernel in names)):
        shutil.copy(SOURCES / file, folder)
    rules = "\n".join(
        f"build $builddir/{kernel}.idma.dat: asm3_loader {kernel}.vsm\n  stem = $builddir/{kernel}"
        for kernel in names
    )
    built = " ".join(f"$builddir/{kernel}.idma.dat" for kernel in names)
    text = (SOURCES / "build.ninja").read_text().replace("KERNELS", built).replace("NAME", name)
    (folder / "build.ninja").write_text(f"{text}\n{rules}\n")
    return folder, names


NINJA = pytest.mark.skipif(shutil.which("ninja") is None, reason="ninja is missing")
MAKE = pytest.mark.skipif(shutil.which("make") is None, reason="make is missing")


def of_ninja(name: str) -> None:
    folder, _ = folder_in_tree(name)
    (folder / "data").mkdir()
    (folder / "data" / "config_pdm0.json").write_text("{}")
    done("ninja", cwd=folder)
    for target in ("test-emu-lib", "test-emu", "test-device"):
        assert "PASS" in done("ninja", target, cwd=folder).split()


@NINJA
def test_ninja() -> None:
    of_ninja("state")


@NINJA
@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_ninja_of_every_program(name: str) -> None:
    of_ninja(name)


def of_make(name: str) -> None:
    folder, names = folder_in_tree(name)
    command = ("make", "-s", f"NAME={name}", f"KERNELS={' '.join(names)}", "test-emu-lib")
    assert "PASS" in done(*command, cwd=folder).split()


@MAKE
def test_make() -> None:
    of_make("loop")


@MAKE
@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_make_of_every_program(name: str) -> None:
    of_make(name)


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is missing")
@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in SPECULATIVE])
def test_valgrind(name: str, tmp_path: Path) -> None:
    """The archive: the host's loader has findings of its own."""
    program = build(folder_of(tmp_path / name), name, "archive", "-g")
    done("valgrind", "-q", "--error-exitcode=9", program, cwd=program.parent)


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_address_sanitizer(name: str, tmp_path: Path) -> None:
    checks = ("-g", "-fsanitize=address,undefined")
    place = (f"-I{root()}/include", f"-I{SOURCES}", f"-L{root()}/lib", "-lmnc2", "-lpthread")
    program = folder_of(tmp_path / name) / name
    done("gcc", *checks, SOURCES / f"{name}.c", "-o", program, *place)
    passes(program)


def test_there_are_forty() -> None:
    """The programs call every function of the interface."""
    assert len(PROGRAMS) + len(OTHERS) >= 40
    assert set(QUICK) <= set(PROGRAMS)
    header = (root() / "include" / "mnc2.h").read_text()
    functions = set(re.findall(r"\b(mnc2_\w+)\(", header))
    texts = "".join((SOURCES / f"{name}.c").read_text() for name in PROGRAMS)
    assert len(functions) == 53
    assert {name for name in functions if f"{name}(" not in texts} == set()
    assert {path.stem for path in SOURCES.glob("*.vsm")} == {
        path.name.removesuffix(".idma.dat") for path in kernels().iterdir()
    }
