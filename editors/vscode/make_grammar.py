"""Write the TextMate grammar from the spec: ``python editors/vscode/make_grammar.py``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import emu2
from emu2.link.linker import HANDLERS

PATH = Path(__file__).parent / "syntaxes" / "vsm.tmLanguage.json"
_START = r"(?:^|(?<=;))\s*"
_END = r"(?=[\s;/+@\-]|$)"


def grammar(spec: emu2.Spec) -> dict[str, Any]:
    """Return the grammar of the assembly of ``spec``. Of two rules at one place the first wins."""
    names = "|".join(sorted(spec.mnemonics, key=lambda name: (-len(name), name)))
    directives = "|".join(sorted(HANDLERS, key=lambda name: (-len(name), name)))
    rules: list[tuple[str, str]] = [
        ("comment.line.number-sign.vsm", r"[#!].*$"),
        ("keyword.other.debug.vsm", r"^\s*[ders](?=\s)(?:\s+(?:set|get[a-z]*)\b)?"),
        ("keyword.control.directive.vsm", rf"^\s*(?:{directives})(?=\s|$)"),
        ("keyword.control.mask.vsm", _START + r"mask[a-z]*" + _END),
        ("keyword.mnemonic.vsm", rf"{_START}(?:{names})(?=[\s;/+@\-]|\d|$)"),
        ("invalid.illegal.mnemonic.vsm", _START + r"[A-Za-z_]\w*"),
        ("string.quoted.double.vsm", r"[a-z]*\"[^\"]*\""),
        ("variable.register.vsm", r"-?\$[a-z]+[0-9]*(?:[a-z0-9@.]|\[[0-9, ]*\])*"),
        ("entity.other.parameter.vsm", r"/\$?[a-z]*[0-9]*(?:[a-z]+[0-9A-F]*)*"),
        ("constant.numeric.hex.vsm", r"\b(?:0x[0-9a-fA-F]+|[0-9A-Fa-f]{8,})\b"),
        ("constant.other.tag.vsm", r"\bi[0-9a-f]{2}\b"),
        ("constant.numeric.vsm", r"[+\-]?\b[0-9]+\b"),
        ("punctuation.separator.vsm", r";"),
    ]
    return {
        "name": "MN-Core 2 assembly",
        "scopeName": "source.vsm",
        "fileTypes": ["vsm", "_vsm"],
        "patterns": [{"name": name, "match": match} for name, match in rules],
    }


def text(spec: emu2.Spec) -> str:
    """Return the grammar as the text of its file."""
    return json.dumps(grammar(spec), indent=2) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(emu2.Spec.load("mncore2")), encoding="utf-8")
