"""`emu2 dap` as an editor uses it."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dap_client
import pytest

from emu2.debug.dap import MalformedError, read_message, serve

PROGRAM = """\
d set $lm0n0c0b0m0p0 2 3FC000003FC000004000000040000000
d set $ln0n0c0b0m0p0 2 3F8000003F8000003F8000003F800000
fvmul $lm0v $lm0v $lr0v
fvadd $lr0v $ln0v $ls0v
nop/3
fvmul $ls0v $ls0v $lr8v
mvp/n64i01 $p0@0 $d0@0
d getf $ls0n0c0b0m0p0 1
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.vsm"
    path.write_text(PROGRAM)
    return path


@pytest.fixture(params=["pipe", "port"])
def client(request: pytest.FixtureRequest) -> Iterator[dap_client.Client]:
    process, client = dap_client.start() if request.param == "pipe" else dap_client.connect()
    try:
        yield client
        client.ask("disconnect")
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()


def test_a_session_as_an_editor_drives_it(client: dap_client.Client, program: Path) -> None:
    client.launch(program)
    source = {"path": str(program)}
    lines = [
        {"line": 4},
        {"line": 6, "condition": "grf1[1].f of n0c0b0m0p0 == 5"},
        {"line": 5, "condition": "grf1[0] =="},
    ]
    said = client.ask("setBreakpoints", source=source, breakpoints=lines)["breakpoints"]
    assert [one["verified"] for one in said] == [True, True, False]
    assert "D0001" in said[2]["message"]
    data = client.ask("dataBreakpointInfo", name="grf1[0:2] of n0c0b0m0p0")
    client.ask("setDataBreakpoints", breakpoints=[{"dataId": data["dataId"]}])
    client.ask("setFunctionBreakpoints", breakpoints=[{"name": "when mauf[0].f of p0 == 2.25"}])
    client.ask("setExceptionBreakpoints", filters=["overflow", "infinity"])
    client.ask("configurationDone")
    assert client.event("stopped")["reason"] == "entry"
    assert client.ask("threads")["threads"] == [{"id": 1, "name": "program"}]

    assert client.line() == 1
    table: list[tuple[str, dict[str, Any], str, int]] = [
        ("next", {}, "step", 2),
        ("stepIn", {}, "step", 4),
        ("stepBack", {}, "step", 3),
        ("continue", {}, "function breakpoint", 4),  # the product is on the path
        ("continue", {}, "data breakpoint", 5),
        ("continue", {}, "breakpoint", 6),
        ("continue", {}, "pause", 8),
        ("reverseContinue", {}, "breakpoint", 6),
        ("reverseContinue", {}, "data breakpoint", 5),
        ("reverseContinue", {}, "function breakpoint", 4),
        ("stepOut", {}, "step", 7),
        ("goto", {"targetId": 0}, "entry", 1),
    ]
    for command, arguments, reason, line in table:
        stop = client.moves(command, **arguments)
        assert (stop["reason"], client.line()) == (reason, line), (command, stop)
    client.ask("setFunctionBreakpoints", breakpoints=[])
    client.ask("setDataBreakpoints", breakpoints=[])
    client.ask("setBreakpoints", source=source, breakpoints=[])
    client.ask("setExceptionBreakpoints", filters=["hazard"])
    stop = client.moves("continue")
    assert (stop["reason"], client.line()) == ("exception", 4)
    assert "A0702" in stop["text"]


def test_values_and_memory(client: dap_client.Client, program: Path) -> None:
    client.launch(program, stopOnEntry=False)
    client.ask("configurationDone")
    assert client.event("output")["output"].startswith("DEBUG-GREG1(n0c0b0m0p0,0):(3.25, 3.25)")
    assert client.event("stopped")["text"] == "end of the program"
    scopes = {
        one["name"]: one["variablesReference"] for one in client.ask("scopes", frameId=1)["scopes"]
    }
    assert list(scopes) == ["Run", "Registers of n0c0b0m0p0", "Memories of n0c0b0m0p0", "Watches"]

    def below(number: int, **more: Any) -> dict[str, str]:
        found = client.ask("variables", variablesReference=number, **more)["variables"]
        return {one["name"]: one["value"] for one in found}

    run = below(scopes["Run"])
    assert (run["position"], run["steps"]) == ("8 of 8", "6")
    assert below(scopes["Registers of n0c0b0m0p0"])["grf1"].startswith("4050000040500000 40a0")
    memories = client.ask("variables", variablesReference=scopes["Memories of n0c0b0m0p0"])
    (lm0,) = [one for one in memories["variables"] if one["name"] == "lm0"]
    words = below(lm0["variablesReference"], start=1, count=2)
    assert words == {"[1]": "0x4000000040000000", "[2]": "0x0000000000000000"}
    data = client.ask("readMemory", memoryReference=lm0["memoryReference"], offset=4, count=8)
    assert base64.b64decode(data["data"]).hex() == "3fc0000040000000"
    end = client.ask("readMemory", memoryReference="lm0@n0c0b0m0p0", offset=4094, count=8)
    assert (len(base64.b64decode(end["data"])), end["unreadableBytes"]) == (2, 6)

    found = client.ask("evaluate", expression="grf1[0:2].f of n0c0b0m0p0", context="watch")
    assert found["result"] == "3.25 3.25, 5 5"
    assert list(below(found["variablesReference"]).values()) == ["3.25 3.25", "5 5"]
    assert client.ask("evaluate", expression="grf1[1].f == 5")["result"] == "true"
    client.ask("setVariable", variablesReference=lm0["variablesReference"], name="[1]", value="0x7")
    assert client.ask("evaluate", expression="lm0[1].l of n0c0b0m0p0")["result"] == "7"
    client.ask("setVariable", variablesReference=scopes["Run"], name="unit", value="b1m2p3")
    assert client.ask("scopes", frameId=1)["scopes"][1]["name"] == "Registers of n0c0b1m2p3"

    code = client.ask(
        "disassemble", memoryReference="0x2", instructionOffset=-3, instructionCount=4
    )
    assert [one["instruction"] for one in code["instructions"]] == ["", *PROGRAM.splitlines()[:3]]
    assert client.ask("source", sourceReference=0)["content"] == PROGRAM.rstrip("\n")


def test_the_console_does_the_commands_of_the_terminal(
    client: dap_client.Client, program: Path
) -> None:
    client.launch(program)
    client.ask("configurationDone")
    client.event("stopped")

    def console(text: str) -> str:
        return str(client.ask("evaluate", expression=text, context="repl")["result"])

    assert console("break when grf1[1].f == 5").startswith("breakpoint 1: ")
    for text, reason, line in (
        ("run", "breakpoint", 5),
        ("to cycle 4", "step", 4),
        ("reverse", "entry", 1),
        ("line 2", "step", 3),
        ("to line 8", "step", 8),
        ("back region", "step", 7),
    ):
        assert console(text) == ""
        assert (client.event("stopped")["reason"], client.line()) == (reason, line), text
    assert "6 words differ between positions 2 and 4" in console("diff 2 4")
    assert console(f"parts {program}") == "the runs never part"
    assert console("grf1[1].f of n0c0b0m0p0") == "5 5"
    assert console("grf1[1].f == 5") == "true"
    assert "D0004" in client.refused("evaluate", expression="diff x", context="repl")
    # A place in a watch is no command.
    assert "D0001" in client.refused("evaluate", expression="run", context="watch")
    client.ask("evaluate", expression="to cycle x", context="repl")
    assert "D0004" in client.event("stopped")["text"]


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("evaluate", {"expression": "lm9[0]"}, "D0001"),
    ("evaluate", {}, "D0005"),
    ("variables", {"variablesReference": 7777}, "D0005"),
    ("variables", {"variablesReference": "x"}, "D0005"),
    ("setVariable", {"variablesReference": 101, "name": "[1]", "value": "x"}, "D0004"),
    ("setVariable", {"variablesReference": 1, "name": "unit", "value": "n7"}, "D0001"),
    ("setVariable", {"variablesReference": 1, "name": "steps", "value": "7"}, "D0004"),
    ("readMemory", {"memoryReference": "lm7", "count": 1}, "D0005"),
    ("readMemory", {"memoryReference": "lm0@q0", "count": 1}, "D0001"),
    ("disassemble", {"memoryReference": "here", "instructionCount": 1}, "D0005"),
    ("gotoTargets", {"line": 100}, "D0002"),
    ("setBreakpoints", {"breakpoints": 7}, "D0005"),
    ("setFunctionBreakpoints", {}, "D0005"),
    ("flyAway", {}, "D0005"),
    ("launch", {}, "D0005"),
    ("launch", {"program": "/no/such.vsm"}, "F0001"),
    ("launch", {"program": "/no/such.vsm", "spec": "no"}, "S0011"),
]


def test_wrong_requests_get_one_diagnostic_and_the_session_goes_on(program: Path) -> None:
    process, client = dap_client.start()
    try:
        early = client.refused("next", threadId=1)
        assert "D0005" in early
        client.launch(program)
        client.ask("configurationDone")
        client.event("stopped")
        for command, arguments, code in REFUSED:
            assert f"error[{code}]" in client.refused(command, **arguments), command
        assert client.moves("next")["reason"] == "step"
        other = client.ask("setBreakpoints", source={"path": "/other"}, breakpoints=[{"line": 1}])
        assert other["breakpoints"][0]["verified"] is False
        client.ask("terminate")
        client.event("terminated")
        client.ask("disconnect")
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()


def test_a_long_run_is_paused(tmp_path: Path) -> None:
    path = tmp_path / "long.vsm"
    path.write_text("linc $lm0 $lm0\n" * 400_000)
    process, client = dap_client.start()
    try:
        client.launch(path)
        client.ask("setFunctionBreakpoints", breakpoints=[{"name": "when lm0[0] == 0xFFFFFFFF"}])
        client.ask("configurationDone")
        client.event("stopped")
        client.ask("continue", threadId=1)
        assert "while the program runs" in client.refused("stackTrace", threadId=1)
        client.ask("pause", threadId=1)
        assert client.event("stopped")["reason"] == "pause"
        assert client.line() < 400_000
        client.ask("continue", threadId=1)
        client.ask("disconnect")
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()


BROKEN = [
    b"hello",
    b"Content-Length: x\r\n\r\n{}",
    b"Content-Length: 99999999999\r\n\r\n{}",
    b"Content-Length: 5\r\n\r\n{}",
    b"Content-Length: 2\r\n\r\n[]",
    b"Content-Length: 2\r\n\r\n{]",
    b"X" * 10000,
]


@pytest.mark.parametrize("data", BROKEN)
def test_bytes_that_are_no_message_end_the_session_with_a_diagnostic(data: bytes) -> None:
    with pytest.raises(MalformedError):
        read_message(io.BytesIO(data))
    out = io.BytesIO()
    serve(io.BytesIO(data), out)
    assert b"error[D0005]" in out.getvalue()


def test_messages_that_are_no_requests_are_passed_over() -> None:
    out = io.BytesIO()
    serve(io.BytesIO(b'Content-Length: 17\r\n\r\n{"type": "event"}' * 2), out)
    assert out.getvalue().count(b"error[D0005]") == 2


def test_a_breakpoint_at_the_first_statement_stops_there(
    client: dap_client.Client, tmp_path: Path
) -> None:
    program = tmp_path / "a.vsm"
    program.write_text("# a comment\nlinc $lm0 $ln0\nnop\n")
    client.launch(program, stopOnEntry=False)
    client.ask("setBreakpoints", source={"path": str(program)}, breakpoints=[{"line": 1}])
    client.ask("configurationDone")
    assert client.event("stopped")["reason"] == "breakpoint"
    assert client.line() == 2
    client.ask("continue")
    assert client.event("stopped")["text"] == "end of the program"


def test_requests_behind_the_entry_need_not_wait_for_its_event(program: Path) -> None:
    wanted: list[tuple[str, dict[str, Any]]] = [
        ("initialize", {"linesStartAt1": False}),
        ("launch", {"program": str(program), "spec": "mini"}),
        ("configurationDone", {}),
        ("stackTrace", {"threadId": 1}),
    ]
    sent = b""
    for number, (command, arguments) in enumerate(wanted):
        message = {"seq": number, "type": "request", "command": command, "arguments": arguments}
        body = json.dumps(message).encode()
        sent += b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    out = io.BytesIO()
    serve(io.BytesIO(sent), out)
    out.seek(0)
    found = []
    while (one := read_message(out)) is not None:
        found.append(one)
    assert found[-2]["event"] == "stopped"
    assert found[-1]["body"]["stackFrames"][0]["line"] == 0


def test_lines_columns_and_paths_as_the_editor_counts_them(
    client: dap_client.Client, tmp_path: Path
) -> None:
    program = tmp_path / "a b.vsm"
    program.write_text("nop # \x0c\nnop\nlinc $lm0 $ln0\nnop\n")
    counted = {"linesStartAt1": False, "columnsStartAt1": False, "pathFormat": "uri"}
    client.ask("initialize", adapterID="emu2", **counted)
    client.ask("launch", program=str(program), spec="mini")
    said = client.ask(
        "setBreakpoints", source={"path": program.as_uri()}, breakpoints=[{"line": 2}]
    )
    assert [(one["line"], one["verified"]) for one in said["breakpoints"]] == [(2, True)]
    client.ask("configurationDone")
    assert client.event("stopped")["reason"] == "entry"
    (frame,) = client.ask("stackTrace", threadId=1)["stackFrames"]
    assert (frame["line"], frame["column"]) == (0, 0)
    assert frame["source"]["path"] == program.as_uri()
    client.ask("continue")
    client.event("stopped")
    assert client.line() == 2
    found = client.ask("gotoTargets", source={"path": program.as_uri()}, line=3)["targets"]
    assert [(one["id"], one["line"]) for one in found] == [(3, 3)]
    listed = client.ask("disassemble", memoryReference="0x0", instructionCount=4)["instructions"]
    assert [one["line"] for one in listed] == [0, 1, 2, 3]
    assert listed[2]["instruction"] == "linc $lm0 $ln0"
    assert client.ask("source", sourceReference=0)["content"].count("\x0c") == 1
