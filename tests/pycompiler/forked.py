"""Runs ``python -m MODULE`` or ``python -c TEXT`` many times, but imports only once.

One process for all tests imports the libraries, and forks for every command. The fork has its own
arguments, environment, folder and streams. It exits without the destructors of native libraries,
which would wait for threads that a fork does not have. The fixture `forks` provides it.
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
from typing import Any

ROOT = Path(__file__).parents[2]
SECONDS = 120
#: What the process imports; the last module warms torch's exporter up.
MODULES = ("pycompiler.mlsdk", "first_export")


class Forks:
    """Runs programs in forks of one process; ``folder`` holds what they write."""

    def __init__(self, ask: Callable[[Any], int], folder: Path):
        self._ask, self._folder = ask, folder

    def module(
        self, name: str, *arguments: str | Path, **variables: str | None
    ) -> subprocess.CompletedProcess[str]:
        """Do what ``python -m name arguments`` does; None takes a variable away."""
        return self._done({"module": name}, arguments, _with(variables))

    def text(
        self,
        text: str,
        *arguments: str | Path,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        one_stream: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Do what ``python -u -c text arguments`` does in a folder; both streams may become one."""
        place = {} if folder is None else {"folder": str(folder)}
        variables = _with({}) if environment is None else environment
        return self._done({"text": text, **place}, arguments, variables, one_stream)

    def _done(
        self,
        command: Mapping[str, Any],
        arguments: Sequence[str | Path],
        environment: Mapping[str, str],
        one_stream: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        given = {"arguments": list(map(str, arguments)), "environment": dict(environment)}
        names = ("stdout",) if one_stream else ("stdout", "stderr")
        streams = {name: str(self._folder / name) for name in names}
        code = self._ask({**command, **given, "streams": streams})
        written = {name: Path(path).read_text() for name, path in streams.items()}
        return subprocess.CompletedProcess(given["arguments"], code, **written)


def _with(variables: Mapping[str, str | None]) -> dict[str, str]:
    """Return the environment with these variables."""
    found: dict[str, str | None] = {**os.environ, **variables}
    return {name: value for name, value in found.items() if value is not None}


@contextmanager
def forks(folder: Path) -> Iterator[Forks]:
    """Start the process; it ends with the context."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    server = subprocess.Popen(
        [sys.executable, __file__],
        env=_with({"PYTHONPATH": path}),
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
        yield Forks(ask, folder)
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


def _become(command: Mapping[str, Any]) -> None:
    streams: Mapping[str, str] = command["streams"]
    for number, name in ((0, os.devnull), (1, streams["stdout"]), (2, streams.get("stderr", ""))):
        if not name:
            os.dup2(1, number)
            continue
        mode = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        opened = os.open(name, mode, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(command["environment"])
    if "folder" in command:
        os.chdir(command["folder"])
    sys.argv = [command.get("module", "-c"), *command["arguments"]]
    signal.alarm(SECONDS)


def _run(command: Mapping[str, Any]) -> int:
    """Run the module or the text as a program; return the exit code of the interpreter."""
    try:
        if "text" in command:
            _execute(command["text"])
            return 0
        runpy.run_module(f"{command['module']}.__main__", run_name="__main__", alter_sys=True)
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
    sys.path[0] = ""
    sys.stdout.reconfigure(write_through=True)
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(text, "<string>", "exec"), main.__dict__)


if __name__ == "__main__":
    for module in MODULES:
        importlib.import_module(module)
    found = _serve()
    if found is not None:
        _become(found)
        code = _run(found)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
