// Drives the client of the VS Code extension with an editor that only keeps what it is told.
const [client, python, path] = process.argv.slice(2);
const events = {}, marks = {}, providers = {};
const thing = (own) => class { constructor(...given) { own.forEach((name, k) => { this[name] = given[k]; }); } };
const on = (name) => (take) => { events[name] = take; return { dispose() {} }; };
const keep = (name) => (languages, own) => { providers[name] = own; return { dispose() {} }; };
const text = "fvmull $lm0v $lm0v $lr0v\n";
const document = (text, version) => ({
  languageId: "vsm", version, getText: () => text, uri: { toString: () => `file://${path}` },
});
const vscode = {
  Position: thing(["line", "character"]), Range: thing(["start", "end"]), Location: thing(["uri", "range"]),
  Diagnostic: thing(["range", "message", "severity"]), Hover: thing(["contents", "range"]),
  MarkdownString: thing(["value"]), CompletionItem: thing(["label", "kind"]),
  DiagnosticSeverity: { Error: 0, Warning: 1, Information: 2 }, Uri: { parse: (text) => text },
  window: { showWarningMessage: (text) => { events.warning = text; } },
  workspace: {
    textDocuments: [document(text, 1), { languageId: "python" }],
    onDidOpenTextDocument: on("open"), onDidChangeTextDocument: on("change"), onDidCloseTextDocument: on("close"),
  },
  languages: {
    createDiagnosticCollection: () => ({ set: (uri, list) => { marks[uri] = list; }, clear() {}, dispose() {} }),
    registerHoverProvider: keep("hover"), registerCompletionItemProvider: keep("completion"),
    registerDefinitionProvider: keep("definition"),
  },
};
const told = async (test) => { while (!test()) await new Promise((done) => setTimeout(done, 20)); };
(async () => {
  const { start } = require(client);
  const failed = await start(vscode, { command: path + ".missing", args: [] }, ["vsm"]);
  const stop = await start(vscode, { command: python, args: ["-m", "emu2", "lsp", "--spec", "mini"] }, ["vsm"]);
  const uri = `file://${path}`;
  await told(() => (marks[uri] || []).length);
  const [wrong] = marks[uri];
  const right = document(text.replace("fvmull", "fvmul"), 2);
  events.change({ document: right });
  await told(() => !marks[uri].length);
  const place = { line: 0, character: 1 };
  const hover = await providers.hover.provideHover(right, place);
  const items = await providers.completion.provideCompletionItems(right, { line: 0, character: 3 });
  const definition = await providers.definition.provideDefinition(right, place);
  await stop();
  await failed();
  console.log(JSON.stringify({ wrong, hover, items, definition, warning: events.warning }));
})();
