"""The folder for VS Code: the grammar colours what the assembler reads, and the manifest fits."""

from __future__ import annotations

import json
import re
import runpy
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
    modules = set(re.findall(r'require\("([\w-]+)', code)) - {"vscode"}
    assert modules == set(manifest["dependencies"])
    settings = manifest["contributes"]["configuration"]["properties"]
    assert {f"emu2.{name}" for name in re.findall(r'\.get\("(\w+)"', code)} == set(settings)
    language, linked = manifest["contributes"]["languages"]
    assert linked["extensions"] == ["._vsm"]
    assert f'language: "{language["id"]}"' in code
