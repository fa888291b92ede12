"""The folder for VS Code: the grammar colours what the assembler reads, and the manifest fits."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path

import pytest

import emu2
from emu2.debug.dap_requests import Requests
from emu2.link.linker import HANDLERS
from emu2.lsp.command import lsp

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "editors" / "vscode"
GRAMMAR = json.loads((FOLDER / "syntaxes" / "vsm.tmLanguage.json").read_text(encoding="utf-8"))
RULES = [(rule["name"], re.compile(rule["match"])) for rule in GRAMMAR["patterns"]]


def tokens(line: str) -> list[tuple[str, str]]:
    """Split a line as an editor does: the leftmost match counts, of two the first rule."""
    found, at = [], 0
    while at <= len(line):
        hits = [
            (hit.start(), k, hit)
            for k, (_, rule) in enumerate(RULES)
            if (hit := rule.search(line, at))
        ]
        hits = [hit for hit in hits if hit[2].end() > hit[2].start()]
        if not hits:
            break
        _, k, hit = min(hits, key=lambda one: one[:2])
        found.append((RULES[k][0].removesuffix(".vsm"), hit[0].strip()))
        at = hit.end()
    return found


def test_the_grammar_is_fresh() -> None:
    made = runpy.run_path(str(FOLDER / "make_grammar.py"))["text"](emu2.Spec.load("mncore2"))
    assert (FOLDER / "syntaxes" / "vsm.tmLanguage.json").read_text(encoding="utf-8") == made


@pytest.mark.parametrize("machine", ["mncore2", "mini"])
def test_every_mnemonic_is_a_keyword(machine: str) -> None:
    for name in emu2.Spec.load(machine).mnemonics:
        for line in (name, f"  {name} $lm0v", f"nop; {name}", f"{name}/n64"):
            kinds = [kind for kind, text in tokens(line) if text == name]
            assert {kind.split(".")[0] for kind in kinds} == {"keyword"}, line


def test_wrong_mnemonics_are_marked() -> None:
    for line in ("fvmull $lm0v $lm0v $lr0v", "nop; fly", "NOP", "lpassaa $lr0v $lm0v"):
        assert "invalid.illegal.mnemonic" in [kind for kind, _ in tokens(line)], line


def test_every_directive_is_a_keyword() -> None:
    for name in HANDLERS:
        kinds = [kind for kind, text in tokens(f"\t{name} a 8 $lm0") if text == name]
        assert kinds == ["keyword.control.directive"]


LINES: list[tuple[str, str]] = [
    ("fvfma $lm0v -$ln8v $aluf # a", "mnemonic register register register number-sign"),
    ("nop ! a # b", "mnemonic number-sign"),
    ("lpassa $lm0v $lr0v/$imr1", "mnemonic register register parameter"),
    ("d getf $lr0n0c0b0m0p0 2", "debug register numeric"),
    ("mvp/n64i01 $p0@0 $d0@.0", "mnemonic parameter register register"),
    ('imm f"1.5" $lm0; wait i1e', "mnemonic double register separator mnemonic tag"),
    ("l1bmd+1 $lb0 $lm8v", "mnemonic numeric register register"),
    ("lpassa $lm[0,2,4,6] $omr1/ll1000", "mnemonic register register parameter"),
]


@pytest.mark.parametrize(("line", "kinds"), LINES)
def test_parts_of_lines_have_their_colours(line: str, kinds: str) -> None:
    assert " ".join(kind.rsplit(".", 1)[-1] for kind, _ in tokens(line)) == kinds


def test_no_program_of_the_tests_has_a_marked_word() -> None:
    paths = sorted((ROOT / "tests" / "data" / "vectors").glob("*.vsm"))
    assert len(paths) > 100
    for path in paths:
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            kinds = [kind for kind, _ in tokens(line)]
            assert "invalid.illegal.mnemonic" not in kinds, f"{path.name}: {line}"


def test_the_manifest_names_files_and_options_that_exist() -> None:
    manifest = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
    parts = manifest["contributes"]
    for path in (parts["grammars"][0]["path"], parts["languages"][0]["configuration"]):
        json.loads((FOLDER / path).read_text(encoding="utf-8"))
    (debugger,) = parts["debuggers"]
    # A `program` would be looked for in the folder of the extension, a `runtime` on the PATH.
    assert (debugger["runtime"], debugger["args"]) == ("emu2", ["dap"])
    assert "program" not in debugger
    launch = debugger["configurationAttributes"]["launch"]["properties"]
    source = Path(ROOT / "emu2" / "debug" / "dap_requests.py").read_text(encoding="utf-8")
    for option in launch:
        assert f'"{option}"' in source, option
    assert Requests().session is None


def test_the_extension_starts_the_language_server() -> None:
    manifest = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
    code = (FOLDER / manifest["main"]).read_text(encoding="utf-8")
    assert '{ command: "emu2", args: ["lsp", "--spec", spec] }' in code
    assert {option for one in lsp.params for option in one.opts} >= {"--spec"}
    both = code + (FOLDER / "client.js").read_text(encoding="utf-8")
    # Nothing has to be installed beside it: `child_process` is a part of the editor.
    assert set(re.findall(r'require\("([^"]+)', both)) == {"vscode", "./client", "child_process"}
    assert "dependencies" not in manifest
    settings = manifest["contributes"]["configuration"]["properties"]
    assert {f"emu2.{name}" for name in re.findall(r'\.get\("(\w+)"', code)} == set(settings)
    language, linked = manifest["contributes"]["languages"]
    assert linked["extensions"] == ["._vsm"]
    assert f'["{language["id"]}", "{linked["id"]}"]' in code


def test_the_package_has_the_parts_of_a_vsix(tmp_path: Path) -> None:
    made = runpy.run_path(str(FOLDER / "pack.py"))
    package = made["pack"](tmp_path / "a.vsix")
    again = made["pack"](tmp_path / "b.vsix")
    assert package.read_bytes() == again.read_bytes()
    with zipfile.ZipFile(package) as packed:
        assert packed.testzip() is None
        names = set(packed.namelist())
        types = ElementTree.fromstring(packed.read("[Content_Types].xml"))
        manifest = ElementTree.fromstring(packed.read("extension.vsixmanifest"))
        facts = json.loads(packed.read("extension/package.json"))
    endings = {one.attrib["Extension"] for one in types}
    assert {Path(name).suffix for name in names - {"[Content_Types].xml"}} <= endings
    space = {"v": "http://schemas.microsoft.com/developer/vsx-schema/2011"}
    identity = manifest.find("v:Metadata/v:Identity", space)
    assert identity is not None
    wanted = {"Id": facts["name"], "Version": facts["version"], "Publisher": facts["publisher"]}
    assert wanted.items() <= identity.attrib.items()
    engine = manifest.find("v:Metadata/v:Properties/v:Property", space)
    assert engine is not None
    assert engine.attrib["Value"] == facts["engines"]["vscode"]
    assets = {one.attrib["Path"] for one in manifest.findall("v:Assets/v:Asset", space)}
    assert assets <= names
    parts = facts["contributes"]
    named = [facts["main"], *(one["path"] for one in parts["grammars"])]
    named += [one["configuration"] for one in parts["languages"]]
    named += ["./client.js"]
    assert {f"extension/{name.removeprefix('./')}" for name in named} <= names


_DRIVE = ROOT / "tests" / "data" / "vscode_client.js"


@pytest.mark.skipif(shutil.which("node") is None, reason="node is missing")
def test_the_client_hands_the_editor_what_the_server_says(tmp_path: Path) -> None:
    pytest.importorskip("pygls")
    path = tmp_path / "a.vsm"
    done = subprocess.run(
        ["node", str(_DRIVE), str(FOLDER / "client.js"), sys.executable, str(path)],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    wrong = found["wrong"]
    assert (wrong["code"], wrong["severity"], wrong["source"]) == ("A0102", 0, "emu2")
    assert wrong["range"] == {
        "start": {"line": 0, "character": 0},
        "end": {"line": 0, "character": 6},
    }
    assert emu2.Spec.load("mini").page("fvmul").rstrip() in found["hover"]["contents"]["value"]
    assert {"fvmul", "fvfma"} & {item["insertText"] for item in found["items"]}
    assert {item["kind"] for item in found["items"]} == {2}  # a function
    assert found["definition"]["uri"].startswith("file://")
    assert "language server is not there" in found["warning"]
