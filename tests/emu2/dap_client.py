"""An editor's side of the Debug Adapter Protocol, for tests."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, BinaryIO

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "emu2.cli", "dap"]


class Client:
    """Sends requests and reads what comes back."""

    def __init__(self, reader: BinaryIO, writer: BinaryIO) -> None:
        self.reader, self.writer, self.number = reader, writer, 0
        self.events: list[dict[str, Any]] = []

    def read(self) -> dict[str, Any] | None:
        length = 0
        while (line := self.reader.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if not length:
            return None
        message: dict[str, Any] = json.loads(self.reader.read(length))
        return message

    def raw(self, data: bytes) -> None:
        self.writer.write(data)
        self.writer.flush()

    def request(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a request and return its response; events on the way are kept."""
        self.number += 1
        message = {"seq": self.number, "type": "request", "command": command}
        body = json.dumps(message | {"arguments": arguments}).encode()
        self.raw(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        while (found := self.read()) is not None:
            if found["type"] == "response":
                assert found["request_seq"] == self.number
                return found
            self.events.append(found)
        raise AssertionError("the adapter ended")

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a request that must succeed, and return its body."""
        response = self.request(command, **arguments)
        assert response["success"], response
        body: dict[str, Any] = response.get("body") or {}
        return body

    def refused(self, command: str, **arguments: Any) -> str:
        """Send a request that must fail, and return its diagnostic."""
        response = self.request(command, **arguments)
        assert not response["success"], response
        return str(response["message"])

    def event(self, name: str) -> dict[str, Any]:
        """Return the body of the next event with this name."""
        while True:
            for at, found in enumerate(self.events):
                if found["event"] == name:
                    del self.events[: at + 1]
                    body: dict[str, Any] = found["body"]
                    return body
            message = self.read()
            assert message is not None, f"no event {name}"
            self.events.append(message)

    def moves(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a request that moves the program, and return where it stops."""
        self.ask(command, threadId=1, **arguments)
        return self.event("stopped")

    def line(self) -> int:
        """Return the line that comes next."""
        return int(self.ask("stackTrace", threadId=1)["stackFrames"][0]["line"])

    def launch(self, program: Path, spec: str = "mini", **more: Any) -> None:
        """Do what an editor does until the program stands at its first line."""
        self.ask("initialize", adapterID="emu2", linesStartAt1=True)
        self.event("initialized")
        self.ask("launch", program=str(program), spec=spec, **more)


def start() -> tuple[subprocess.Popen[bytes], Client]:
    """Start `emu2 dap` on pipes."""
    process = subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    )
    assert process.stdin is not None
    assert process.stdout is not None
    return process, Client(process.stdout, process.stdin)


def connect() -> tuple[subprocess.Popen[bytes], Client]:
    """Start `emu2 dap` on a port, and connect."""
    process = subprocess.Popen([*COMMAND, "--port", "0"], stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    address = process.stdout.readline().decode().split()[-1]
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)))
    return process, Client(connection.makefile("rb"), connection.makefile("wb"))
