"use strict";
// Starts `emu2 lsp` for .vsm files. The debugger needs no code: package.json names its command.

const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function activate() {
  const spec = workspace.getConfiguration("emu2").get("spec", "mncore2");
  const server = { command: "emu2", args: ["lsp", "--spec", spec] };
  client = new LanguageClient("emu2", "emu2", server, { documentSelector: [{ language: "vsm" }] });
  return client.start();
}

function deactivate() {
  return client && client.stop();
}

module.exports = { activate, deactivate };
