"""A process without threads that writes folders, and kills its children while they write."""

from __future__ import annotations

import itertools
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from pycompiler.errors import PycompilerError
from pycompiler.report.codegen_dir import read_file, write_folder

Files = dict[str, bytes]

#: Two versions with names that only one of them has.
VERSIONS: tuple[Files, ...] = (
    {"model.onnx": b"0" * 9000, "report.json": b"0", "layout.side.txt": b"0"},
    {"model.onnx": b"1" * 5000, "report.json": b"1", "model.app": b"1" * 70000},
)
USER = {"notes.txt": b"mine", "model.onnx.bak": b"mine"}


def seen(folder: Path) -> Files:
    """Return the files that a user sees in the folder: names with a leading dot are hidden."""
    shown = (path for path in folder.iterdir() if path.exists() and path.name[0] != ".")
    return {path.name: path.read_bytes() for path in shown}


def check(folder: Path, *wanted: Files) -> None:
    """Check that the folder shows one of ``wanted``, and the user's files if it had any."""
    files = seen(folder)
    assert files in wanted, {name: data[:1] for name, data in files.items()}


def killed_at(step: int, folder: Path, files: Files) -> bool:
    """Write in a child that dies before its call number ``step``; return whether it got there."""
    child = os.fork()
    if child == 0:
        count = itertools.count(1)

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if event.startswith(("os.", "open", "shutil.")) and next(count) == step:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        write_folder(folder, files)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def leftovers(top: Path) -> list[str]:
    return [path.name for path in top.rglob(".*")]


def every_step(top: Path, *, user: bool) -> int:
    """Kill a writer at each of its calls; return how many there are."""
    extra = USER if user else {}
    for step in itertools.count(1):
        folder = top / f"out{step}"
        folder.mkdir()
        for name, data in extra.items():
            (folder / name).write_bytes(data)
        write_folder(folder, VERSIONS[0])
        old, new = VERSIONS[0] | extra, VERSIONS[1] | extra
        died = killed_at(step, folder, VERSIONS[1])
        check(folder, old, new)
        assert read_file(folder, "report.json") in (b"0", b"1")
        write_folder(folder, VERSIONS[0])
        check(folder, old)
        assert all(path.is_file() and not path.is_symlink() for path in folder.iterdir())
        assert leftovers(top) == []
        if not died:
            return step - 1
    raise AssertionError


def some_moments(top: Path, count: int, seed: int, *, user: bool) -> None:
    """Kill writers that write repeatedly, at random moments."""
    rng, folder = random.Random(seed), top / "out"
    extra = USER if user else {}
    folder.mkdir()
    for name, data in extra.items():
        (folder / name).write_bytes(data)
    write_folder(folder, VERSIONS[0])
    for _ in range(count):
        child = os.fork()
        if child == 0:
            for number in itertools.count():
                write_folder(folder, VERSIONS[number % 2])
        time.sleep(rng.random() * 0.02)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        check(folder, *(files | extra for files in VERSIONS))
    write_folder(folder, VERSIONS[1])
    check(folder, VERSIONS[1] | extra)
    assert leftovers(top) == []


def together(top: Path, writers: int, times: int, *, user: bool) -> None:
    """Let several processes write and read one folder."""
    folder = top / "out"
    if user:
        folder.mkdir()
        (folder / "notes.txt").write_bytes(USER["notes.txt"])
    write_folder(folder, VERSIONS[0])
    children = []
    for number in range(writers):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for turn in range(times):
                    write_folder(folder, VERSIONS[(turn + number) % 2])
                    assert read_file(folder, "report.json") in (b"0", b"1")
                code = 0
            except PycompilerError as problem:
                print(problem)
            finally:
                sys.stdout.flush()
                os._exit(code)
        children.append(child)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    extra = {"notes.txt": USER["notes.txt"]} if user else {}
    check(folder, *(files | extra for files in VERSIONS))
    assert leftovers(top) == []


if __name__ == "__main__":
    what, top, *rest = sys.argv[1:]
    user = rest[0] == "user"
    if what == "every_step":
        print(every_step(Path(top), user=user))
    elif what == "some_moments":
        some_moments(Path(top), int(rest[1]), int(rest[2]), user=user)
    elif what == "together":
        together(Path(top), int(rest[1]), int(rest[2]), user=user)
