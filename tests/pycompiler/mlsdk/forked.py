"""Runs ``python -m MODULE`` many times, but imports only once.

A process imports the module and its dependencies, and forks for every command. The fork has its own
arguments, environment and streams. It exits without the destructors of native libraries, which
would wait for threads that a fork does not have.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

SECONDS = 120


class Start(Protocol):
    """Runs a command with ``arguments``; ``variables`` are added to its environment."""

    def __call__(
        self, *arguments: str | Path, **variables: str
    ) -> subprocess.CompletedProcess[str]: ...


@contextmanager
def commands(module: str, environment: Mapping[str, str], folder: Path) -> Iterator[Start]:
    """Start ``python -m module`` as often as you like; ``folder`` holds the output."""
    server = subprocess.Popen(
        [sys.executable, __file__, module],
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    asked, answered = server.stdin, server.stdout

    def start(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        command = {"arguments": list(map(str, arguments)), "variables": variables}
        streams = {name: str(folder / name) for name in ("stdout", "stderr")}
        print(json.dumps(command | streams), file=asked, flush=True)
        code = int(answered.readline())
        texts = {name: Path(path).read_text() for name, path in streams.items()}
        return subprocess.CompletedProcess(command["arguments"], code, **texts)

    try:
        yield start
    finally:
        asked.close()
        server.wait(SECONDS)
        answered.close()


def _serve() -> dict[str, Any] | None:
    """Fork for every line of stdin. Return the command in each fork, None at the end."""
    for line in sys.stdin:
        command: dict[str, Any] = json.loads(line)
        child = os.fork()
        if child == 0:
            return command
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return None


def _become(module: str, command: Mapping[str, Any]) -> None:
    for number, name in ((0, os.devnull), (1, command["stdout"]), (2, command["stderr"])):
        mode = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        opened = os.open(name, mode, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    arguments: Sequence[str] = command["arguments"]
    os.environ.update(command["variables"])
    sys.argv = [module, *arguments]
    signal.alarm(SECONDS)


def _run(module: str) -> int:
    """Run the module as a program; return the exit code of the interpreter."""
    try:
        runpy.run_module(f"{module}.__main__", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


if __name__ == "__main__":
    name = sys.argv[1]
    importlib.import_module(name)
    found = _serve()
    if found is not None:
        _become(name, found)
        code = _run(name)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
