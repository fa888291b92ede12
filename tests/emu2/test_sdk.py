"""The SDK: host programs in C, C++ and Fortran, built in every way that public build files use."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from sdk_root import LINKS, SOURCES, STRICT, TREE, build, done, folder_of, passes, root, run, staged

import emu2

LANGUAGES = TREE / "emu2/capi/sdk/share/examples/mnc2/languages"
"""Examples in other languages, which the SDK installs."""

needs = {
    name: pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is missing")
    for name in ("clang", "clang++", "gfortran", "ninja", "make", "cmake", "pkg-config")
}


@pytest.mark.parametrize("how", LINKS)
def test_one_copy(how: str, tmp_path: Path) -> None:
    """However a program is linked, its process has one copy of the engine."""
    program = build(folder_of(tmp_path), "copy", how)
    env = {"LD_LIBRARY_PATH": f"{root()}/lib/emu-lib", "LD_DEBUG": "files"}
    loaded = run(program, cwd=tmp_path, env=env).stderr
    own = "mnc2_open" in done("nm", program) and " T emu2_engine" in done("nm", program)
    assert (
        len(re.findall(r"generating link map.*libemu2|libemu2\.so \[0\];  generating", loaded))
        + own
    ) == 1


def test_inspection(tmp_path: Path) -> None:
    """The inspection library is compiled in, strictly."""
    sdk, folder = root(), folder_of(tmp_path)
    sources = sorted((sdk / "src" / "mnc2-inspect").glob("*.c"))
    flags = ("-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2")
    program = folder / "inspect"
    done(
        "gcc",
        *flags,
        f"-I{sdk}/include",
        f"-I{SOURCES}",
        "-o",
        program,
        SOURCES / "inspect.c",
        *sources,
    )
    passes(program)


def test_lower_library(tmp_path: Path) -> None:
    sdk, folder = root(), folder_of(tmp_path)
    places = (f"-I{sdk}/include", f"-I{SOURCES}", f"-I{sdk}/libgpfn3-emu/include")
    program = folder / "low"
    done("gcc", *STRICT, *places, SOURCES / "low.c", "-o", program, f"-L{sdk}/lib", "-lgpfn3")
    passes(program, "lib")


@pytest.mark.parametrize("compiler", ["g++", pytest.param("clang++", marks=needs["clang++"])])
def test_cpp(compiler: str, tmp_path: Path) -> None:
    flags = done(
        sys.executable,
        "-m",
        "emu2.cli",
        "cc",
        "--cflags",
        "--libs",
        env={"EMU2_SDK_TREE": str(root())},
    )
    program = folder_of(tmp_path) / "owners"
    strict = ("-std=c++17", "-Wall", "-Wextra", "-pedantic", "-Werror")
    done(compiler, *strict, LANGUAGES / "owners.cpp", "-o", program, *flags.split())
    assert run(program, cwd=tmp_path).stdout == "PASS\n"


@needs["gfortran"]
def test_fortran(tmp_path: Path) -> None:
    program = folder_of(tmp_path) / "host"
    libraries = (f"-L{root()}/lib", f"-Wl,-rpath,{root()}/lib", "-lmnc2")
    done("gfortran", "-Wall", LANGUAGES / "host.f90", "-o", program, *libraries, cwd=tmp_path)
    assert run(program, cwd=tmp_path).stdout.strip() == "PASS"


def test_ctypes(tmp_path: Path) -> None:
    """Python loads the library without the package emu2."""
    command = (sys.executable, "-I", LANGUAGES / "host.py")
    env = {"LIBRARY": f"{root()}/lib/libmnc2.so"}
    assert done(*command, cwd=folder_of(tmp_path / "run"), env=env) == "PASS\n"


@needs["ninja"]
def test_ninja(tmp_path: Path) -> None:
    """A program in the installed tree, with its rules; on emu:process from its text."""
    folder = root() / "share" / "examples" / "mnc2" / "copy"
    done("ninja", cwd=folder)
    for target in ("test-emu-lib", "test-device"):
        assert "PASS" in done("ninja", target, cwd=folder)
    (folder / "_build" / "copy.idma.dat").unlink()
    assert "PASS" in done("ninja", "test-emu", cwd=folder)
    assert "test-emu-lib" in done("ninja", "test", cwd=folder)


@needs["pkg-config"]
def test_activate_and_pkg_config(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    script = f""". {root()}/activate
test "$SDK_ROOT" = {root()} && command -v vsmlink assemble3 sdk-versions > /dev/null
gcc {SOURCES}/copy.c -I{SOURCES} $(pkg-config --cflags --libs mnc2) -o copy && ./copy
deactivate
test -z "$SDK_ROOT$LD_LIBRARY_PATH"
"""
    assert done("sh", "-ec", script, cwd=folder, env={"LD_LIBRARY_PATH": ""}) == "PASS\n"


@needs["cmake"]
def test_cmake(tmp_path: Path) -> None:
    text = f"""cmake_minimum_required(VERSION 3.13)
project(copy C)
find_package(mnc2 REQUIRED CONFIG PATHS {root()}/lib/cmake)
add_executable(copy {SOURCES}/copy.c)
target_link_libraries(copy mnc2::mnc2)
"""
    (tmp_path / "CMakeLists.txt").write_text(text)
    done("cmake", "-S", tmp_path, "-B", tmp_path / "b")
    done("cmake", "--build", tmp_path / "b")
    assert run(tmp_path / "b" / "copy", cwd=folder_of(tmp_path / "run")).stdout == "PASS\n"


def test_environment(tmp_path: Path) -> None:
    """emu:process needs its variable; kernels beyond the limit of contiguous memory are refused."""
    program = build(folder_of(tmp_path), "copy", "libraries")
    process = {"LD_LIBRARY_PATH": f"{root()}/lib/emu-process", "MNC2_EMU_CONFIG": ""}
    result = run(program, cwd=tmp_path, env=process)
    assert (result.returncode, "MNC2_EMU_CONFIG" in result.stderr) == (1, True)
    limited = {"LD_LIBRARY_PATH": f"{root()}/lib/emu-lib", "EMU2_DMA_LIMIT": "64"}
    result = run(program, cwd=tmp_path, env=limited)
    assert (result.returncode, "contiguous" in result.stderr) == (1, True)
    result = run(program, cwd=tmp_path, env={**limited, "EMU2_QUIET": "1"})
    assert (result.returncode, result.stderr) == (1, "")


@pytest.mark.long
def test_wheel(tmp_path: Path) -> None:
    """The distribution is small, and holds what the command installs."""
    script = f"import backend; print(backend.build_wheel({str(tmp_path)!r}))"
    place = {"PYTHONPATH": str(TREE / "emu2" / "capi" / "sdk"), "EMU2_SDK_TREE": str(staged())}
    wheel = tmp_path / done(sys.executable, "-c", script, env=place).strip()
    assert wheel.stat().st_size < 8_000_000
    done(sys.executable, "-m", "zipfile", "-e", wheel, tmp_path / "site")
    packages = f"{tmp_path / 'site'}:{TREE}"
    command = (sys.executable, "-m", "emu2.cli", "sdk", "install", tmp_path / "sdk")
    done(*command, env={"PYTHONPATH": packages})
    assert (tmp_path / "sdk" / "lib" / "libemu2.so").exists()


def test_install_refuses(tmp_path: Path) -> None:
    """Other files are not overwritten, and a missing SDK is one diagnostic."""
    (tmp_path / "mine").write_text("text")
    command = (sys.executable, "-m", "emu2.cli", "sdk", "install", tmp_path)
    result = run(*command, env={"EMU2_SDK_TREE": str(root())})
    assert (result.returncode, "error[F0005]" in result.stderr) == (1, True)
    result = run(*command, env={"EMU2_SDK_TREE": str(tmp_path)})
    assert (result.returncode, "emu2-sdk" in result.stderr) == (1, True)


BLOCK = re.compile(r"^```(sh|text (\S+))\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_tutorial(tmp_path: Path) -> None:
    """Every block of the tutorial runs, in one shell."""
    page = (TREE / "docs" / "tutorial" / "host.md").read_text()
    script = [f'emu2() {{ "{sys.executable}" -m emu2.cli "$@"; }}']
    for kind, name, text in BLOCK.findall(page):
        if kind == "sh":
            script.append(text)
        else:
            (tmp_path / name).write_text(text)
    printed = done("sh", "-ec", "\n".join(script), cwd=tmp_path, env={"EMU2_SDK_TREE": str(root())})
    assert "emu:lib: c[4095] = 6142.5" in printed


def test_trace(tmp_path: Path) -> None:
    """`emu2 trace` counts the launches of a program, and passes its exit code on."""
    program = build(folder_of(tmp_path), "state", "libraries")
    env = {"LD_LIBRARY_PATH": f"{root()}/lib/emu-lib"}
    command = (sys.executable, "-m", "emu2.cli", "trace")
    files = ("--json", "ran.json", "--timeline", "line.json")
    result = run(*command, *files, program, cwd=tmp_path, env=env)
    assert (result.returncode, result.stdout) == (0, "PASS\n"), result.stderr
    (device,) = json.loads((tmp_path / "ran.json").read_text())
    counts = {Path(k["name"]).stem: k["launches"] for k in device["kernels"]}
    assert counts == {"keep": 1, "twice": 3}
    assert device["order"] == [0, 1, 1, 1]
    events = json.loads((tmp_path / "line.json").read_text())["traceEvents"]
    assert [event["name"] for event in events] == ["keep"] + ["twice"] * 3
    ends = [event["ts"] + event["dur"] for event in events]
    assert [event["ts"] for event in events[1:]] == ends[:-1]
    assert "1 devices, 4 launches" in result.stderr
    assert run(*command, "sh", "-c", "exit 7").returncode == 7
    assert run(*command, tmp_path / "none").returncode == 2


def test_trace_tools(tmp_path: Path) -> None:
    """Profile, counters, fidelity and steps of the launches, by options or by variables."""
    program = build(folder_of(tmp_path), "state", "libraries")
    library = {"LD_LIBRARY_PATH": f"{root()}/lib/emu-lib"}
    command = (sys.executable, "-m", "emu2.cli", "trace")
    options = ("--profile", "--counters", "--fidelity", "--sanitize", "--steps")
    by_option = run(*command, *options, "--timeline", "a.json", program, cwd=tmp_path, env=library)
    names = {f"EMU2_{option[2:].upper()}": "1" for option in options}
    chosen = {**library, **names, "EMU2_TIMELINE": "b.json"}
    by_variable = run(*command, program, cwd=tmp_path, env=chosen)
    assert (by_option.returncode, by_option.stdout) == (0, "PASS\n")
    assert by_option.stderr == by_variable.stderr
    shown = by_option.stderr
    assert "3 launches of\n_build/twice: 44 steps, 424 cycles" in shown
    assert re.search(
        r"^ +252 .*nop; wait i1e  # twice\.vsm:10 waits for line 9", shown, re.MULTILINE
    )
    counted = {name: int(n) for n, name in re.findall(r"^ +(\d+)  ([\w.]+)$", shown, re.MULTILINE)}
    assert (counted["steps"], counted["words.pdm.written"]) == (183, 192)
    assert "191 100.0%  reproduced against real output" in shown
    first, second = (
        json.loads((tmp_path / f"{name}.json").read_text())["traceEvents"] for name in "ab"
    )
    strip = {"pid"}
    assert [{k: v for k, v in one.items() if k not in strip} for one in first] == [
        {k: v for k, v in one.items() if k not in strip} for one in second
    ]
    launches = [event for event in first if event["ph"] == "X" and event["tid"] == 0]
    steps = [event for event in first if event["ph"] == "X" and event["tid"] > 0]
    assert [event["name"] for event in launches] == ["keep", "twice", "twice", "twice"]
    assert {event["args"]["place"].split(":")[0] for event in steps} == {"keep.vsm", "twice.vsm"}
    for launch in launches[1:]:
        ends = launch["ts"] + launch["dur"]
        own = [event for event in steps if launch["ts"] <= event["ts"] < ends]
        assert sum(event["name"] == "ladd $lm0 $lm0 $ln0" for event in own) == 1


def test_trace_sanitizes(tmp_path: Path) -> None:
    """What the host receives without a value is found, at its place in the source."""
    program = build(folder_of(tmp_path), "undefined", "libraries")
    library = {"LD_LIBRARY_PATH": f"{root()}/lib/emu-lib"}
    command = (sys.executable, "-m", "emu2.cli", "trace", "--sanitize", "--json", "ran.json")
    result = run(*command, program, cwd=tmp_path, env=library)
    assert (result.returncode, result.stdout) == (1, "PASS\n")
    found = result.stderr.split("on the device\n")[1].splitlines()
    assert found[0].startswith("warning[Z0101]: pdm[64] of n0 is shown and has no defined value")
    assert "line 1 of undefined.vsm reads lm0[20]" in found[0]
    assert found[1] == "  --> receive of 512 bytes at 512 (launch 1 of _build/undefined)"
    (device,) = json.loads((tmp_path / "ran.json").read_text())
    assert device["kernels"][0]["findings"][0]["code"] == "Z0101"
    alone = run(program, cwd=tmp_path, env={**library, "EMU2_SANITIZE": "1"})
    assert (alone.returncode, "warning[Z0101]: receive of 512" in alone.stderr) == (0, True)


def test_a_process_that_closes_nothing(tmp_path: Path) -> None:
    """Its launches and its memories are written when it ends."""
    source = tmp_path / "left.c"
    text = (SOURCES / "copy.c").read_text().replace("mnc2_close(dev);", "")
    source.write_text(text)
    folder, sdk = folder_of(tmp_path / "run"), root()
    flags = (f"-I{sdk}/include", f"-I{SOURCES}", f"-L{sdk}/lib", f"-Wl,-rpath,{sdk}/lib", "-lmnc2")
    done("gcc", source, "-o", folder / "left", *flags)
    files = {"EMU2_REPORT": str(folder / "report"), "EMU2_STATE": str(folder / "state")}
    assert done(folder / "left", cwd=folder, env=files) == "PASS\n"
    assert json.loads((folder / "report").read_text())["kernels"][0]["launches"] >= 1
    machine = emu2.Machine(emu2.Spec.load("mncore2"))
    machine.load_state(folder / "state")
    assert machine.read("pdm", addr=0, count=64, group=0).any()
    other = emu2.Machine(emu2.Spec.load("mini"))
    with pytest.raises(emu2.EmulatorError, match="R0005"):
        other.load_state(folder / "state")
    machine.save_state(folder / "again")
    assert (folder / "again").read_bytes() == (folder / "state").read_bytes()


def test_kits(tmp_path: Path) -> None:
    tool = root() / "bin" / "sdk-examples"
    assert "mnc2" in done(tool, "--list").split()
    copied = Path(done(tool, "mnc2", tmp_path).strip())
    assert "emu2 " in done(root() / "bin" / "sdk-versions")
    if shutil.which("ninja"):
        assert "PASS" in done("ninja", "test-emu-lib", cwd=copied / "copy")


def test_inspect(tmp_path: Path) -> None:
    """The tool shows the tags that the inspection library finds."""
    folder = folder_of(tmp_path / "run")
    tool = root() / "bin" / "mnc2-inspect"
    rows = done(tool, folder / "_build" / "three.idma.dat").splitlines()
    assert [row.split() for row in rows[:3]] == [
        ["0", "auto", "waits", "-", "mv", "i1e"],
        ["1", "auto", "waits", "-", "mv", "i1d"],
        ["2", "auto", "waits", "-", "mv", "i1c"],
    ]
    assert "waits i10  mv i1e" in done(tool, folder / "_build" / "copy.idma.dat")
    assert emu2.__version__ in done(tool, "--version")
    (tmp_path / "cut").write_bytes(bytes(100))
    result = run(tool, tmp_path / "cut")
    assert (result.returncode, "128" in result.stderr) == (1, True)


def test_abi_only_grows() -> None:
    """Every symbol, constant and place of the interface is as it was; new ones join the dump."""
    known = (TREE / "emu2" / "capi" / "abi.txt").read_text().splitlines()
    now = symbols() + values()
    assert [line for line in known if line not in now] == []
    assert [line for line in now if line not in known] == [], "add these lines to emu2/capi/abi.txt"


def symbols() -> list[str]:
    """Return the exported symbols of the shared libraries, with their versions."""
    found = []
    for library in ("libmnc2", "libgpfn3"):
        for folder in ("lib", "lib/emu-lib", "lib/emu-process"):
            rows = done(
                "nm", "-D", "--defined-only", root() / folder / f"{library}.so"
            ).splitlines()
            names = sorted(f"{library} {row.split()[-1]}" for row in rows if " T " in row)
            assert found[-len(names) :] == names or folder == "lib"
            found = [row for row in found if not row.startswith(library)] + names
    return found


def values() -> list[str]:
    """Return the sizes and places of structures, and the constants."""
    header = (root() / "include" / "mnc2.h").read_text()
    constants = re.findall(r"#define (MNC2_\w+) [(\d]", header) + re.findall(
        r"\b(MNC2_\w+) = \d", header
    )
    fields = {
        "mnc2_loc_t": ("chip", "l2b", "l1b", "mab", "pe"),
        "mnc2_ddma_ch_stat_t": ("active", "regset", "overflow", "n_dma"),
        "mnc2_ddma_stat_t": ("host_to_pdm", "pdm_to_host"),
        "mnc2_idma_stat_t": ("n_dma", "inst_in_ibuf", "overflow"),
        "mnc2_capture_t": ("all_nop", "empty_nop", "power_nop", "tag"),
    }
    prints = [f'printf("{name} %d\\n", (int){name});' for name in sorted(constants)]
    for kind, names in fields.items():
        prints.append(f'printf("{kind} %zu\\n", sizeof({kind}));')
        prints += [f'printf("{kind}.{name} %zu\\n", offsetof({kind}, {name}));' for name in names]
    body = "\n".join(prints)
    source = f"#include <mnc2.h>\n#include <stdio.h>\nint main(void) {{\n{body}\nreturn 0;\n}}\n"
    program = root() / "abi"
    program.with_suffix(".c").write_text(source)
    done("gcc", f"-I{root()}/include", program.with_suffix(".c"), "-o", program)
    return done(program).splitlines()
