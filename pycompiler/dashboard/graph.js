"use strict";
// The graph: values flow downwards; modules may be folded to one box.

(() => {
  const { h, load, number, scene, colour, fitted, view, legend } = dashboard;
  const [dx, dy, wide, high] = [190, 74, 172, 46];

  /** Return a colour for a share of cycles: pale for few, orange for many. */
  const heat = (share) => `hsl(${45 - 25 * share} ${30 + 60 * share}% ${90 - 32 * share}%)`;

  function boxesOf(nodes) {
    const left = Math.min(...nodes.map((node) => node.x));
    for (const node of nodes) Object.assign(node, { x: (node.x - left) * dx + 20, y: node.y * dy + 20 });
    return nodes;
  }

  view("graph", async (compile, place, [found, foldedAt]) => {
    const { nodes, edges, folds } = await load(`${place}/graph`);
    const plain = () => boxesOf(nodes.map(([name, op, x, y, side, row, cycles, shape, dtype]) => ({
      name, title: op, side, row, cycles, x, y, type: [dtype, shape].filter(Boolean).join(" "), count: 1,
    })));
    const folded = (fold) => boxesOf(fold.nodes.map(([title, own, count, x, y, cycles]) => {
      const node = own >= 0 ? nodes[own] : null;
      return {
        name: node ? node[0] : `module ${title}`, title: node ? node[1] : title, side: node ? node[4] : "Device", row: node ? node[5] : -1, cycles, x, y,
        type: node ? [node[8], node[7]].filter(Boolean).join(" ") : `${number(count)} nodes`, count, module: node ? null : title,
      };
    }));
    const depth = Math.min(Number(foldedAt) || 0, folds.length);
    const boxes = depth ? folded(folds[depth - 1]) : plain();
    const lines = depth ? folds[depth - 1].edges : edges;
    const most = Math.max(1, ...boxes.map((box) => box.cycles));
    const total = Math.max(1, boxes.reduce((sum, box) => sum + box.cycles, 0));
    const height = Math.max(...boxes.map((box) => box.y)) + dy;
    const width = Math.max(...boxes.map((box) => box.x)) + dx + 20;
    const inRow = new Map();
    for (const box of boxes) { if (!inRow.has(box.y)) inRow.set(box.y, []); inRow.get(box.y).push(box); }
    let marked = null;
    const paintBy = h("select", { "aria-label": "colour", onchange: () => canvas.scene.paint() }, h("option", { value: "cycles" }, "cycles"), h("option", { value: "op" }, "operator"));
    const draw = (pen, at, sight, seen, chosen, own, paint) => {
      const small = sight.kx < 0.25;
      pen.strokeStyle = paint.dim;
      pen.lineWidth = small ? 0.3 : 1;
      pen.beginPath();
      for (const [from, to] of lines) {
        const [a, b] = [boxes[from], boxes[to]];
        if (Math.max(a.y, b.y) + high < seen.top || Math.min(a.y, b.y) > seen.bottom) continue;
        const [[x1, y1], [x2, y2]] = [at(a.x + wide / 2, a.y + high), at(b.x + wide / 2, b.y)];
        pen.moveTo(x1, y1);
        const aside = b.y - a.y > dy ? 0.8 * wide * sight.kx : 0;  // around the boxes between
        if (small) pen.lineTo(x2, y2); else pen.bezierCurveTo(x1 + aside, y1 + 14, x2 + aside, y2 - 14, x2, y2);
      }
      pen.stroke();
      own.drawn = 0;
      for (const box of boxes) {
        if (box.x + wide < seen.left || box.x > seen.right || box.y + high < seen.top || box.y > seen.bottom) continue;
        own.drawn += 1;
        const [x, y] = at(box.x, box.y);
        const [w, t] = [Math.max(1, wide * sight.kx), Math.max(1, high * sight.ky)];
        pen.fillStyle = box === marked ? paint.orange : box.side === "Host" ? "#f0b3ab" : paintBy.value === "cycles" ? heat(Math.sqrt(box.cycles / most)) : colour(box.title, 82);
        pen.fillRect(x, y, w, t);
        if (small) continue;
        if (box === chosen || box.module) { pen.strokeStyle = paint.ink; pen.lineWidth = box === chosen ? 2 : 1; pen.strokeRect(x, y, w, t); }
        const room = w - 8;
        const texts = sight.ky > 0.75 ? [box.title, box.module ? "" : box.name, `${box.type}${box.cycles ? `  ${number(box.cycles)} cycles` : ""}`].filter(Boolean) : [box.title];
        texts.forEach((text, k) => {
          pen.fillStyle = k ? "#46525e" : "#1d2733";
          pen.fillText(fitted(pen, text, room), x + 5, y + (t * (k + 0.5)) / texts.length);
        });
      }
    };
    draw.uniform = true;
    const canvas = scene({
      width, height, high: 680, draw, label: "graph",
      hit: (x, y) => (inRow.get(Math.floor((y - 20) / dy) * dy + 20) || []).find((box) => x >= box.x && x <= box.x + wide && y >= box.y && y <= box.y + high) || null,
      text: (box) => `${box.title}\n${box.name}\n${box.type}\n${number(box.cycles)} cycles, ${(100 * box.cycles / total).toFixed(1)} % of all\n${box.side === "Host" ? "on the host" : "on the device"}`,
      click: (box) => {
        if (box.module) location.hash = `#/${place}/graph/${encodeURIComponent(box.module)}/${depth < folds.length ? depth + 1 : 0}`;
        else if (box.row >= 0) location.hash = `#/${place}/node/${box.row}`;
      },
    });
    const next = (wanted) => {
      const start = boxes.indexOf(marked) + 1;
      marked = [...boxes.slice(start), ...boxes.slice(0, start)].find((box) => `${box.name}\n${box.title}`.toLowerCase().includes(wanted)) || null;
      if (marked && wanted) canvas.scene.look(marked.x + wide / 2, marked.y + high / 2, 1); else canvas.scene.paint();
    };
    const search = h("input", {
      type: "search", id: "find", placeholder: "node or operator, then Enter", "aria-label": "find a node", onchange: () => next(search.value.toLowerCase()),
    });
    if (found) {
      search.value = decodeURIComponent(found);
      canvas.addEventListener("shown", () => next(search.value.toLowerCase()));
    }
    const fold = h("select", {
      id: "fold", "aria-label": "fold modules", onchange: () => { location.hash = `#/${place}/graph/${encodeURIComponent(search.value)}/${fold.value}`.replace("graph//", "graph/%20/"); },
    }, h("option", { value: 0 }, "all nodes"), folds.map((one) => h("option", { value: one.depth, selected: one.depth === depth }, `modules, level ${one.depth}`)));
    if (search.value === " ") search.value = "";
    canvas.boxes = boxes;
    return [h("div", { class: "row" }, search, "show", fold, "colour", paintBy,
      h("span", { class: "dim" }, `${number(boxes.length)} boxes for ${number(nodes.length)} nodes, ${number(lines.length)} edges`)),
    legend([[heat(0), "no cycles"], [heat(1), `${number(most)} cycles`], ["#f0b3ab", "on the host"]]),
    h("p", { class: "dim" }, "Values flow downwards. A module has a frame: click it to open it. Turn the wheel to enlarge, drag to move, click twice to see all."), canvas];
  });
})();
