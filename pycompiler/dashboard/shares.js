"use strict";
// Products below the limits of the machine, and what the planners expected of each node.

(() => {
  const { h, svg, load, number, percent, view, node } = dashboard;

  /** A picture with two logarithmic axes and a point for each row. */
  function scatter(rows, place) {
    const [wide, high, left, bottom] = [760, 420, 76, 46];
    const values = rows.flatMap((row) => [row.expected, row.cycles]);
    const [low, top] = [Math.min(...values) / 1.5, Math.max(...values) * 1.5];
    const scale = (value, room) => (room * Math.log(value / low)) / Math.log(top / low);
    const at = (x, y) => [left + scale(x, wide), 10 + high - scale(y, high)];
    const picture = svg("svg", { viewBox: `0 0 ${left + wide + 16} ${high + bottom + 14}`, class: "plot", role: "img", "aria-label": "expected cycles and cycles" });
    picture.append(svg("rect", { x: left, y: 10, width: wide, height: high, class: "frame" }));
    for (let power = Math.ceil(Math.log10(low)); 10 ** power < top; power++) {
      const [x, y] = at(10 ** power, 10 ** power);
      picture.append(svg("path", { d: `M${x} 10V${10 + high}M${left} ${y}H${left + wide}`, class: "grid-line" }),
        svg("text", { x, y: high + 27, "text-anchor": "middle" }, number(10 ** power)), svg("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, number(10 ** power)));
    }
    const line = (times, name) => {
      const [from, to] = times < 1 ? [low / times, top] : [low, top / times];
      const [[x1, y1], [x2, y2]] = [at(from, from * times), at(to, to * times)];
      picture.append(svg("path", { d: `M${x1} ${y1}L${x2} ${y2}`, class: times === 1 ? "equal" : "around" }, svg("title", null, name)));
    };
    if (top / low > 4) { line(2, "twice the estimate"); line(0.5, "half of the estimate"); }
    line(1, "as expected");
    for (const row of rows) {
      const [x, y] = at(row.expected, row.cycles);
      const link = svg("a", { href: `#/${place}/node/${row.k}` });
      link.append(svg("circle", { cx: x, cy: y, r: 5, class: "point" }, svg("title", {}, `${row.node} (${row.op}): expected ${number(row.expected)}, takes ${number(row.cycles)} cycles, of them ${number(row.waits)} waits`)));
      picture.append(link);
    }
    picture.append(svg("text", { x: left + wide / 2, y: high + 46, "text-anchor": "middle" }, "cycles that the planners expect of the node alone"),
      svg("text", { x: -(10 + high / 2), y: 14, transform: "rotate(-90)", "text-anchor": "middle" }, "cycles in the program"));
    return picture;
  }

  view("roofline", async (compile, place) => {
    const rows = (await load(`${place}/nodes`)).map((row, k) => ({ ...row, k }));
    const parts = [];
    if (compile.parts.includes("products")) {
      const picture = new DOMParser().parseFromString(await load(`${place}/products`), "image/svg+xml").documentElement;
      if (picture.nodeName !== "svg") throw new Error("the picture is damaged");
      const shown = document.importNode(picture, true);
      shown.classList.add("plot");
      parts.push(h("h2", null, "Products below the limits of the machine"),
        h("p", { class: "dim" }, "Each point is a matrix product or a convolution. Level lines are the peak of the MAU in each precision; the slope is what DRAM could bring."), shown);
      const share = (row) => (row.peak && row.cycles ? row.mads / row.cycles / row.peak : 0);
      parts.push(dashboard.table([
        { title: "node", of: (row) => row.node, show: (row) => node(place, row.k, row.node || "(no name)") },
        { title: "operator", of: (row) => row.op },
        { title: "multiply-adds", of: (row) => row.mads, number: true },
        { title: "cycles", of: (row) => row.cycles, number: true },
        { title: "rate", unit: "multiply-adds a cycle", of: (row) => (row.cycles ? Math.round(row.mads / row.cycles) : 0), number: true },
        { title: "peak", unit: "in its precision", of: (row) => row.peak || 0, number: true },
        { title: "share of the peak", of: share, show: (row) => percent(share(row)), number: true },
      ], rows.filter((row) => row.mads), { sorted: { column: 3, down: true }, name: `${compile.name} products`, noun: "products" }).element);
    }
    const known = rows.filter((row) => row.expected > 0 && row.cycles > 0);
    if (known.length) {
      const off = (row) => row.cycles / row.expected;
      parts.push(h("h2", null, "Estimate and cycles"),
        h("p", { class: "dim" }, "Planners compare nodes by what their code takes alone. In the program, lines of other nodes share its steps, and waits come on top. Lines: half, as expected, twice."),
        scatter(known, place),
        dashboard.table([
          { title: "node", of: (row) => row.node, show: (row) => node(place, row.k, row.node || "(no name)") },
          { title: "operator", of: (row) => row.op },
          { title: "expected", unit: "cycles", of: (row) => row.expected, number: true },
          { title: "takes", unit: "cycles", of: (row) => row.cycles, number: true },
          { title: "waits", unit: "cycles", of: (row) => row.waits, number: true },
          { title: "difference", unit: "cycles", of: (row) => row.cycles - row.expected, number: true },
          { title: "times", of: off, show: (row) => off(row).toFixed(2), number: true },
        ], known, { sorted: { column: 3, down: true }, name: `${compile.name} estimates`, noun: "nodes" }).element);
    }
    return parts.length ? parts : [h("p", null, "No node has products or estimates.")];
  });
})();
