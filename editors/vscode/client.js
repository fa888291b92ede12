"use strict";
// Speaks the Language Server Protocol with `emu2 lsp`, as far as that server goes. It needs no other package.

const { spawn } = require("child_process");

/** A server process: requests get promises, notifications go to `told`. */
class Server {
  constructor({ command, args }, told, ended) {
    this.waiting = new Map();
    this.next = 1;
    this.told = told;
    this.rest = Buffer.alloc(0);
    this.process = spawn(command, args, { stdio: ["pipe", "pipe", "ignore"] });
    this.process.on("error", (problem) => this.end(problem.message, ended));
    this.process.on("exit", () => this.end("it has ended", ended));
    this.process.stdin.on("error", () => {});
    this.process.stdout.on("data", (data) => this.read(data));
  }

  end(reason, ended) {
    if (this.gone) return;
    this.gone = true;
    for (const [, failed] of this.waiting.values()) failed(new Error(reason));
    this.waiting.clear();
    ended(reason);
  }

  send(message) {
    if (this.gone) return;
    const text = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
    this.process.stdin.write(`Content-Length: ${text.length}\r\n\r\n`);
    this.process.stdin.write(text);
  }

  tell(method, params) {
    this.send({ method, params });
  }

  ask(method, params) {
    return new Promise((done, failed) => {
      if (this.gone) return failed(new Error("there is no server"));
      const id = this.next++;
      this.waiting.set(id, [done, failed]);
      this.send({ id, method, params });
    });
  }

  read(data) {
    this.rest = Buffer.concat([this.rest, data]);
    for (;;) {
      const head = this.rest.indexOf("\r\n\r\n");
      if (head < 0) return;
      const size = Number(/content-length: *(\d+)/i.exec(this.rest.toString("ascii", 0, head))[1]);
      if (this.rest.length < head + 4 + size) return;
      const message = JSON.parse(this.rest.toString("utf8", head + 4, head + 4 + size));
      this.rest = this.rest.subarray(head + 4 + size);
      this.take(message);
    }
  }

  take(message) {
    if (message.method && message.id !== undefined) this.send({ id: message.id, result: null });
    else if (message.method) this.told(message.method, message.params);
    else {
      const [done, failed] = this.waiting.get(message.id) || [() => {}, () => {}];
      this.waiting.delete(message.id);
      if (message.error) failed(new Error(message.error.message)); else done(message.result);
    }
  }
}

/** Start a server and hand the editor what it says about documents of `languages`. Returns a function that ends it. */
async function start(vscode, run, languages) {
  const { workspace, window, languages: editor, Position, Range } = vscode;
  const marks = editor.createDiagnosticCollection("emu2");
  const range = (one) => new Range(new Position(one.start.line, one.start.character), new Position(one.end.line, one.end.character));
  const severities = [0, vscode.DiagnosticSeverity.Error, vscode.DiagnosticSeverity.Warning, vscode.DiagnosticSeverity.Information];

  function told(method, params) {
    if (method !== "textDocument/publishDiagnostics") return;
    marks.set(vscode.Uri.parse(params.uri), params.diagnostics.map((one) => {
      const made = new vscode.Diagnostic(range(one.range), one.message, severities[one.severity]);
      [made.code, made.source] = [one.code, one.source];
      return made;
    }));
  }

  const server = new Server(run, told, (reason) => {
    marks.clear();
    if (!stopped) window.showWarningMessage(`emu2: the language server is not there: ${reason}. Is emu2 with its extra \`tools\` on the PATH?`);
  });
  let stopped = false;
  const ours = (document) => languages.includes(document.languageId);
  const uri = (document) => document.uri.toString();
  const at = (document, place) => ({ textDocument: { uri: uri(document) }, position: { line: place.line, character: place.character } });
  const open = (document) => ours(document) && server.tell("textDocument/didOpen", {
    textDocument: { uri: uri(document), languageId: document.languageId, version: document.version, text: document.getText() },
  });

  const kept = [
    marks,
    workspace.onDidOpenTextDocument(open),
    workspace.onDidChangeTextDocument(({ document }) => ours(document) && server.tell("textDocument/didChange", {
      textDocument: { uri: uri(document), version: document.version }, contentChanges: [{ text: document.getText() }],
    })),
    workspace.onDidCloseTextDocument((document) => ours(document) && server.tell("textDocument/didClose", { textDocument: { uri: uri(document) } })),
    editor.registerHoverProvider(languages, {
      async provideHover(document, place) {
        const found = await server.ask("textDocument/hover", at(document, place));
        return found && new vscode.Hover(new vscode.MarkdownString(found.contents.value), range(found.range));
      },
    }),
    editor.registerCompletionItemProvider(languages, {
      async provideCompletionItems(document, place) {
        const found = await server.ask("textDocument/completion", at(document, place));
        return found.items.map((one) => {
          // The protocol counts kinds from 1, the editor from 0.
          const item = new vscode.CompletionItem(one.label, one.kind - 1);
          [item.detail, item.insertText, item.range] = [one.detail, one.textEdit.newText, range(one.textEdit.range)];
          return item;
        });
      },
    }, "$", "@"),
    editor.registerDefinitionProvider(languages, {
      async provideDefinition(document, place) {
        const found = await server.ask("textDocument/definition", at(document, place));
        return found && new vscode.Location(vscode.Uri.parse(found.uri), range(found.range));
      },
    }),
  ];
  const stop = async () => {
    stopped = true;
    kept.forEach((one) => one.dispose());
    await server.ask("shutdown", null).catch(() => {});
    server.tell("exit", null);
  };
  try {
    await server.ask("initialize", { processId: process.pid, rootUri: null, capabilities: {} });
    server.tell("initialized", {});
    workspace.textDocuments.forEach(open);
  } catch {
    // The warning is shown already; colours and the debugger work without the server.
  }
  return stop;
}

module.exports = { start };
