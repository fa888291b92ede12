"""The language server: answers an editor's messages by :mod:`emu2.lsp.language`."""

from __future__ import annotations

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

import emu2
from emu2.errors import Diagnostic
from emu2.lsp.document import Document
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
    # pygls changes the ranges of partial changes when it takes them, at lines of its own.
    whole = types.TextDocumentSyncKind.Full
    server = LanguageServer("emu2", emu2.__version__, text_document_sync_kind=whole)

    # The documents of pygls end lines where `str.splitlines` does.
    documents: dict[str, Document] = {}

    def pointed(
        given: types.HoverParams | types.CompletionParams | types.DefinitionParams,
    ) -> tuple[Document, int, str, int]:
        """Return a document, and line number, line and column (in characters) of a place."""
        document = documents.get(given.text_document.uri) or Document("", None, len)
        row, column = document.place(given.position.line, given.position.character)
        return document, row, document.line(row), column

    def publish(uri: str) -> None:
        document = documents[uri]
        found = language.diagnostics(document.text, to_fs_path(uri) or uri)
        server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(
                uri=uri,
                version=document.version,
                diagnostics=[_diagnostic(document, one) for one in found],
            )
        )

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(given: types.DidOpenTextDocumentParams) -> None:
        found, units = given.text_document, server.workspace.position_codec.client_num_units
        documents[found.uri] = Document(found.text, found.version, units)
        publish(found.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(given: types.DidChangeTextDocumentParams) -> None:
        document = documents.get(given.text_document.uri)
        if document is None:  # the editor has not opened it
            return
        document.version = given.text_document.version
        for change in given.content_changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                ends = change.range.start, change.range.end
                document.change(change.text, *((end.line, end.character) for end in ends))
            else:
                document.change(change.text)
        publish(given.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(given: types.DidCloseTextDocumentParams) -> None:
        documents.pop(given.text_document.uri, None)
        empty = types.PublishDiagnosticsParams(uri=given.text_document.uri, diagnostics=[])
        server.text_document_publish_diagnostics(empty)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(given: types.HoverParams) -> types.Hover | None:
        document, row, text, column = pointed(given)
        found = language.page(text, column)
        if found is None:
            return None
        page, word = found
        shown = types.MarkupContent(types.MarkupKind.Markdown, f"```text\n{page}\n```")
        return types.Hover(shown, _range(document, row, word.start, word.end))

    @server.feature(
        types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["$"])
    )
    def completion(given: types.CompletionParams) -> types.CompletionList:
        document, row, text, column = pointed(given)
        start = column
        while start and (text[start - 1].isalnum() or text[start - 1] in "_$@"):
            start -= 1
        replaced = _range(document, row, start, column)
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
        _, _, text, column = pointed(given)
        place = language.definition(text, column)
        return None if place is None else _location(place)

    return server


def _location(place: SpecLine) -> types.Location:
    at = types.Position(place.line, 0)
    return types.Location(place.path.as_uri(), types.Range(at, at))


def _range(document: Document, row: int, start: int, end: int) -> types.Range:
    ends = (types.Position(*document.shown(row, column)) for column in (start, end))
    return types.Range(*ends)


def _diagnostic(document: Document, found: Diagnostic) -> types.Diagnostic:
    """Return a diagnostic of the protocol."""
    start = document.of_statement(found["line"], found["column"])
    end = document.of_statement(found["end_line"], found["end_column"])
    return types.Diagnostic(
        range=types.Range(types.Position(*start), types.Position(*end)),
        message=f"{found['message']}\nhelp: {found['help']}" if found["help"] else found["message"],
        severity=_SEVERITIES.get(found["severity"], types.DiagnosticSeverity.Information),
        code=found["code"],
        source="emu2",
    )
