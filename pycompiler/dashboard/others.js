"use strict";
// Files of other commands: sweeps, memory strategies, gaps, and what nodes computed in a run; also what a compile tried.

(() => {
  const { h, svg, load, number, percent, head, route, view, scene, colour, fitted, legend } = dashboard;
  const shades = ["#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#9d755d", "#8a8f98", "#9ecae9", "#eeca3b", "#88d27a", "#ff9da6"];

  /** A panel of lines over the numbers of one value; both axes have round ticks, upwards they are logarithmic where numbers span much. */
  function lines(title, unit, name, numbers, found) {
    const [wide, high, left, bottom] = [640, 220, 84, 44];
    const all = found.flatMap(([, points]) => points.map(([, value]) => value));
    if (!all.length) return null;
    const steep = Math.max(...all) / Math.min(...all) > 20;
    const map = steep ? Math.log : (value) => value;
    const [low, top] = steep ? [Math.min(...all) / 1.2, Math.max(...all) * 1.2] : [0, Math.max(...all) * 1.1];
    const y = (value) => 26 + high - (high * (map(value) - map(low || 0))) / (map(top) - map(low || 0));
    const x = (k) => left + 20 + (k * (wide - 40)) / Math.max(1, numbers.length - 1);
    const picture = svg("svg", { viewBox: `0 0 ${left + wide + 10} ${high + bottom + 30}`, class: "plot", role: "img", "aria-label": title });
    picture.append(svg("text", { x: left, y: 16, class: "strong" }, `${title}${unit ? ` (${unit})` : ""}`), svg("rect", { x: left, y: 26, width: wide, height: high, class: "frame" }));
    const ticks = steep ? Array.from({ length: 16 }, (_, k) => 10 ** (k - 2)).filter((one) => one > low && one < top) : (() => {
      const rough = top / 5;
      const power = 10 ** Math.floor(Math.log10(rough));
      const step = [1, 2, 5, 10].find((times) => times * power >= rough) * power;
      return Array.from({ length: Math.floor(top / step) + 1 }, (_, k) => k * step);
    })();
    for (const one of ticks) {
      picture.append(svg("path", { d: `M${left} ${y(one)}H${left + wide}`, class: "grid-line" }),
        svg("text", { x: left - 6, y: y(one) + 4, "text-anchor": "end" }, number(+one.toPrecision(6))));
    }
    numbers.forEach((one, k) => picture.append(svg("text", { x: x(k), y: high + 43, "text-anchor": "middle" }, number(one))));
    picture.append(svg("text", { x: left + wide / 2, y: high + 62, "text-anchor": "middle" }, name));
    found.forEach(([label, points], k) => {
      const own = shades[k % shades.length];
      picture.append(svg("polyline", { points: points.map(([at, value]) => `${x(at)},${y(value)}`).join(" "), fill: "none", stroke: own, "stroke-width": 2 }));
      for (const [at, value] of points) picture.append(svg("circle", { cx: x(at), cy: y(value), r: 4, fill: own }, svg("title", {}, `${label || title}, ${name} ${number(numbers[at])}: ${number(value)}`)));
    });
    return h("div", null, picture, found.length > 1 ? legend(found.map(([label], k) => [shades[k % shades.length], label])) : null);
  }

  function sweep({ rows, model, machine }) {
    const ok = rows.filter((row) => row.status === "ok");
    const names = Object.keys(rows.length ? rows[0].values : {});
    const numbersOf = (name) => [...new Set(rows.map((row) => row.values[name]))].sort((a, b) => a - b);
    const axis = names.reduce((best, name) => (best === null || numbersOf(name).length > numbersOf(best).length ? name : best), null);
    const numbers = numbersOf(axis);
    const series = (of) => {
      const found = new Map();
      for (const row of ok) {
        const label = names.filter((name) => name !== axis).map((name) => `${name} ${number(row.values[name])}`).join(", ");
        const value = of(row);
        if (typeof value !== "number" || !(value > 0)) continue;
        if (!found.has(label)) found.set(label, []);
        found.get(label).push([numbers.indexOf(row.values[axis]), value]);
      }
      return [...found].map(([label, points]) => [label, points.sort((a, b) => a[0] - b[0])]);
    };
    const levels = [...new Set(ok.flatMap((row) => Object.keys(row.words || {})))];
    return [h("h1", null, `Sweep of ${model} on ${machine}`),
      lines("cycles", "", axis, numbers, series((row) => row.cycles)), lines("times the bound", "", axis, numbers, series((row) => row.factor)),
      ...levels.map((level) => lines(`${level} moved`, "long words", axis, numbers, series((row) => row.words[level]))),
      dashboard.table([...names.map((name) => ({ title: name, of: (row) => row.values[name], number: true })),
        { title: "cycles", of: (row) => row.cycles ?? "-", number: true }, { title: "times the bound", of: (row) => row.factor ?? "-", number: true },
        ...levels.map((level) => ({ title: `${level} moved`, unit: "long words", of: (row) => (row.words || {})[level] ?? "-", number: true })),
        { title: "result", of: (row) => row.status }], rows, { name: "sweep", noun: "machines" }).element];
  }

  const mib = (bytes) => (bytes / 2 ** 20).toFixed(2);

  function strategies({ model, tensors, strategies: ways, lower_bound: least }, at, [chosen]) {
    const now = ways[Number(chosen) || 0];
    const used = Math.max(1, now.size);
    const last = Math.max(1, ...tensors.map((one) => one.end));
    const tones = { activation: "#6f9bd1", gradient: "#f3a45c", "weight gradient": "#7fbf77" };
    const placed = tensors.filter((one) => one.size && one.name in now.offsets);
    const box = (one) => [one.start, used - now.offsets[one.name] - one.size, one.end - one.start, one.size];
    const canvas = scene({
      width: last, height: used, high: 460, label: "memory strategy", axis: { x: "nodes, in their order", y: "bytes", flip: (y) => used - y },
      draw: (pen, put, sight, seen, over, own, paint) => {
        own.drawn = 0;
        for (const one of placed) {
          const [x0, y0, wide, high] = box(one);
          if (x0 + wide < seen.left || x0 > seen.right) continue;
          own.drawn += 1;
          const [x, y] = put(x0, y0);
          pen.fillStyle = one === over ? paint.orange : tones[one.kind] || colour(one.kind);
          pen.fillRect(x, y, Math.max(1, wide * sight.kx), Math.max(1, high * sight.ky));
          pen.strokeStyle = paint.paper;
          if (high * sight.ky > 3) pen.strokeRect(x, y, wide * sight.kx, high * sight.ky);
          if (high * sight.ky > 13) { pen.fillStyle = "#1d2733"; pen.fillText(fitted(pen, one.name, wide * sight.kx - 6), x + 4, y + (high * sight.ky) / 2); }
        }
      },
      hit: (x, y) => placed.find((one) => { const [x0, y0, wide, high] = box(one); return x >= x0 && x < x0 + wide && y >= y0 && y < y0 + high; }) || null,
      text: (one) => `${one.name}\n${one.kind}, ${number(one.size)} bytes\nat byte ${number(now.offsets[one.name])}\nnodes ${one.start} to ${one.end - 1}`,
    });
    const share = (way) => (least ? way.size / least : 0);
    return [h("h1", null, `Memory of ${model}`),
      h("p", null, `At least ${number(least)} bytes live at one time.`),
      h("div", { class: "row" }, ways.map((way, k) => h("a", { class: `button${way === now ? " now" : ""}`, href: `#/file/${at}/${k}` }, way.name))),
      legend(Object.entries(tones).filter(([kind]) => placed.some((one) => one.kind === kind)).map(([kind, own]) => [own, kind])), canvas,
      dashboard.table([{ title: "strategy", of: (way) => way.name }, { title: "memory", unit: "bytes", of: (way) => way.size, number: true },
        { title: "memory", unit: "MiB", of: (way) => way.size / 2 ** 20, show: (way) => mib(way.size), number: true },
        { title: "times the lower bound", of: share, show: (way) => share(way).toFixed(3), number: true }], ways, { name: "strategies", noun: "strategies" }).element,
      h("h2", null, "Tensors"),
      dashboard.table([{ title: "tensor", of: (one) => one.name }, { title: "kind", of: (one) => one.kind }, { title: "size", unit: "bytes", of: (one) => one.size, number: true },
        { title: "from", unit: "node", of: (one) => one.start, number: true }, { title: "to before", unit: "node", of: (one) => one.end, number: true }], tensors, { name: "tensors", noun: "tensors", sorted: { column: 2, down: true } }).element];
  }

  function gap({ model, machine, steps, rows, by }) {
    const order = ["bound", ...Object.keys(steps)];
    const most = Math.max(1, ...rows.map((row) => row.cycles));
    return [h("h1", null, `Gap of ${model} on ${machine}`), legend(order.map((step, k) => [shades[k % shades.length], step])),
      ...rows.slice(0, 30).map((row) => h("div", { class: "bar-row" }, h("span", { class: "bar-name" }, row.name),
        h("div", { class: "bar", style: `width:${(60 * row.cycles) / most}%` }, order.map((step, k) => h("div", { style: `width:${(100 * Math.max(0, row[step])) / (row.cycles || 1)}%;background:${shades[k % shades.length]}`, title: `${step}: ${number(row[step])} cycles` }))), h("span", { class: "dim" }, number(row.cycles)))),
      dashboard.table([{ title: by, of: (row) => row.name }, { title: "cycles", of: (row) => row.cycles, number: true },
        ...order.map((step) => ({ title: step, unit: "cycles", of: (row) => row[step], number: true }))], rows, { name: "gap", noun: "rows" }).element];
  }

  function numbers({ checks, function: name }) {
    const result = (row) => (row.failed.length ? row.failed.join("; ") : row.checked ? "ok" : "not checked");
    const failed = checks.filter((row) => row.failed.length).length;
    const shown = (value) => (typeof value === "number" ? +value.toPrecision(6) : "-");
    return [h("h1", null, `What the nodes of ${name} computed`), h("p", null, `${number(checks.length)} results, ${number(failed)} failed.`),
      dashboard.table([{ title: "run", of: (row) => row.run, number: true }, { title: "#", of: (row) => row.number, number: true }, { title: "node", of: (row) => row.node }, { title: "operator", of: (row) => row.op },
        { title: "result", of: (row) => row.value }, { title: "shape", of: (row) => row.shape.join("x") || "scalar" },
        ...["least", "largest", "mean"].map((key) => ({ title: key, of: (row) => row[key] ?? "-", show: (row) => String(shown(row[key])), number: true })),
        { title: "not finite", unit: "elements", of: (row) => row.not_finite, number: true },
        { title: "check", of: result, show: (row) => h("span", { class: row.failed.length ? "more" : "" }, result(row)) }], checks, { name: "numbers", noun: "results" }).element];
  }

  const pages = { sweep, memory: strategies, gap, numbers };

  route((path) => path[0] === "file", async ([, which, ...rest]) => {
    head(null);
    const files = (await load("files")).files;
    const file = files[Number(which)];
    if (!file) throw new Error("there is no such file");
    document.title = file.name;
    return pages[file.kind](await load(`file-${which}`), which, rest).filter((part) => part !== null);
  });

  view("tuning", async (compile, place) => {
    const found = await load(`${place}/tuning`);
    const rows = found.tried;
    const most = Math.max(1, ...rows.map((row) => row.cycles || 0));
    return [h("h1", null, "Options that were tried"), h("p", null, `The search ended: ${found.stopped}. It took ${Number(found.seconds || 0).toFixed(1)} seconds.`),
      dashboard.table([
        { title: "name", of: (row) => row.name, show: (row) => h("span", { class: row.name === found.best ? "strong" : "" }, row.name, row.name === found.best ? " (best)" : "") },
        { title: "cycles", of: (row) => row.cycles ?? "-", number: true, show: (row) => h("span", null, h("span", { class: "meter" }, h("div", { style: `width:${(100 * (row.cycles || 0)) / most}%` })), row.cycles ? number(row.cycles) : "-") },
        { title: "steps", of: (row) => row.steps ?? "-", number: true },
        { title: "DRAM", unit: "long words", of: (row) => row.dram_words ?? "-", number: true },
        { title: "time", unit: "seconds", of: (row) => row.seconds ?? 0, show: (row) => Number(row.seconds || 0).toFixed(2), number: true },
        { title: "options", of: (row) => JSON.stringify(row.options || {}), show: (row) => h("span", { class: "mono" }, Object.entries(row.options || {}).map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(" ")) },
        { title: "result", of: (row) => row.status },
      ], rows, { sorted: { column: 1, down: false }, name: `${compile.name} tuning`, noun: "sets of options" }).element];
  });
})();
