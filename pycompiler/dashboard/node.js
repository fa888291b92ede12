"use strict";
// The page of one node: operands and their layouts, code, slots, lines of the model.

(() => {
  const { h, load, number, percent, view, node } = dashboard;
  const chunk = 100;
  const known = ["mv", "l2bm", "l1bm", "mwrite", "mau", "alu"];

  function codeTable(facts, chosen) {
    const found = new Set(facts.code.flatMap((line) => line[2]));
    const slots = [...known.filter((slot) => found.has(slot)), ...[...found].filter((slot) => !known.includes(slot)).sort()];
    return h("table", { id: "code" },
      h("thead", null, h("tr", null, ["line", "cycle", "cycles", "waits"].map((title) => h("th", { class: "number" }, title)), slots.map((slot) => h("th", { class: "slot" }, slot)), h("th", null, "instructions"))),
      h("tbody", null, facts.code.map(([line, text, used, start, cycles, waits, others]) => h("tr", { class: line === chosen ? "here" : "", "data-line": line },
        [line, cycles ? start : "", cycles || "", waits || ""].map((value) => h("td", { class: "number" }, value === "" ? "" : number(value))),
        slots.map((slot) => h("td", { class: `slot${used.includes(slot) ? ` used ${slot === "mv" ? "mv" : ""}` : ""}` })),
        h("td", { class: "mono" }, text, others.length ? h("span", { class: "dim" }, `  shared with ${others.join(", ")}`) : "")))));
  }

  /** The settings that were simulated; the one that the scheduler chose is marked. */
  function settings(facts) {
    const least = Math.min(...facts.simulated.filter((one) => one.refused === null).map((one) => one.cycles));
    const titles = ["steps", "cycles", "long words of LM0", "long words of LM1", "DRAM words"];
    return h("table", { id: "simulated" },
      h("thead", null, h("tr", null, h("th", null, "setting"), titles.map((title) => h("th", { class: "number" }, title)), h("th", null, "busy steps"), h("th", null, ""))),
      h("tbody", null, facts.simulated.map((one) => h("tr", { class: one.setting === facts.chosen ? "chosen" : "" }, h("td", { class: "mono" }, one.setting),
        one.refused !== null ? titles.map(() => h("td", { class: "number dim" }, "-"))
          : [one.steps, one.cycles, one.lm0, one.lm1, one.read + one.written].map((value) => h("td", { class: "number" }, number(value))),
        h("td", { class: "dim" }, Object.entries(one.busy).map(([slot, steps]) => `${slot} ${number(steps)}`).join("  ")),
        h("td", null, [one.setting === facts.chosen ? "chosen" : "", one.refused === null && one.cycles === least ? "least cycles" : "", one.estimated ? "estimated" : "", one.refused || ""].filter(Boolean).join(", "))))));
  }

  view("node", async (compile, place, [which, line]) => {
    const row = Number(which);
    const rows = await load(`${place}/nodes`);
    if (!rows[row]) throw new Error("there is no such node");
    const all = await load(`${place}/nodes-${Math.floor(row / chunk)}`);
    const machine = compile.parts.includes("machine") ? await load(`${place}/machine`) : null;
    const [own, facts] = [rows[row], all[row % chunk]];
    const parts = [h("div", { class: "row" }, row > 0 ? node(place, row - 1, "← before") : "", row + 1 < rows.length ? node(place, row + 1, "after →") : ""),
      h("h1", null, own.node || "(no name)", " ", h("span", { class: "badge" }, own.op))];
    const figures = [["cycles", own.cycles], ["of them waits", own.waits], ["steps", own.steps], ["long words from DRAM", own.read],
      ["long words to DRAM", own.written], ["multiply-adds", own.mads], ["slices", own.slices]];
    parts.push(h("div", { class: "cards" }, figures.map(([title, value]) => h("div", { class: "card" }, h("b", null, number(value)), title))));
    const busy = Object.entries(own.busy);
    if (busy.length && own.steps) {
      parts.push(h("h2", null, "Slots"), h("table", null, busy.map(([slot, steps]) => h("tr", null, h("td", null, slot),
        h("td", null, h("span", { class: "meter" }, h("div", { style: `width:${Math.min(100, (100 * steps) / own.steps)}%` }))),
        h("td", null, `${number(steps)} steps with an instruction, ${percent(Math.min(1, steps / own.steps))}`)))));
    }
    if (own.source) {
      const line = Number(own.source.split(":").pop());
      parts.push(h("h2", null, "Line of the model"), h("p", { class: "mono" }, own.source));
      if (facts.source.length) parts.push(h("pre", { id: "source" }, facts.source.map(([k, text]) => h("div", { class: k === line ? "here" : "" }, `${String(k).padStart(5)}  ${text}`))));
    }
    facts.parts.forEach((part, k) => {
      const title = facts.parts.length > 1 ? `Slice ${part.name}` : "Operands";
      const picture = h("div");
      const buttons = [];
      const show = (operand, button) => {
        buttons.forEach((one) => one.classList.toggle("now", one === button));
        picture.replaceChildren(operand.layout && machine ? dashboard.drawLayout(operand, machine) : h("p", { class: "dim" }, "It has no layout: it is on the host."));
      };
      const list = part.operands.map((operand) => {
        const button = h("button", { class: "operand", onclick: () => show(operand, button) }, operand.name);
        buttons.push(button);
        return h("tr", null, h("td", null, operand.role), h("td", null, button), h("td", null, operand.type), h("td", null, operand.dtype),
          h("td", null, `${operand.location}${operand.addr === null ? "" : ` ${operand.addr}`}`),
          h("td", { class: "number" }, operand.num_lw === null ? "-" : number(operand.num_lw)), h("td", { class: "mono" }, operand.text));
      });
      const body = [h("table", null, h("thead", null, h("tr", null, ["", "value", "type", "in the machine", "place", "long words a PE", "layout"].map((text) => h("th", null, text)))), h("tbody", null, list))];
      const attributes = Object.entries(part.attributes);
      if (attributes.length) body.push(h("p", { class: "mono" }, attributes.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join("  ")));
      if (part.reason) body.push(h("p", null, `It runs on the host: ${part.reason}`));
      if (part.inplace !== null) body.push(h("p", null, `The first output overwrites input ${part.inplace}.`));
      body.push(picture);
      if (k === 0) {
        parts.push(h("h2", null, title), ...body.map((one) => (one.tagName === "TABLE" ? h("div", { class: "grid" }, one) : one)));
        const last = part.operands.length - 1;
        if (last >= 0) show(part.operands[last], buttons[last]);
      } else parts.push(h("details", null, h("summary", null, title), ...body));
    });
    if (facts.simulated.length) {
      parts.push(h("h2", null, "Simulated settings"), h("p", { class: "dim" }, "What the node costs by itself, with its operands in other banks."), settings(facts));
    }
    if (facts.code.length) {
      parts.push(h("h2", null, "Code, and the slots that it takes"));
      if (facts.lines > facts.code.length) parts.push(h("p", { class: "dim" }, `The first ${number(facts.code.length)} of ${number(facts.lines)} lines; model.vsm has all.`));
      parts.push(h("div", { class: "grid" }, codeTable(facts, Number(line))));
      if (line) setTimeout(() => { const found = document.querySelector("#code tr.here"); if (found) found.scrollIntoView({ block: "center" }); });
    }
    return parts;
  });
})();
