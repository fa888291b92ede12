"""Writers of folders that are killed, that run at the same time, or that find no room."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from compiling import context

from pycompiler.cache import CompileCache
from pycompiler.errors import PycompilerError
from pycompiler.files import remove_leftovers, temporary_file, temporary_folder, write_file
from pycompiler.mlsdk import CacheOptions
from pycompiler.report.codegen_dir import write_folder

WRITER = Path(__file__).with_name("writer.py")
SEED = int(os.environ.get("FOLDER_SEED", "11"))


def writer(*arguments: object) -> str:
    """A separate process, because a process that forks must have no threads."""
    done = subprocess.run(
        [sys.executable, WRITER, *map(str, arguments)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("whose", ["ours", "user"])
def test_killed_at_each_call(tmp_path: Path, whose: str) -> None:
    steps = int(writer("every_step", tmp_path, whose))
    assert steps > {"ours": 15, "user": 40}[whose]


@pytest.mark.parametrize("whose", ["ours", "user"])
def test_killed_at_random_moments(tmp_path: Path, whose: str) -> None:
    print(f"FOLDER_SEED={SEED}")
    writer("some_moments", tmp_path, whose, 60, SEED)


@pytest.mark.parametrize("whose", ["ours", "user"])
def test_writers_meet(tmp_path: Path, whose: str) -> None:
    writer("together", tmp_path, whose, 3, 100)


def test_temporary_files_of_the_living_stay(tmp_path: Path) -> None:
    look = "from pathlib import Path; from pycompiler.files import remove_leftovers; import sys; "
    look += "remove_leftovers(Path(sys.argv[1]))"
    with temporary_folder(tmp_path, "a") as folder, temporary_file(tmp_path, "b") as file:
        subprocess.run([sys.executable, "-c", look, tmp_path], check=True)
        remove_leftovers(tmp_path)
        assert folder.is_dir()
        assert file.is_file()
    assert list(tmp_path.iterdir()) == []
    mine = tmp_path / ".out.0123.pycompiler"  # not a name that the writer makes
    mine.write_text("mine")
    remove_leftovers(tmp_path)
    assert mine.exists()


HANG = """
import os, sys, time
from pathlib import Path
from pycompiler.files import temporary_file
with temporary_file(Path(sys.argv[1]), "entry.zip"):
    print("made", flush=True)
    time.sleep(60)
"""


def test_the_next_writer_clears_up_after_a_dead_one(tmp_path: Path) -> None:
    cache, out = tmp_path / "cache", tmp_path / "deep" / "out"
    cache.mkdir()
    out.parent.mkdir()
    for place in (cache, out.parent):
        arguments = [sys.executable, "-c", HANG, place]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"made\n"
            process.kill()
        assert len(list(place.iterdir())) == 1
    sample = {"x": torch.ones(4)}
    options = CacheOptions(cache)
    assert isinstance(options.cache, CompileCache)
    context("emu2:mini").compile(
        lambda d: {"out": d["x"] * 2.0}, sample, out, cache_options=options
    )
    assert [entry.suffix for entry in cache.iterdir()] == [".zip"]
    assert [entry.name for entry in out.parent.iterdir()] == ["out"]


FULL = """
import resource, signal, sys
from pathlib import Path
from pycompiler.errors import PycompilerError
from pycompiler.files import write_file
from pycompiler.report.codegen_dir import write_folder
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
out = Path(sys.argv[1])
for write in (
    lambda: write_folder(out, {"report.json": b"new", "model.app": bytes(5000)}),
    lambda: write_file(out / "report.json", bytes(5000)),
):
    try:
        write()
    except PycompilerError as problem:
        print(problem.code)
"""


@pytest.mark.parametrize("extra", [{}, {"notes.txt": b"mine"}])
def test_no_room_for_the_new_files(tmp_path: Path, extra: dict[str, bytes]) -> None:
    out = tmp_path / "out"
    write_folder(out, {"report.json": b"old", "model.app": b"old", **extra})
    done = subprocess.run(
        [sys.executable, "-c", FULL, out], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["P0003", "P0003"]
    files = {path.name: path.read_bytes() for path in out.iterdir()}
    assert files == {"report.json": b"old", "model.app": b"old", **extra}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_odd_places(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "a", tmp_path / "a" / "below", tmp_path / "pipe", Path("/dev/full")):
        with pytest.raises(PycompilerError) as caught:
            write_folder(place, {"report.json": b"1"})
        assert caught.value.code == "P0003"
        assert "Errno" not in caught.value.message
        if place != tmp_path / "a":
            with pytest.raises(PycompilerError) as caught:
                write_file(place, b"1")
            assert caught.value.code == "P0003"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "pipe"]
    (tmp_path / "to").symlink_to(tmp_path / "made" / "later")
    write_folder(tmp_path / "to", {"report.json": b"1"})
    assert (tmp_path / "made" / "later" / "report.json").read_bytes() == b"1"


def test_a_file_is_written_in_one_piece(tmp_path: Path) -> None:
    file = tmp_path / "lowered.onnx"
    write_file(file, b"old")
    file.chmod(0o640)
    (tmp_path / "link").symlink_to(file)
    write_file(tmp_path / "link", b"new")
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"new", 0o640)
    assert (tmp_path / "link").is_symlink()
    write_file(Path("/dev/null"), b"nothing")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(PycompilerError, match="nobody reads"):
        write_file(tmp_path / "pipe", b"through")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_file(tmp_path / "pipe", b"through")
    assert os.read(reader, 99) == b"through"
    os.close(reader)
