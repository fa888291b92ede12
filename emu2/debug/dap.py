"""The Debug Adapter Protocol: messages on a pair of streams or on a TCP port.

The adapter reads requests in one thread and runs the program in another one, so `pause` is heard
while it runs. Every request gets one response. One that is wrong gets one diagnostic, and the
session goes on.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from queue import Queue
from typing import Any, BinaryIO

import emu2
from emu2.debug.dap_requests import Opener, Requests, launched
from emu2.debug.session import Stop

_HEADER_LIMIT = 1 << 12
_MESSAGE_LIMIT = 1 << 24
_REPEAT = 0.05

Message = dict[str, Any]


class MalformedError(Exception):
    """Bytes that are no message. What follows them cannot be read."""


def read_message(stream: BinaryIO) -> Message | None:
    """Return the next message; None at the end of the stream. Raises MalformedError."""
    length = None
    size = 0
    while True:
        line = stream.readline(_HEADER_LIMIT)
        size += len(line)
        if not line and size == 0:
            return None
        if not line.endswith(b"\n") or size > _HEADER_LIMIT:
            raise MalformedError("the header of a message is malformed")
        if line in (b"\r\n", b"\n"):
            break
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value) if value.strip().isdigit() else None
    if length is None or length > _MESSAGE_LIMIT:
        raise MalformedError("a message needs the header `Content-Length`")
    data = b""
    while len(data) < length:
        piece = stream.read(length - len(data))
        if not piece:
            raise MalformedError("the stream ends inside a message")
        data += piece
    try:
        message = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"a message is no JSON: {error}") from error
    if not isinstance(message, dict):
        raise MalformedError("a message is no object")
    return message


class Writer:
    """Writes responses and events, each with its number. Several threads may call it."""

    def __init__(self, stream: BinaryIO) -> None:
        """Remember the stream."""
        self._stream = stream
        self._lock = threading.Lock()
        self._number = 0

    def send(self, kind: str, **fields: Any) -> None:
        """Write one message. An editor that has gone away is no error."""
        with self._lock:
            self._number += 1
            message = {"seq": self._number, "type": kind, **fields}
            body = json.dumps(message).encode()
            try:
                self._stream.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                self._stream.flush()
            except (OSError, ValueError):
                return

    def event(self, name: str, **body: Any) -> None:
        """Write an event."""
        self.send("event", event=name, body=body)


class Adapter:
    """One editor's session."""

    def __init__(self, reader: BinaryIO, writer: BinaryIO, opener: Opener) -> None:
        """Remember the streams. `opener` answers `launch` with a session."""
        self._reader = reader
        self._writer = Writer(writer)
        self._requests = Requests(opener)
        self._work: Queue[Callable[[], Stop] | None] = Queue()
        self._running = threading.Event()
        self._worker = threading.Thread(target=self._run, daemon=True)

    def serve(self) -> None:
        """Answer requests until the editor disconnects or the stream ends."""
        self._worker.start()
        try:
            while True:
                message = read_message(self._reader)
                if message is None or not self._answer(message):
                    break
        except MalformedError as error:
            self._writer.event("output", category="stderr", output=f"error[D0005]: {error}\n")
        finally:
            self._halt()
            self._work.put(None)
            self._worker.join()
            self._requests.close()

    def _halt(self) -> None:
        """Make the program stop if it runs. A request before the run begins is repeated."""
        run = self._requests.run
        while run is not None and self._running.is_set():
            run.pause()
            threading.Event().wait(_REPEAT)

    def _answer(self, message: Message) -> bool:
        """Answer one message. Returns whether the session goes on."""
        command, arguments = message.get("command"), message.get("arguments") or {}
        if message.get("type") != "request" or not isinstance(command, str):
            self._writer.event("output", category="stderr", output="error[D0005]: no request\n")
            return True
        answer: Message = {"request_seq": message.get("seq", 0), "command": command}
        try:
            if not isinstance(arguments, dict):
                raise _bad(f"the arguments of `{command}` are no object")
            if command == "pause":
                self._writer.send("response", **answer, success=True)
                self._halt()
                return True
            if self._running.is_set() and command not in ("disconnect", "terminate", "threads"):
                raise _bad(f"`{command}` came while the program runs")
            body, work = self._requests.answer(command, arguments)
        except emu2.Emu2Error as error:
            self._refuse(answer, str(error))
            return True
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            text = f"error[D0005]: the arguments of `{command}` are malformed: {error!r}"
            self._refuse(answer, text)
            return True
        except Exception as error:  # a fault of emu2 is a diagnostic, never a traceback
            self._refuse(answer, f"error[B0001]: a fault of emu2: {type(error).__name__}: {error}")
            return True
        if work is not None:
            self._running.set()
        self._writer.send("response", **answer, success=True, body=body)
        if command == "initialize":
            self._writer.event("initialized")
        if work is not None:
            self._work.put(work)
            if self._requests.stands(command):
                self._work.join()  # the next request may be there already
        if command in ("disconnect", "terminate"):
            self._halt()
            self._writer.event("terminated")
            return command != "disconnect"
        return True

    def _refuse(self, answer: Message, text: str) -> None:
        error = {"id": 1, "format": text, "showUser": True}
        self._writer.send("response", **answer, success=False, message=text, body={"error": error})

    def _run(self) -> None:
        """Do the work that moves the program, and say where it stops."""
        while (work := self._work.get()) is not None:
            try:
                stop = work()
            except Exception as error:  # a fault of emu2 is a diagnostic, never a hang
                self._running.clear()
                text = (
                    str(error) if isinstance(error, emu2.Emu2Error) else f"error[B0001]: {error!r}"
                )
                self._writer.event("output", category="stderr", output=text + "\n")
                self._stopped("exception", text)
            else:
                self._running.clear()
                self._say(stop)
            self._work.task_done()

    def _say(self, stop: Stop) -> None:
        for line in stop["dump"]:
            self._writer.event("output", category="stdout", output=line + "\n")
        reason, text = stop["reason"], stop["text"]
        if stop["error"] is not None:
            error = stop["error"]
            text = f"error[{error['code']}]: {error['message']}"
            self._writer.event("output", category="stderr", output=text + "\n")
            self._stopped("exception", text)
        elif reason == "exit":
            self._writer.event("terminated")
        elif reason == "end":
            # The program stays, so that one can look at it and go back.
            self._stopped("pause", "end of the program")
        elif reason == "start":
            self._stopped("entry", "start of the program")
        elif reason == "breakpoint":
            self._stopped(*self._requests.reason(stop), hitBreakpointIds=stop["breakpoints"])
        else:
            self._stopped(reason, text)

    def _stopped(self, reason: str, text: str, **more: Any) -> None:
        self._writer.event(
            "stopped",
            reason=reason,
            description=text or reason,
            text=text,
            threadId=1,
            allThreadsStopped=True,
            **more,
        )


def _bad(message: str) -> emu2.EmulatorError:
    remedy = "wait for the program to stop, or send `pause`"
    return emu2.EmulatorError(code="D0005", message=message, help=remedy)


def serve(reader: BinaryIO, writer: BinaryIO, opener: Opener = launched) -> None:
    """Serve one editor on a pair of streams. `opener` answers `launch` with a session."""
    Adapter(reader, writer, opener).serve()


def serve_port(host: str, port: int, ready: Callable[[int], None]) -> None:
    """Serve one editor that connects to a TCP port. `ready` gets the port that was chosen."""
    with socket.create_server((host, port)) as server:
        ready(server.getsockname()[1])
        connection, _ = server.accept()
    with connection, connection.makefile("rb") as reader, connection.makefile("wb") as writer:
        serve(reader, writer)
