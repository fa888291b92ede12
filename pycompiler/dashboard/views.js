"use strict";
// Pictures of a compile: its graph, its memory over time, its time line, its roofline.

(() => {
  const { h, load, number, scene, colour, fitted, view } = dashboard;
  const help = (text) => h("p", { class: "dim" }, `${text} Turn the wheel to enlarge, drag to move, click twice to see all.`);
  const go = (place, row) => { if (row >= 0) location.hash = `#/${place}/node/${row}`; };

  view("graph", async (compile, place, [found]) => {
    const { nodes, edges } = await load(`${place}/graph`);
    const [dx, dy, wide, high] = [190, 66, 172, 34];
    const left = Math.min(...nodes.map((node) => node[2]));
    const boxes = nodes.map(([name, op, x, y, side, row]) => ({ name, op, side, row, x: (x - left) * dx + 20, y: y * dy + 20 }));
    const height = Math.max(...boxes.map((box) => box.y)) + dy;
    const width = Math.max(...boxes.map((box) => box.x)) + dx + 20;
    const inRow = new Map();
    for (const box of boxes) { if (!inRow.has(box.y)) inRow.set(box.y, []); inRow.get(box.y).push(box); }
    let marked = null;
    const draw = (pen, at, sight, seen, chosen) => {
      const small = sight.kx < 0.25;
      pen.strokeStyle = "#9aa5b1";
      pen.lineWidth = small ? 0.5 : 1;
      pen.beginPath();
      for (const [from, to] of edges) {
        const [a, b] = [boxes[from], boxes[to]];
        if (Math.max(a.y, b.y) + high < seen.top || Math.min(a.y, b.y) > seen.bottom) continue;
        const [[x1, y1], [x2, y2]] = [at(a.x + wide / 2, a.y + high), at(b.x + wide / 2, b.y)];
        pen.moveTo(x1, y1);
        const aside = b.y - a.y > dy ? 0.8 * wide * sight.kx : 0;  // around the boxes between
        if (small) pen.lineTo(x2, y2); else pen.bezierCurveTo(x1 + aside, y1 + 14, x2 + aside, y2 - 14, x2, y2);
      }
      pen.stroke();
      for (const box of boxes) {
        if (box.x + wide < seen.left || box.x > seen.right || box.y + high < seen.top || box.y > seen.bottom) continue;
        const [x, y] = at(box.x, box.y);
        pen.fillStyle = box === marked ? "#e8710a" : box.side === "Host" ? "#f6d5d1" : colour(box.op, 84);
        pen.fillRect(x, y, Math.max(1, wide * sight.kx), Math.max(1, high * sight.ky));
        if (small) continue;
        if (box === chosen) { pen.strokeStyle = "#1d2733"; pen.strokeRect(x, y, wide * sight.kx, high * sight.ky); }
        pen.fillStyle = "#1d2733";
        const room = wide * sight.kx - 8;
        pen.fillText(fitted(pen, box.op, room), x + 5, y + high * sight.ky * (sight.ky > 0.7 ? 0.3 : 0.5));
        if (sight.ky > 0.7) { pen.fillStyle = "#66727f"; pen.fillText(fitted(pen, box.name, room), x + 5, y + high * sight.ky * 0.72); }
      }
    };
    draw.uniform = true;
    const canvas = scene({
      width, height, high: 680, draw,
      hit: (x, y) => (inRow.get(Math.floor((y - 20) / dy) * dy + 20) || []).find((box) => x >= box.x && x <= box.x + wide && y >= box.y && y <= box.y + high) || null,
      text: (box) => `${box.op}\n${box.name}\n${box.side === "Host" ? "on the host" : "on the device"}`,
      click: (box) => go(place, box.row),
    });
    const search = h("input", {
      type: "search", id: "find", placeholder: "name of a node, then Enter",
      onchange: () => {
        const wanted = search.value.toLowerCase();
        const start = boxes.indexOf(marked) + 1;
        const order = [...boxes.slice(start), ...boxes.slice(0, start)];
        marked = order.find((box) => box.name.toLowerCase().includes(wanted) || box.op.toLowerCase().includes(wanted)) || null;
        if (marked && wanted) canvas.scene.look(marked.x + wide / 2, marked.y + high / 2, 1);
      },
    });
    if (found) search.value = decodeURIComponent(found);
    canvas.boxes = boxes;
    return [h("div", { class: "row" }, search, h("span", { class: "dim" }, `${number(nodes.length)} nodes, ${number(edges.length)} edges; nodes of the host are red.`)), help("Values flow downwards."), canvas];
  });

  view("memory", async (compile, place, [chosen]) => {
    const { sizes, names, lives } = await load(`${place}/memory`);
    const memories = Object.keys(sizes);
    const now = memories.includes(chosen) ? chosen : memories.find((name) => lives.some((life) => life[1] === name)) || memories[0];
    const own = lives.filter((life) => life[1] === now);
    const used = Math.max(1, ...own.map((life) => life[4] + life[5]));
    const live = new Array(names.length + 1).fill(0);
    for (const [, , start, stop, , words] of own) { live[start] += words; live[stop] -= words; }
    for (let k = 1; k < live.length; k++) live[k] += live[k - 1];
    const peak = live.reduce((best, words, k) => (words > live[best] ? k : best), 0);
    const canvas = scene({
      width: names.length || 1, height: used, high: 560,
      draw: (pen, at, sight, seen, over) => {
        for (const life of own) {
          const [name, , start, stop, addr, words] = life;
          if (stop < seen.left || start > seen.right) continue;
          const [x, y] = at(start, used - addr - words);
          const [wide, high] = [Math.max(1, (stop - start) * sight.kx), Math.max(1, words * sight.ky)];
          pen.fillStyle = colour(name);
          pen.globalAlpha = life === over ? 1 : 0.8;
          pen.fillRect(x, y, wide, high);
          pen.globalAlpha = 1;
          if (wide > 3 && high > 3) { pen.strokeStyle = "white"; pen.strokeRect(x, y, wide, high); }
          if (high > 13) { pen.fillStyle = "#1d2733"; pen.fillText(fitted(pen, name, wide - 6), x + 4, y + high / 2); }
        }
      },
      hit: (x, y) => own.find(([, , start, stop, addr, words]) => x >= start && x < stop && used - y >= addr && used - y < addr + words) || null,
      text: ([name, , start, stop, addr, words]) => `${name}\nlong words ${number(addr)} to ${number(addr + words - 1)} (${number(words)})\nfrom ${names[start]}\nto ${names[stop - 1]}`,
    });
    canvas.lives = own;
    return [h("div", { class: "row" }, memories.map((name) => h("a", { href: `#/${place}/memory/${name}` }, h("button", { class: name === now ? "now" : "" }, name)))),
      h("p", null, `${number(own.length)} values in ${now}, up to long word ${number(used)} of ${number(sizes[now])}${now === "DRAM" ? " of each group" : " of each PE"}. `
        + (own.length ? `Most live at ${names[peak] || "the end"}: ${number(live[peak])} long words.` : "")),
      help("To the right: nodes in their order. Upwards: addresses in long words."), canvas];
  });

  view("timeline", async (compile, place) => {
    const { cycles, tracks, events, names, rows, cut } = await load(`${place}/timeline`);
    const high = 30;
    const canvas = scene({
      width: cycles || 1, height: tracks.length * high, high: Math.max(120, tracks.length * high), fixY: true,
      draw: (pen, at, sight, seen, over, own) => {
        const ends = tracks.map(() => -1);
        for (const event of events) {
          const [track, start, length, text] = event;
          if (start + length < seen.left || start > seen.right) continue;
          const [x, y] = at(start, track * high);
          const wide = length * sight.kx;
          if (x + wide < ends[track] + 0.3) continue;  // it lies in a pixel that is already drawn
          ends[track] = x + wide;
          pen.fillStyle = tracks[track] === "PE: waits" ? "#b3bac2" : colour(tracks[track].startsWith("MV") ? text : names[event[4]], event === over ? 52 : 74);
          pen.fillRect(x, y + 2, Math.max(0.5, wide - (wide > 3 ? 0.5 : 0)), high - 4);
          pen.fillStyle = "#1d2733";
          const from = Math.max(x, 0);
          pen.fillText(fitted(pen, text, x + wide - from - 6), from + 3, y + high / 2);
        }
        pen.fillStyle = "#66727f";
        tracks.forEach((track, k) => { const text = track; const wide = pen.measureText(text).width; pen.fillStyle = "rgba(255,255,255,.85)"; pen.fillRect(own.clientWidth - wide - 12, k * high + 6, wide + 8, 18); pen.fillStyle = "#66727f"; pen.fillText(text, own.clientWidth - wide - 8, k * high + high / 2); });
      },
      hit: (x, y) => events.find(([track, start, length]) => track === Math.floor(y / high) && x >= start && x < start + length) || null,
      text: ([track, start, length, text, name]) => `${tracks[track]}\n${text}\ncycle ${number(start)}, ${number(length)} cycles\n${names[name]}`,
      click: (event) => go(place, rows[event[4]]),
    });
    return [h("p", null, `${number(cycles)} cycles, ${number(events.length)} events.${cut ? " Later events are not shown." : ""}`),
      help("Steps have the colour of their node. Waits of the PEs are grey."), canvas];
  });

  view("roofline", async (compile, place) => {
    const text = await load(`${place}/roofline`);
    const picture = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    if (picture.nodeName !== "svg") throw new Error("the picture is damaged");
    return [h("p", { class: "dim" }, "Each point is a matrix product or a convolution. Level lines are the peak of the MAU in each precision; the slope is what DRAM could bring."), document.importNode(picture, true)];
  });
})();
