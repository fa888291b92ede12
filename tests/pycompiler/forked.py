"""Runs ``python -m MODULE`` or ``python -c TEXT`` many times, but imports only once.

A process imports the module and its dependencies, and forks for every command. The fork has its own
arguments, environment, folder and streams. It exits without the destructors of native libraries,
which would wait for threads that a fork does not have.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

SECONDS = 120
#: A module that warms torch's exporter up.
FIRST_EXPORT = "first_export"


class Start(Protocol):
    """Runs a command with ``arguments``; ``variables`` are added to its environment."""

    def __call__(
        self, *arguments: str | Path, **variables: str
    ) -> subprocess.CompletedProcess[str]: ...


class StartText(Protocol):
    """Runs a program in a folder; ``variables`` are added to its environment."""

    def __call__(
        self, text: str, folder: Path, variables: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]: ...


@contextmanager
def commands(module: str, environment: Mapping[str, str], folder: Path) -> Iterator[Start]:
    """Start ``python -m module`` as often as you like; ``folder`` holds the output."""

    def start(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        command = {"arguments": list(map(str, arguments)), "variables": variables}
        streams = {name: str(folder / name) for name in ("stdout", "stderr")}
        code = ask({**command, **streams})
        written = {name: Path(path).read_text() for name, path in streams.items()}
        return subprocess.CompletedProcess(command["arguments"], code, **written)

    with _server((module, FIRST_EXPORT), environment) as ask:
        yield start


@contextmanager
def texts(module: str, environment: Mapping[str, str], output: Path) -> Iterator[StartText]:
    """Start ``python -c text`` as often as you like; ``output`` holds what a program writes.

    ``module`` is imported before. Both streams of a program become one.
    """

    def start(
        text: str, folder: Path, variables: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        command = {"text": text, "arguments": [], "variables": dict(variables)}
        streams = {"stdout": str(output), "stderr": ""}
        code = ask({**command, **streams, "folder": str(folder)})
        return subprocess.CompletedProcess([text], code, output.read_text(), "")

    with _server((module, FIRST_EXPORT), environment) as ask:
        yield start


@contextmanager
def _server(
    modules: Sequence[str], environment: Mapping[str, str]
) -> Iterator[Callable[[Any], int]]:
    """Provide a function that runs a command in a fork, and returns its exit code."""
    server = subprocess.Popen(
        [sys.executable, __file__, *modules],
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    asked, answered = server.stdin, server.stdout

    def ask(command: Any) -> int:
        print(json.dumps(command), file=asked, flush=True)
        return int(answered.readline())

    try:
        yield ask
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
        if not name:
            os.dup2(1, number)
            continue
        mode = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        opened = os.open(name, mode, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    arguments: Sequence[str] = command["arguments"]
    os.environ.update(command["variables"])
    if "folder" in command:
        os.chdir(command["folder"])
    sys.argv = [module, *arguments]
    signal.alarm(SECONDS)


def _run(module: str, text: str | None) -> int:
    """Run the module or the text as a program; return the exit code of the interpreter."""
    try:
        if text is not None:
            _execute(text)
            return 0
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


def _execute(text: str) -> None:
    """Do what ``python -u -c text`` does."""
    sys.argv = ["-c"]
    sys.path[0] = ""
    sys.stdout.reconfigure(write_through=True)
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(text, "<string>", "exec"), main.__dict__)


if __name__ == "__main__":
    name = sys.argv[1]
    for module in sys.argv[1:]:
        importlib.import_module(module)
    found = _serve()
    if found is not None:
        _become(name, found)
        code = _run(name, found.get("text"))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
