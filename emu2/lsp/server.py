"""The language server: answers an editor's messages by :mod:`emu2.lsp.language`."""

from __future__ import annotations

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

import emu2
from emu2.errors import Diagnostic
from emu2.lsp.entries import SpecLine
from emu2.lsp.language import Kind, Language

_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
}
_KINDS: dict[Kind, types.CompletionItemKind] = {
    "instruction": types.CompletionItemKind.Function,
    "operand": types.CompletionItemKind.Variable,
}


def make_server(spec_name: str) -> LanguageServer:
    """Return a server for the assembly of a machine. EmulatorError if there is no such machine."""
    language = Language(spec_name)
    server = LanguageServer("emu2", emu2.__version__)

    def line(document: TextDocument, position: types.Position) -> tuple[str, int]:
        """Return a line and a column in characters."""
        lines = document.lines
        text = lines[position.line].rstrip("\r\n") if position.line < len(lines) else ""
        inside = document.position_codec.position_from_client_units(lines or [""], position)
        return text, inside.character

    def publish(uri: str) -> None:
        document = server.workspace.get_text_document(uri)
        found = language.diagnostics(document.source, document.path or uri)
        server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(
                uri=uri,
                version=document.version,
                diagnostics=[_diagnostic(document, one) for one in found],
            )
        )

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(given: types.DidOpenTextDocumentParams) -> None:
        publish(given.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(given: types.DidChangeTextDocumentParams) -> None:
        publish(given.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(given: types.DidCloseTextDocumentParams) -> None:
        empty = types.PublishDiagnosticsParams(uri=given.text_document.uri, diagnostics=[])
        server.text_document_publish_diagnostics(empty)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(given: types.HoverParams) -> types.Hover | None:
        document = server.workspace.get_text_document(given.text_document.uri)
        text, column = line(document, given.position)
        found = language.page(text, column)
        if found is None:
            return None
        page, word = found
        shown = types.MarkupContent(types.MarkupKind.Markdown, f"```text\n{page}\n```")
        return types.Hover(shown, _range(document, given.position.line, word.start, word.end))

    @server.feature(
        types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["$"])
    )
    def completion(given: types.CompletionParams) -> types.CompletionList:
        document = server.workspace.get_text_document(given.text_document.uri)
        text, column = line(document, given.position)
        start = column
        while start and (text[start - 1].isalnum() or text[start - 1] in "_$"):
            start -= 1
        replaced = _range(document, given.position.line, start, column)
        return types.CompletionList(
            is_incomplete=False,
            items=[
                types.CompletionItem(
                    label=one.text,
                    kind=_KINDS[one.kind],
                    detail=one.about,
                    text_edit=types.TextEdit(replaced, one.text),
                )
                for one in language.proposals(text, column)
            ],
        )

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def definition(given: types.DefinitionParams) -> types.Location | None:
        document = server.workspace.get_text_document(given.text_document.uri)
        place = language.definition(*line(document, given.position))
        return None if place is None else _location(place)

    return server


def _location(place: SpecLine) -> types.Location:
    at = types.Position(place.line, 0)
    return types.Location(place.path.as_uri(), types.Range(at, at))


def _range(document: TextDocument, line: int, start: int, end: int) -> types.Range:
    inside = types.Range(types.Position(line, start), types.Position(line, end))
    return document.position_codec.range_to_client_units(document.lines or [""], inside)


def _diagnostic(document: TextDocument, found: Diagnostic) -> types.Diagnostic:
    """Return a diagnostic of the protocol; lines and columns of emu2 count from 1."""
    start = types.Position(max(found["line"] - 1, 0), max(found["column"] - 1, 0))
    end = types.Position(max(found["end_line"] - 1, 0), max(found["end_column"] - 1, 0))
    lines = document.lines or [""]
    shown = types.Range(start, end)
    if end.line < len(lines):
        shown = document.position_codec.range_to_client_units(lines, shown)
    return types.Diagnostic(
        range=shown,
        message=f"{found['message']}\nhelp: {found['help']}" if found["help"] else found["message"],
        severity=_SEVERITIES.get(found["severity"], types.DiagnosticSeverity.Information),
        code=found["code"],
        source="emu2",
    )
