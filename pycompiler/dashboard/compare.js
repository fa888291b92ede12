"use strict";
// Two compiles side by side: which nodes became slower, and what changed about them.

(() => {
  const { h, load, number, head, route, node } = dashboard;

  function reasons(a, b) {
    if (!a) return ["only in the second"];
    if (!b) return ["only in the first"];
    const found = [];
    const told = (title, key) => { if (JSON.stringify(a[key]) !== JSON.stringify(b[key])) found.push(`${title} ${JSON.stringify(a[key])} → ${JSON.stringify(b[key])}`); };
    told("operator", "op");
    told("shape", "shape");
    told("layout", "layout");
    told("place", "location");
    told("slices", "slices");
    const more = (title, x, y) => { if (x !== y) found.push(`${title} ${y > x ? "+" : ""}${number(y - x)}`); };
    more("waits", a.waits, b.waits);
    more("steps", a.steps, b.steps);
    more("DRAM words", a.read + a.written, b.read + b.written);
    for (const slot of new Set([...Object.keys(a.busy), ...Object.keys(b.busy)])) more(`${slot} instructions`, a.busy[slot] || 0, b.busy[slot] || 0);
    return found;
  }

  /** Pair rows by operator and name; rows of one name pair in their order. */
  function pairs(first, second) {
    const found = new Map();
    const put = (rows, side) => {
      const seen = new Map();
      rows.forEach((row, k) => {
        const name = `${row.node}\n${row.op}`;
        const count = (seen.get(name) || 0) + 1;
        seen.set(name, count);
        const key = `${name}\n${count}`;
        if (!found.has(key)) found.set(key, { name: row.node, op: row.op });
        found.get(key)[side] = { ...row, k };
      });
    };
    put(first, "a");
    put(second, "b");
    return [...found.values()].map((pair) => ({ ...pair, before: pair.a ? pair.a.cycles : 0, after: pair.b ? pair.b.cycles : 0, why: reasons(pair.a, pair.b) }));
  }

  route((path, compiles) => path[0] === "compare" && compiles[path[1]] && compiles[path[2]], async ([, one, other], compiles) => {
    head(null);
    document.title = "Comparison";
    const [a, b] = [compiles[one], compiles[other]];
    const rows = await Promise.all([[a, one], [b, other]].map(([own, place]) => (own.parts.includes("nodes") ? load(`${place}/nodes`) : [])));
    const all = pairs(...rows);
    const changed = all.filter((pair) => pair.before !== pair.after || pair.why.length);
    const link = (own, place) => h("a", { href: `#/${place}` }, own.name);
    const figure = (title, of) => {
      const [x, y] = [of(a), of(b)];
      const numbers = typeof x === "number" && typeof y === "number";
      const less = numbers && y !== x ? h("span", { class: y < x ? "less" : "more" }, `${y > x ? "+" : ""}${number(Math.round((y - x) * 1000) / 1000)}${x ? ` (${(100 * (y / x - 1)).toFixed(1)} %)` : ""}`) : "";
      const text = (value) => (typeof value === "number" ? number(Math.round(value * 1000) / 1000) : String(value ?? "-"));
      return h("tr", null, h("td", null, title), h("td", { class: "number" }, text(x)), h("td", { class: "number" }, text(y)), h("td", { class: "number" }, less));
    };
    const words = (row) => (row.dram_words ? row.dram_words.read + row.dram_words.written : undefined);
    const options = [...new Set([...Object.keys(a.options || {}), ...Object.keys(b.options || {})])]
      .map((key) => [key, JSON.stringify((a.options || {})[key]), JSON.stringify((b.options || {})[key])]).filter(([, x, y]) => x !== y);
    const made = dashboard.table([
      { title: "node", of: (row) => row.name, show: (row) => (row.b ? node(other, row.b.k, row.name || "(no name)") : row.a ? node(one, row.a.k, row.name || "(no name)") : row.name) },
      { title: "operator", of: (row) => row.op },
      { title: "change", unit: "cycles", of: (row) => Math.abs(row.after - row.before), number: true, show: (row) => h("span", { class: row.after > row.before ? "more" : row.after < row.before ? "less" : "" }, `${row.after > row.before ? "+" : ""}${number(row.after - row.before)}`) },
      { title: "before", unit: "cycles", of: (row) => row.before, number: true },
      { title: "after", unit: "cycles", of: (row) => row.after, number: true },
      { title: "what differs", of: (row) => row.why.join("; "), show: (row) => h("span", { class: "dim" }, row.why.join("; ")) },
    ], changed, { sorted: { column: 2, down: true }, name: "comparison", noun: "nodes" });
    const lines = await dashboard.timelines([[a, one], [b, other]]);
    return [h("h1", null, link(a, one), " → ", link(b, other)),
      ...[a, b].filter((own) => own.error).map((own) => [h("p", null, own.name), dashboard.errorBox(own.error)]).flat(),
      h("table", { id: "totals" }, h("tbody", null, figure("status", (row) => row.status), figure("cycles", (row) => row.cycles), figure("steps", (row) => row.steps), figure("DRAM words", words),
        figure("nodes", (row) => row.nodes), figure("times the bound", (row) => (row.bound || {}).factor ?? undefined), figure("seconds to compile", (row) => row.seconds),
        ...["products", "switches", "transfers", "elementwise", "waits"].map((kind) => figure(`cycles of ${kind}`, (row) => (row.cycle_shares && kind in row.cycle_shares ? Math.round(row.cycle_shares[kind] * row.cycles) : undefined))))),
      h("h2", null, "Options that differ"), options.length ? h("table", null, options.map((cells) => h("tr", null, cells.map((text) => h("td", { class: "mono" }, text ?? "(default)"))))) : h("p", { class: "dim" }, "None."),
      ...lines,
      h("h2", null, `${number(changed.length)} of ${number(all.length)} nodes differ`), made.element];
  });
})();
