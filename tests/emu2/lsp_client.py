"""An editor's side of the Language Server Protocol, for tests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "emu2.cli", "lsp"]


class Client:
    """Starts a server and talks with it over its pipes."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.number = 0
        self.notes: list[dict[str, Any]] = []

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        length = 0
        while (line := self.process.stdout.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        assert length, "the server ended"
        message: dict[str, Any] = json.loads(self.process.stdout.read(length))
        return message

    def ask(self, method: str, **given: Any) -> Any:
        """Send a request and return its result."""
        self.number += 1
        self._send({"id": self.number, "method": method, "params": given})
        while True:
            message = self._read()
            if message.get("id") == self.number:
                assert "error" not in message, message
                return message["result"]
            self.notes.append(message)

    def tell(self, method: str, **given: Any) -> None:
        """Send a notification."""
        self._send({"method": method, "params": given})

    def diagnostics(self, uri: str) -> list[dict[str, Any]]:
        """Return the next diagnostics that the server publishes about a document."""
        while True:
            message = self.notes.pop(0) if self.notes else self._read()
            if message.get("method") == "textDocument/publishDiagnostics":
                assert message["params"]["uri"] == uri
                found: list[dict[str, Any]] = message["params"]["diagnostics"]
                return found

    def end(self) -> int:
        self.ask("shutdown")
        self.tell("exit")
        return self.process.wait(timeout=20)
