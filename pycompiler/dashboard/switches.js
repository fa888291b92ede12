"use strict";
// Layout switches: where elements lie before and after, and what must cross each level.

(() => {
  const { h, load, number, view, node } = dashboard;

  const words = (elements, lanes) => Math.ceil(elements / lanes);

  view("switches", async (compile, place, [which]) => {
    const all = (await load(`${place}/switches`)).map((row, k) => ({ ...row, k }));
    const title = (row) => row.values[1].name;
    if (which === undefined) {
      return [h("h1", null, "Layout switches"),
        h("p", { class: "dim" }, "A switch gives a value another layout, in one or more passes. The lower bound is what the machine needs for the words that must come into the units of the level that takes longest."),
        dashboard.table([
          { title: "result", of: title, show: (row) => h("a", { href: `#/${place}/switches/${row.k}` }, title(row)) },
          { title: "shape", of: (row) => row.values[0].shape.join("x") },
          { title: "passes", of: (row) => row.passes.length, number: true },
          { title: "takes", unit: "cycles", of: (row) => row.cycles, number: true },
          { title: "lower bound", unit: "cycles", of: (row) => row.least, number: true },
          { title: "above", unit: "cycles", of: (row) => row.cycles - row.least, number: true },
        ], all, { sorted: { column: 5, down: true }, name: `${compile.name} switches`, noun: "switches" }).element];
    }
    const row = all[Number(which)];
    if (!row) throw new Error("there is no such switch");
    const machine = await load(`${place}/machine`);
    const pages = [h("div", { class: "row" }, h("a", { href: `#/${place}/switches` }, "all switches"),
      row.k > 0 ? h("a", { href: `#/${place}/switches/${row.k - 1}` }, "← before") : "", row.k + 1 < all.length ? h("a", { href: `#/${place}/switches/${row.k + 1}` }, "after →") : ""),
    h("h1", null, `${row.values[0].name} → ${title(row)}`),
    h("p", null, `${number(row.cycles)} cycles in ${row.passes.length} ${row.passes.length > 1 ? "passes" : "pass"}: `, row.passes.flatMap(([name, level, at], k) => [k ? ", " : "", at >= 0 ? node(place, at, name) : name, ` (${level})`])),
    h("p", { id: "least" }, `The machine needs ${number(row.least)} cycles at least.`),
    dashboard.table([
      { title: "into the units of", of: ([unit]) => unit },
      { title: "elements", unit: "in all", of: ([, elements]) => elements, number: true },
      { title: "words", unit: "long words in all", of: ([, elements]) => words(elements, row.lanes), number: true },
      { title: "into one unit", unit: "elements at least", of: ([, , most]) => Math.ceil(most), number: true },
    ], row.crossing, { name: title(row), noun: "levels" }).element];
    const sides = row.values.map((value, k) => h("div", { class: "side" }, h("h2", null, k ? "After" : "Before"), dashboard.drawLayout(value, machine)));
    // An element that is chosen on one side is shown on the other one too.
    const picked = sides.map((side) => side.querySelector(".layout"));
    picked.forEach((one, k) => one.addEventListener("element", (event) => picked[1 - k].choose(event.detail)));
    return [...pages, h("p", { class: "dim" }, "Choose an element on either side."), h("div", { class: "split" }, sides)];
  });
})();
