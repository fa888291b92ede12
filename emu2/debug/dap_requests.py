"""The requests of the Debug Adapter Protocol on a session."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import emu2
from emu2.debug.dap_console import Console, is_command, is_move
from emu2.debug.dap_variables import Variables
from emu2.debug.session import Files, Session, Stop, open_session

Body = dict[str, Any]
Work = Callable[[], Stop]

CAPABILITIES = {
    "supportsConfigurationDoneRequest": True,
    "supportsConditionalBreakpoints": True,
    "supportsFunctionBreakpoints": True,
    "supportsDataBreakpoints": True,
    "supportsStepBack": True,
    "supportsEvaluateForHovers": True,
    "supportsSetVariable": True,
    "supportsReadMemoryRequest": True,
    "supportsDisassembleRequest": True,
    "supportsSteppingGranularity": True,
    "supportsGotoTargetsRequest": True,
    "supportsTerminateRequest": True,
    "supportsLoadedSourcesRequest": True,
    "exceptionBreakpointFilters": [
        {"filter": "infinity", "label": "Infinity", "description": "a result is infinite"},
        {"filter": "flag", "label": "Flag", "description": "a step sets a flag"},
        {"filter": "overflow", "label": "Overflow", "description": "a conversion overflows"},
        {"filter": "hazard", "label": "Hazard", "description": "a warning about timing"},
    ],
}


def _said(text: str) -> Body:
    return {"result": text, "variablesReference": 0}


PACKED = ".idma.dat"
"""Files whose text an editor cannot show."""

_GRANULARITY = {"statement": "line", "line": "line", "instruction": "line"}


Opener = Callable[[Body], Session]
"""Makes the session that the arguments of `launch` ask for."""


def launched(arguments: Body) -> Session:
    """Open `program` on the machine `spec`, with the files `config`, `load` and `state`."""
    files = Files(arguments.get("config"), arguments.get("load"), arguments.get("state"))
    return open_session(str(arguments["program"]), str(arguments.get("spec", "mncore2")), files)


class Requests:
    """Answers requests: a body, and the work that moves the program, if it moves."""

    def __init__(self, opener: Opener = launched) -> None:
        """Begin without a program."""
        self._opener = opener
        self.session: Session | None = None
        self.variables: Variables | None = None
        self._own: dict[str, list[int]] = {}
        self._at_entry = True
        self._exceptions: dict[int, str] = {}
        #: The numbers of the first line and the first column, as the editor counts them.
        self._first = {"line": 1, "column": 1}
        self._uris = False

    @property
    def run(self) -> emu2.Debugger | None:
        """The run, if a program was launched."""
        return self.session.run if self.session is not None else None

    def stands(self, command: str) -> bool:
        """Say whether the work of a request moves no statement, so that it ends at once."""
        local = isinstance(self.run, emu2.Debugger)
        return command == "configurationDone" and self._at_entry and local

    def answer(self, command: str, arguments: Body) -> tuple[Body, Work | None]:
        """Answer one request. Raises EmulatorError for one that is wrong."""
        method = getattr(self, f"on_{command}", None)
        if method is None:
            remedy = "use a request of the Debug Adapter Protocol that `initialize` names"
            raise emu2.EmulatorError(
                code="D0005", message=f"the request `{command}` is not supported", help=remedy
            )
        found = method(arguments)
        return found if isinstance(found, tuple) else (found, None)

    def _session(self) -> Session:
        if self.session is None:
            remedy = "send `launch` with a program first"
            raise emu2.EmulatorError(code="D0005", message="no program was launched", help=remedy)
        return self.session

    def reason(self, stop: Stop) -> tuple[str, str]:
        """Return the reason of a stop at breakpoints, as the protocol names it, and its text."""
        data = set(self._own.get("data", ()))
        for number in stop["breakpoints"]:
            if number in self._exceptions:
                return "exception", stop["text"]
            if number in data:
                return "data breakpoint", stop["text"]
        functions = set(self._own.get("function", ()))
        is_function = functions.intersection(stop["breakpoints"])
        return "function breakpoint" if is_function else "breakpoint", stop["text"]

    # The session.

    def on_initialize(self, arguments: Body) -> Body:
        """Say what is supported, and hear how the editor counts lines and writes paths."""
        for name in self._first:
            self._first[name] = int(bool(arguments.get(f"{name}sStartAt1", True)))
        self._uris = arguments.get("pathFormat") == "uri"
        return CAPABILITIES

    def _heard(self, line: Any) -> int:
        """Return the number of a line, from 1, that the editor names."""
        return int(line) + 1 - self._first["line"]

    def _told(self, line: int) -> Body:
        """Return the place of a line as the editor counts."""
        return {"line": line - 1 + self._first["line"], "column": self._first["column"]}

    def _path(self, path: Path) -> str:
        return path.resolve().as_uri() if self._uris else str(path)

    def _program(self) -> Body:
        path = Path(self._session().path).resolve()
        if path.is_file() and not path.name.endswith(PACKED):
            return {"name": path.name, "path": self._path(path)}
        return {"name": path.name, "sourceReference": 1}

    def on_launch(self, arguments: Body) -> Body:
        """Load a program: `program`, `spec`, `config`, `load`, `stopOnEntry`."""
        self._begin(self._opener(arguments), arguments)
        return {}

    def _begin(self, session: Session, arguments: Body) -> None:
        self.close()
        self.session, self.variables = session, Variables(session)
        self._own.clear()
        self._exceptions.clear()
        self._at_entry = bool(arguments.get("stopOnEntry", True))

    def close(self) -> None:
        """Let go of the program."""
        if self.session is not None:
            self.session.close()

    def on_attach(self, arguments: Body) -> Body:
        """Attach to the process that listens at `socket`; without one, do the same as `launch`."""
        if "socket" not in arguments:
            return self.on_launch(arguments)
        from emu2.debug.remote import RemoteSession

        self._begin(RemoteSession(str(arguments["socket"])), arguments)
        return {}

    def on_configurationDone(self, arguments: Body) -> tuple[Body, Work]:  # noqa: N802
        """Begin: stop at the first statement, or run."""
        run = self._session().run
        return {}, (lambda: run.go(0)) if self._at_entry else run.run

    def on_disconnect(self, arguments: Body) -> Body:
        """End the session."""
        return {}

    def on_terminate(self, arguments: Body) -> Body:
        """End the program."""
        return {}

    def on_threads(self, arguments: Body) -> Body:
        """Return the one thread: all units run the same statements."""
        return {"threads": [{"id": 1, "name": "program"}]}

    # Breakpoints.

    def _adders(self, texts: Iterable[str]) -> list[Callable[[], Body]]:
        return [partial(self._session().run.add, text) for text in texts]

    def _replace(self, kind: str, adders: Iterable[Callable[[], Body]]) -> list[Body]:
        """Replace the breakpoints of a kind, and return what the protocol says of each."""
        run = self._session().run
        for number in self._own.pop(kind, []):
            run.remove(number)
        numbers = self._own.setdefault(kind, [])
        said: list[Body] = []
        for add in adders:
            try:
                added = add()
            except emu2.EmulatorError as error:
                said.append({"verified": False, "message": str(error)})
                continue
            numbers.append(added["id"])
            said.append({"id": added["id"], "verified": True})
        return said

    def on_setBreakpoints(self, arguments: Body) -> Body:  # noqa: N802
        """Replace the breakpoints at lines."""
        session = self._session()
        source = str(arguments["source"].get("path", ""))
        if self._uris:
            source = unquote(urlsplit(source).path)
        wanted = arguments.get("breakpoints") or []
        adders = []
        for one in wanted:
            condition = one.get("condition") or ""
            text = f" if {condition}" if condition else ""
            adders.append(partial(session.add_at, source, text, self._heard(one["line"])))
        said = self._replace("line", adders)
        for one, answer in zip(wanted, said, strict=True):
            answer["line"] = one["line"]
        return {"breakpoints": said}

    def on_setFunctionBreakpoints(self, arguments: Body) -> Body:  # noqa: N802
        """Replace the breakpoints that are written as text: `when CONDITION`, `write PLACE`, ..."""
        texts = [str(one["name"]) for one in arguments["breakpoints"]]
        return {"breakpoints": self._replace("function", self._adders(texts))}

    def on_dataBreakpointInfo(self, arguments: Body) -> Body:  # noqa: N802
        """Return the place whose writes a breakpoint can watch."""
        session, name = self._session(), str(arguments["name"])
        if self.variables is not None and "variablesReference" in arguments:
            name = self.variables.place(int(arguments["variablesReference"]), name)
        try:
            session.run.evaluate(name, most=1)
        except emu2.EmulatorError as error:
            return {"dataId": None, "description": str(error)}
        return {"dataId": name, "description": f"write {name}", "accessTypes": ["write"]}

    def on_setDataBreakpoints(self, arguments: Body) -> Body:  # noqa: N802
        """Replace the breakpoints on writes."""
        texts = [f"write {one['dataId']}" for one in arguments["breakpoints"]]
        return {"breakpoints": self._replace("data", self._adders(texts))}

    def on_setExceptionBreakpoints(self, arguments: Body) -> Body:  # noqa: N802
        """Replace the breakpoints on values."""
        filters = [str(one) for one in arguments["filters"]]
        said = self._replace("exception", self._adders(filters))
        self._exceptions = dict(zip(self._own["exception"], filters, strict=False))
        return {"breakpoints": said}

    # Where it stands.

    def on_stackTrace(self, arguments: Body) -> Body:  # noqa: N802
        """Return the statement that comes next, and the line of the model that it comes from."""
        session = self._session()
        if not session.stopped:
            return {"stackFrames": [], "totalFrames": 0}
        line = session.run.line
        name = session.note(line) or Path(session.path).name
        frame = {"id": 1, "name": name, **self._told(line), "source": self._program()}
        pointer = hex(session.run.position)
        frame |= {"instructionPointerReference": pointer}
        frames: list[Body] = [frame]
        origin = session.origin(line)
        if origin is not None:
            path, number = origin
            model = {"name": Path(path).name, "path": self._path(Path(path))}
            own = {"id": 2, "name": "the model", **self._told(number), "source": model}
            frames.append({**own, "presentationHint": "subtle"})
        return {"stackFrames": frames, "totalFrames": len(frames)}

    def on_scopes(self, arguments: Body) -> Body:
        """Return the registers of a unit, the watches, and the memories."""
        return {"scopes": self._variables().scopes()}

    def on_variables(self, arguments: Body) -> Body:
        """Return what lies below a scope or a memory."""
        start, count = arguments.get("start"), arguments.get("count")
        return {"variables": self._variables().below(arguments["variablesReference"], start, count)}

    def _variables(self) -> Variables:
        self._session()
        if self.variables is None:
            raise KeyError("variables")
        return self.variables

    def on_setVariable(self, arguments: Body) -> Body:  # noqa: N802
        """Write a long word, or choose the unit of the scopes."""
        number, name = int(arguments["variablesReference"]), str(arguments["name"])
        return {"value": self._variables().set(number, name, str(arguments["value"]))}

    def on_evaluate(self, arguments: Body) -> Body | tuple[Body, Work]:
        """Return the value of a place or of a condition; in the console, do a command too."""
        session, text = self._session(), str(arguments["expression"]).strip()
        if arguments.get("context") == "repl" and is_command(text):
            console = Console(session, str(session.spec.name))
            if is_move(text):
                return _said(""), lambda: console.move(text)
            return _said(console.do(text))
        if any(sign in text for sign in ("==", "!=", "<", ">")):
            return _said(str(session.run.holds(text)).lower())
        found = session.evaluate(text)
        return {
            "result": found.text,
            "variablesReference": self._variables().keep(text, found)
            if len(found.words) > 1
            else 0,
            "memoryReference": self._variables().reference(text),
        }

    # Moves.

    def _step(self, unit: str, *, back: bool) -> tuple[Body, Work]:
        run = self._session().run
        return {}, lambda: run.step(unit, back=back)

    def on_next(self, arguments: Body) -> tuple[Body, Work]:
        """Run one statement."""
        return self._step(_GRANULARITY.get(arguments.get("granularity", ""), "line"), back=False)

    def on_stepIn(self, arguments: Body) -> tuple[Body, Work]:  # noqa: N802
        """Run to the end of the next step of the machine."""
        return self._step("step", back=False)

    def on_stepOut(self, arguments: Body) -> tuple[Body, Work]:  # noqa: N802
        """Run to the next MV or debug statement."""
        return self._step("region", back=False)

    def on_stepBack(self, arguments: Body) -> tuple[Body, Work]:  # noqa: N802
        """Go back one statement."""
        return self._step("line", back=True)

    def on_continue(self, arguments: Body) -> tuple[Body, Work]:
        """Run to the next breakpoint."""
        return {"allThreadsContinued": True}, self._session().run.run

    def on_reverseContinue(self, arguments: Body) -> tuple[Body, Work]:  # noqa: N802
        """Go back to the last breakpoint."""
        run = self._session().run
        return {}, lambda: run.run(back=True)

    def on_gotoTargets(self, arguments: Body) -> Body:  # noqa: N802
        """Return the position of a line."""
        line = self._heard(arguments["line"])
        position = self._session().run.at_line(line)
        return {"targets": [{"id": position, "label": f"line {line}", "line": arguments["line"]}]}

    def on_goto(self, arguments: Body) -> tuple[Body, Work]:
        """Go to a position, forwards or backwards."""
        run, position = self._session().run, int(arguments["targetId"])
        return {}, lambda: run.go(position)

    # Source and memory.

    def on_source(self, arguments: Body) -> Body:
        """Return the text of the program."""
        return {"content": "\n".join(self._session().lines), "mimeType": "text/x-vsm"}

    def on_loadedSources(self, arguments: Body) -> Body:  # noqa: N802
        """Return the one source."""
        return {"sources": [self._program()]}

    def on_readMemory(self, arguments: Body) -> Body:  # noqa: N802
        """Return bytes of a memory of one unit, long words with the most significant byte first."""
        offset, count = int(arguments.get("offset", 0)), int(arguments["count"])
        address, data, rest = self._variables().memory(
            str(arguments["memoryReference"]), offset, count
        )
        return {
            "address": hex(address),
            "data": b64encode(data).decode(),
            "unreadableBytes": rest,
        }

    def on_disassemble(self, arguments: Body) -> Body:
        """Return statements as they stand in the source. An address is a position."""
        session = self._session()
        first = int(str(arguments["memoryReference"]), 0) + int(
            arguments.get("instructionOffset", 0)
        )
        count = int(arguments["instructionCount"])
        found = self._variables().statements(session, first, min(count, 1 << 12))
        for one in found:
            if "line" in one:
                one |= {"line": self._told(one["line"])["line"], "location": self._program()}
        return {"instructions": found}
