"""`emu2 lsp` as an editor uses it."""

from __future__ import annotations

import random
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from link_case import PLACEMENT, STRUCTURE
from lsp_client import ROOT, Client

import emu2
from emu2.link.linker import HANDLERS
from emu2.link.manual import DIRECTIVES
from emu2.lsp.document import Document
from emu2.lsp.entries import Entries
from emu2.lsp.language import Language, words

pytest.importorskip("pygls", reason="pygls is missing: pip install '.[tools]'")


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the copies of built-in specs out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


URI = "file:///kernel.vsm"
TEXT = """\
# größer 😀
fvmul $lm0v $lm0v $lr0v
fvmull $lm0v $lm0v $lr0v  # 😀
fvadd $lr0v $aluf $ls0v; wait i01
"""


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    client = Client("--spec", "mini", "--stdio")
    client.ask("initialize", processId=None, rootUri=None, capabilities={})
    client.tell("initialized")
    document = {"uri": URI, "languageId": "vsm", "version": 1, "text": TEXT}
    client.tell("textDocument/didOpen", textDocument=document)
    yield client
    assert client.end() == 0


def at(line: int, column: int) -> dict[str, object]:
    place = {"line": line, "character": column}
    return {"textDocument": {"uri": URI}, "position": place}


def test_faults_as_one_types(client: Client) -> None:
    (found,) = (one for one in client.diagnostics(URI) if one["severity"] == 1)
    assert found["range"]["start"] == {"line": 2, "character": 0}
    assert found["range"]["end"] == {"line": 2, "character": 6}
    assert found["code"] == "A0102"
    assert found["source"] == "emu2"
    span = {"start": {"line": 2, "character": 5}, "end": {"line": 2, "character": 6}}

    def change(version: int, span: object, text: str) -> list[dict[str, object]]:
        client.tell(
            "textDocument/didChange",
            textDocument={"uri": URI, "version": version},
            contentChanges=[{"range": span, "text": text}],
        )
        return client.diagnostics(URI)

    left = change(2, span, "")
    # fvadd reads too soon what the line above writes.
    assert [one["code"] for one in left] == ["A0702", "A0704"]
    soon = {"start": {"line": 3, "character": 0}, "end": {"line": 3, "character": 0}}
    assert [one["code"] for one in change(3, soon, "nop/6\n")] == ["A0704"]
    back = {"start": span["start"], "end": span["start"]}
    assert [one["code"] for one in change(4, back, "l")] == ["A0102"]
    assert client.ask("textDocument/definition", **at(2, 3)) is None
    undo = {"start": {"line": 3, "character": 0}, "end": {"line": 4, "character": 0}}
    change(5, undo, "")


@pytest.mark.parametrize(
    ("line", "column", "begin", "span"),
    [
        (1, 2, "vmul (mau)", (0, 5)),
        (1, 8, "$lm (lm0)", (6, 11)),
        (3, 13, "$aluf", (12, 17)),
        (3, 27, "wait (control)", (25, 29)),
    ],
)
def test_a_page_of_the_manual(
    client: Client, line: int, column: int, begin: str, span: tuple[int, int]
) -> None:
    found = client.ask("textDocument/hover", **at(line, column))
    assert found["contents"]["value"].removeprefix("```text\n").startswith(begin)
    assert tuple(found["range"][end]["character"] for end in ("start", "end")) == span
    assert client.ask("textDocument/hover", **at(0, 3)) is None
    assert client.ask("textDocument/hover", **at(99, 3)) is None


def test_completion_of_mnemonics_and_operands(client: Client) -> None:
    names = client.ask("textDocument/completion", **at(1, 3))["items"]
    assert {one["label"] for one in names} == set(emu2.Spec.load("mini").mnemonics)
    assert names[0]["textEdit"]["range"]["start"]["character"] == 0
    operands = client.ask("textDocument/completion", **at(1, 8))["items"]
    labels = {one["label"] for one in operands}
    assert {"$lm", "$n", "$llr", "$aluf", "$mauf", "$lb", "$d"} <= labels
    assert operands[0]["textEdit"]["range"]["start"]["character"] == 6
    assert client.ask("textDocument/completion", **at(0, 3))["items"] == []


@pytest.mark.parametrize(
    ("line", "column", "section", "name"),
    [
        (1, 2, "mau", "vmul"),
        (1, 8, "operand", "lm0"),
        (3, 13, "forward", "aluf"),
        (3, 27, "control", "wait"),
    ],
)
def test_definition_is_the_entry_of_the_spec(
    client: Client, line: int, column: int, section: str, name: str
) -> None:
    found = client.ask("textDocument/definition", **at(line, column))
    path = Path(unquote(urlsplit(found["uri"]).path))
    lines = path.read_text(encoding="utf-8").splitlines()
    number = found["range"]["start"]["line"]
    assert re.match(rf'name\s*=\s*"{name}"', lines[number])
    above = next(text for text in reversed(lines[:number]) if text.startswith("[["))
    assert above == f"[[{section}]]"
    assert path.read_bytes() in [p.read_bytes() for p in ROOT.glob("isa_specs/*/*.toml")]


def test_directives(tmp_path: Path) -> None:
    """Pages and proposals of the linker's directives, and the faults of a source at its lines."""
    language = Language("mncore2")
    for name, (form, _) in DIRECTIVES.items():
        page, word = language.page(f"  {name} a b", 5) or ("", None)
        assert page.startswith(form)
        assert word is not None
        assert (word.start, word.end) == (2, 2 + len(name))
    assert set(DIRECTIVES) == set(HANDLERS)
    assert language.page("@unknown a", 3) is None
    assert {one.text for one in language.proposals("@al", 3)} == set(DIRECTIVES)
    source = "nop\n@distribute a from_param 8 size 5 $lm0\n@other\n"
    path = tmp_path / "k._vsm"

    def found(text: str) -> list[tuple[int, str, str]]:
        faults = language.diagnostics(text, str(path))
        return [(one["line"], one["code"], one["severity"]) for one in faults]

    assert found(source) == [(3, "", "error")]
    (tmp_path / "k.param").write_text(PLACEMENT.replace("{more}", ""))
    (tmp_path / "k.stparam").write_text(STRUCTURE.replace("{more}", ""))
    assert found(source) == [(2, "E242", "error")]
    good = "@distribute a from_param 8 size 1 $lm0\n"
    assert found(good) == []
    assert found(f"{good}\n  fly $lm0\nnop # $lb0\n") == [(3, "A0102", "error")]
    assert found("mvp/n64i2a $p0@0 $lc0@0.0\n") == [(1, "W002", "warning"), (1, "W003", "warning")]


def test_the_page_names_every_directive() -> None:
    page = (ROOT / "docs" / "link.md").read_text()
    for form, about in DIRECTIVES.values():
        assert f"| `{form}` | {about} |" in page


@pytest.mark.parametrize("machine", ["mncore2", "mini"])
def test_every_mnemonic_has_a_page_and_an_entry(machine: str) -> None:
    language = Language(machine)
    for name in language.spec.mnemonics:
        assert language.page(name, 0) is not None, name
        place = language.definition(name, 0)
        assert place is not None, name
        assert "name" in place.path.read_text(encoding="utf-8").splitlines()[place.line]
    abouts = {one.text: one.about for one in language.proposals("", 0)}
    assert all(abouts.values())


def test_every_operand_of_the_test_programs_is_known() -> None:
    language, seen = Language("mncore2"), set()
    for path in sorted((ROOT / "tests" / "data" / "vectors").glob("*.vsm")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            for word in words(line):
                if word.kind == "operand":
                    assert language.definition(line, word.start) is not None, f"{path.name}: {line}"
                    seen.add(language.page(line, word.start))
    assert len(seen) > 20


def test_a_spec_of_ones_own_is_opened_where_it_lies(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "topology.toml").write_text(
        'extends = "mini"\n[machine]\nname = "own"\n[[alu]]\nname = "inc"\ndoc = "Adds one."\n'
    )
    place = Entries(str(folder)).instruction("linc")
    assert place is not None
    assert (place.path, place.line) == (folder / "topology.toml", 4)


def test_other_specs_and_options_are_refused() -> None:
    client = Client("--spec", "no such machine")
    assert client.process.wait(timeout=20) == 1
    client = Client("--stdio", "--port", "0")
    assert client.process.wait(timeout=20) == 2


def test_the_place_of_a_document_counts_lines_as_the_protocol_does() -> None:
    document = Document("a\x0cb\r\nc\rd😀e\n", 1, lambda text: len(text.encode("utf-16-le")) // 2)
    table = [
        ((0, 2), (0, 2), "a\x0cb"),
        ((0, 9), (0, 3), "a\x0cb"),
        ((1, 1), (1, 1), "c"),
        ((2, 3), (2, 2), "d😀e"),
        ((2, 99), (2, 3), "d😀e"),
        ((3, 0), (3, 0), ""),
        ((9, 9), (3, 0), ""),
    ]
    for given, place, line in table:
        assert document.place(*given) == place
        assert document.line(place[0]) == line
    assert document.shown(2, 2) == (2, 3)
    # The second line of the assembler has two of the protocol.
    assert [document.of_statement(2, column) for column in (1, 3, 5)] == [(1, 0), (2, 0), (2, 3)]
    assert document.of_statement(9, 1) == (3, 0)


@pytest.mark.parametrize("seed", range(3))
def test_edits_give_the_text_of_the_editor(seed: int) -> None:
    """Compare drawn edits with a list of lines, in which an editor thinks."""
    rng = random.Random(seed)
    document, text = Document("", 1, len), ""
    for _ in range(200):
        rows = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)
        ends = sorted(
            (row, rng.randint(0, len(rows[row].rstrip("\r\n"))))
            for row in (rng.randrange(len(rows)), rng.randrange(len(rows)))
        )
        new = "".join(rng.choice("ab \x0c\u2028\n") for _ in range(rng.randrange(6)))
        new += rng.choice(["", "\r\n", "\r"])
        first, last = (sum(map(len, rows[:row])) + column for row, column in ends)
        text = text[:first] + new + text[last:]
        document.change(new, *ends)
        assert document.text == text, seed


def test_texts_whose_lines_python_would_split_elsewhere() -> None:
    client = Client("--spec", "mini")
    client.ask("initialize", processId=None, rootUri=None, capabilities={})
    client.tell("initialized")
    text = "# page \x0c two \u2028 \x85\nfoo $lm0\n"
    document = {"uri": URI, "languageId": "vsm", "version": 1, "text": text}
    client.tell("textDocument/didOpen", textDocument=document)
    (found,) = client.diagnostics(URI)
    assert found["range"]["start"] == {"line": 1, "character": 0}
    span = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 8}}
    change = {"range": span, "text": "linc $lm0 $ln0"}
    document = {"uri": URI, "version": 2}
    client.tell("textDocument/didChange", textDocument=document, contentChanges=[change])
    assert client.diagnostics(URI) == []
    assert "linc" in str(client.ask("textDocument/hover", **at(1, 2)))
    # The last line is empty; places past the end are at the end.
    for line, column in ((2, 0), (2, 5), (7, 0), (0, 999)):
        items = client.ask("textDocument/completion", **at(line, column))["items"]
        assert bool(items) == (line != 0)
        assert client.ask("textDocument/hover", **at(line, column)) is None
    client.tell("textDocument/didClose", textDocument=document)
    assert client.diagnostics(URI) == []
    assert client.ask("textDocument/hover", **at(0, 0)) is None
    assert client.end() == 0


def test_a_free_port_is_printed() -> None:
    command = [sys.executable, "-m", "emu2", "lsp", "--spec", "mini", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        host, _, port = process.stdout.readline().split()[-1].partition(":")
        with socket.create_connection((host, int(port)), 20) as editor:
            body = b'{"jsonrpc": "2.0", "method": "exit"}'
            editor.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            process.wait(20)
