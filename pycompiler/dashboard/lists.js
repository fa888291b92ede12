"use strict";
// The list of compiles, and of one compile: the overview, its nodes, its passes and its log.

(() => {
  const { h, load, number, percent, head, route, view, node } = dashboard;
  const words = (row) => (row.dram_words ? (row.dram_words.read || 0) + (row.dram_words.written || 0) : 0);
  const bounds = (bound) => [["mau", "products"], ["dram", "DRAM"], ["vector", "vectors"]]
    .map(([key, name]) => `${name} ${number(bound[key])}${key === bound.binds ? " binds" : ""}`).join(", ");
  const factor = (row) => (row.bound && typeof row.bound.factor === "number" ? row.bound.factor : 0);
  const badge = (status) => h("span", { class: `badge ${status}` }, String(status));

  route((path) => !path.length, async (_, compiles) => {
    head(null);
    document.title = "Compiles";
    const chosen = new Set();
    const compare = h("button", {
      disabled: true, id: "compare",
      onclick: () => { location.hash = `#/compare/${[...chosen].sort((a, b) => a - b).join("/")}`; },
    }, "Compare the two chosen ones");
    const rows = compiles.map((row, place) => ({ ...row, place }));
    const choose = (row) => h("input", {
      type: "checkbox", "aria-label": `choose ${row.name}`,
      onchange: (event) => {
        if (event.target.checked) chosen.add(row.place); else chosen.delete(row.place);
        compare.disabled = chosen.size !== 2;
      },
    });
    const made = dashboard.table([
      { title: "", of: (row) => row.place, show: choose },
      { title: "name", of: (row) => row.name, show: (row) => h("a", { href: `#/${row.place}` }, row.name) },
      { title: "status", of: (row) => row.status, show: (row) => h("span", null, badge(row.status),
        row.error && row.error.code ? ` ${row.error.code}` : "") },
      { title: "device", of: (row) => row.device || "" },
      { title: "nodes", of: (row) => row.nodes, number: true },
      { title: "on the host", of: (row) => row.hosted, number: true },
      { title: "steps", of: (row) => row.steps || 0, number: true },
      { title: "cycles", of: (row) => row.cycles || 0, number: true },
      { title: "times the bound", of: factor, show: (row) => (factor(row) ? factor(row).toFixed(1) : "-"), number: true },
      { title: "DRAM", unit: "long words", of: words, number: true },
      { title: "compile", unit: "seconds", of: (row) => row.seconds, show: (row) => row.seconds.toFixed(1), number: true },
      { title: "written", unit: "UTC", of: (row) => row.time, show: (row) => new Date(row.time * 1000).toISOString().slice(0, 16).replace("T", " "), number: true },
    ], rows, { name: "compiles", noun: "compiles" });
    const { files } = await load("files");
    const others = files.length ? [h("h2", null, "Files of other commands"), h("ul", null, files.map((file, k) => h("li", null, h("a", { href: `#/file/${k}` }, file.name), ` ${file.kind}`)))] : [];
    const ok = compiles.filter((row) => row.status === "ok").length;
    return [h("h1", null, `${compiles.length} compiles, ${ok} of them finished`), h("div", { class: "row" }, compare), made.element, ...others];
  });

  const kinds = { products: "#2563a8", switches: "#e8710a", transfers: "#7a9c3f", elementwise: "#8a63b8", waits: "#b3bac2" };

  function shares(found) {
    const parts = Object.entries(found || {}).filter(([, share]) => share > 0);
    if (!parts.length) return [];
    return [h("h2", null, "Where the cycles go"),
      h("div", { class: "bar" }, parts.map(([kind, share]) => h("div", { style: `width:${100 * share}%;background:${kinds[kind] || "#555"}`, title: kind }))),
      h("div", { class: "row" }, parts.map(([kind, share]) => h("span", null, h("span", { class: "key", style: `background:${kinds[kind] || "#555"}` }), `${kind} ${percent(share)}`)))];
  }

  dashboard.errorBox = (error) => h("div", { class: "error", id: "error" }, [
    [error.code || error.type, error.message].filter(Boolean).join(": "),
    error.place ? `\nat ${error.place}` : "", error.help ? `\nhelp: ${error.help}` : "",
  ].join(""));

  view("", async (compile, place) => {
    const parts = [h("h1", null, compile.name, " ", badge(compile.status))];
    if (compile.error) parts.push(dashboard.errorBox(compile.error));
    const bound = compile.bound || {};
    const figures = [["cycles", compile.cycles], ["steps", compile.steps], ["bound, cycles", bound.cycles], ["DRAM words", words(compile)],
      ["nodes", compile.nodes], ["on the host", compile.hosted], ["seconds to compile", Number(compile.seconds.toFixed(2))]];
    const shown = compile.nodes || compile.status === "ok" ? figures : figures.slice(-1);
    parts.push(h("div", { class: "cards" }, shown.filter(([, value]) => typeof value === "number")
      .map(([title, value]) => h("div", { class: "card" }, h("b", null, number(value)), title))));
    if (factor(compile)) parts.push(h("p", null, `The program takes ${factor(compile).toFixed(1)} times as long as its bound: ${bounds(bound)}.`));
    parts.push(...shares(compile.cycle_shares));
    if (compile.parts.includes("nodes")) {
      const rows = (await load(`${place}/nodes`)).map((row, k) => [row, k]).sort((a, b) => b[0].cycles - a[0].cycles).slice(0, 10);
      const most = Math.max(1, ...rows.map(([row]) => row.cycles));
      parts.push(h("h2", null, "Nodes with the most cycles"), h("table", null, rows.map(([row, k]) => h("tr", null,
        h("td", { class: "number" }, number(row.cycles)),
        h("td", null, h("span", { class: "meter" }, h("div", { style: `width:${(100 * row.cycles) / most}%` }))),
        h("td", null, node(place, k, row.node || "(no name)")), h("td", { class: "dim" }, row.op)))));
    }
    const options = Object.entries(compile.options || {});
    parts.push(h("h2", null, "Options"), options.length
      ? h("table", null, options.map(([key, value]) => h("tr", null, h("td", { class: "mono" }, key), h("td", { class: "mono" }, JSON.stringify(value)))))
      : h("p", { class: "dim" }, "All have their defaults."));
    const served = await load("served");
    const models = (served.netron || {})[place] || [];
    parts.push(h("h2", null, "Files"), h("p", { class: "mono" }, compile.folder),
      ...models.map(([name, url]) => h("p", null, h("a", { href: url, target: "_blank" }, `${name} in Netron`))));
    return parts;
  });

  view("nodes", async (compile, place) => {
    const rows = (await load(`${place}/nodes`)).map((row, k) => ({ ...row, k }));
    const total = Math.max(1, rows.reduce((sum, row) => sum + row.cycles, 0));
    const made = dashboard.table([
      { title: "#", of: (row) => row.k, number: true },
      { title: "node", of: (row) => row.node, show: (row) => node(place, row.k, row.node || "(no name)") },
      { title: "operator", of: (row) => row.op },
      { title: "module", of: (row) => row.module || "" },
      { title: "shape", of: (row) => row.shape.reduce((a, b) => a * b, 1), show: (row) => row.shape.join("x") || "scalar" },
      { title: "place", of: (row) => row.location },
      { title: "cycles", of: (row) => row.cycles, number: true },
      { title: "share", unit: "of cycles", of: (row) => row.cycles / total, show: (row) => percent(row.cycles / total), number: true },
      { title: "waits", unit: "cycles", of: (row) => row.waits, number: true },
      { title: "steps", of: (row) => row.steps, number: true },
      { title: "DRAM", unit: "long words", of: (row) => row.read + row.written, number: true },
      { title: "multiply-adds", of: (row) => row.mads, number: true },
      { title: "busiest slot", unit: "of steps", of: (row) => row.use, show: (row) => (row.slot ? `${percent(row.use)} ${row.slot}` : "-"), number: true },
      { title: "line of the model", of: (row) => row.source || "", show: (row) => h("span", { class: "dim" }, (row.source || "").split("/").pop()) },
    ], rows, {
      name: `${compile.name} nodes`, noun: "nodes", search: { id: "search", placeholder: "node, operator, value, layout, line" },
      text: (row) => `${row.node} ${row.op} ${row.output} ${row.layout} ${row.location} ${row.source || ""}`,
    });
    return [made.element];
  });

  /** Show a line of the graph's text; words that the other side lacks are marked. */
  function marked(text, others) {
    const there = new Set(others.join(" ").split(" "));
    return text.split(" ").flatMap((word) => [there.has(word) ? word : h("mark", null, word), " "]);
  }

  view("passes", async (compile, place, [chosen]) => {
    const passes = await load(`${place}/passes`);
    const now = passes.find((one) => one.name === chosen) || passes.find((one) => one.total) || passes[0];
    const choice = passes.map((one) => h("a", { href: `#/${place}/passes/${one.name}` }, h("button", { class: one === now ? "now" : "" }, `${one.name} (${number(one.total)})`)));
    const cut = now.total - now.changes.length;
    return [h("div", { class: "row" }, choice), h("h1", null, `${now.name}, compared with ${now.before}`),
      now.total ? h("p", null, `${number(now.total)} nodes of the graph's text differ.${cut ? ` ${number(cut)} of them are not shown.` : ""}`) : h("p", null, "This pass changed nothing."),
      dashboard.growing(h("div"), 60, "more nodes below").set(now.changes, (one) => h("div", { class: "change" }, h("b", null, one.title),
        one.removed.map((line) => h("div", { class: "mono removed" }, "− ", marked(line, one.added))),
        one.added.map((line) => h("div", { class: "mono added" }, "+ ", marked(line, one.removed))))).elements].flat();
  });

  view("log", async (compile, place) => {
    const log = await load(`${place}/log`);
    const parts = [];
    if (log.error) parts.push(dashboard.errorBox(log.error));
    const list = (title, lines) => { if (lines && lines.length) parts.push(h("h2", null, title), h("ul", null, lines.map((line) => h("li", null, String(line))))); };
    list("Parts that are missing here", log.problems);
    list("Notes", log.notes);
    list("Forced layouts without a use", (log.unused || []).map((one) => JSON.stringify(one)));
    if (log.host_fallback && log.host_fallback.length) {
      parts.push(h("h2", null, "Operators on the host"), h("table", null, log.host_fallback.map((row) => h("tr", null, Object.values(row).map((value) => h("td", null, typeof value === "string" ? value : JSON.stringify(value)))))));
    }
    const most = Math.max(1e-9, ...log.passes.map((row) => row.seconds || 0));
    parts.push(h("h2", null, "Passes"), h("table", null, log.passes.map((row) => {
      const { pass, seconds, ...rest } = row;
      return h("tr", null, h("td", null, String(pass)), h("td", { class: "number" }, `${(seconds || 0).toFixed(3)} s`),
        h("td", null, h("span", { class: "meter" }, h("div", { style: `width:${(100 * (seconds || 0)) / most}%` }))),
        h("td", { class: "mono dim" }, Object.keys(rest).length ? JSON.stringify(rest).slice(0, 400) : ""));
    })));
    for (const [name, text] of [...log.logs, ...Object.entries(log.more)]) parts.push(h("h2", null, name), h("pre", null, text));
    for (const key of ["schedule", "environment", "cache"]) if (log[key]) parts.push(h("h2", null, key), h("pre", null, JSON.stringify(log[key], null, 1)));
    parts.push(h("h2", null, "Files in the folder"), h("p", { class: "mono" }, log.files.join("  ")));
    return parts;
  });
})();
