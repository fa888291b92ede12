"use strict";
// Starts `emu2 lsp` for sources. The debugger needs no code: package.json names its command.

const vscode = require("vscode");
const { start } = require("./client");

let stop;

async function activate() {
  const spec = vscode.workspace.getConfiguration("emu2").get("spec", "mncore2");
  stop = await start(vscode, { command: "emu2", args: ["lsp", "--spec", spec] }, ["vsm", "vsmlink"]);
}

function deactivate() {
  return stop && stop();
}

module.exports = { activate, deactivate };
