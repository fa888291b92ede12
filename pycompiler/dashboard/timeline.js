"use strict";
// What runs when: a row for the nodes, the waits, each slot, the MVs, and the memories of each group.

(() => {
  const { h, load, number, scene, colour, fitted, view, legend } = dashboard;
  const high = 24;
  const kinds = { queue: "#a78bd0", transfer: "#5fb3a8", latency: "#e0796b", dependence: "#b3bac2" };
  const about = {
    queue: "the MV waits for a memory", transfer: "its words move", latency: "they are on the way",
    dependence: "no MV: a step without an instruction",
  };
  const titles = { "PE: steps": "nodes", "PE: waits": "waits", MWRITE: "matrix write", MREAD: "matrix read" };
  const timed = /^(PE: waits|empty steps)$/;

  /** Draw a time line; `cycles` is the width, so that two have one scale. */
  function drawn(found, place, cycles) {
    const { tracks, events, names, rows, bound, clock } = found;
    const labels = tracks.map((track) => titles[track] || track);
    const canvas = scene({
      width: cycles || 1, height: tracks.length * high, high: Math.max(120, tracks.length * high + 42), fixY: true,
      axis: { x: "cycles", clock }, rows: labels, rowHigh: high, label: "time line",
      draw: (pen, at, sight, seen, over, own, paint) => {
        const ends = tracks.map(() => -1);
        own.drawn = 0;
        for (const event of events) {
          const [track, start, length, text] = event;
          if (start + length < seen.left || start > seen.right) continue;
          const [x, y] = at(start, track * high);
          const wide = length * sight.kx;
          if (x + wide < ends[track] + 0.3) continue;  // it lies in a pixel that is already drawn
          ends[track] = x + wide;
          own.drawn += 1;
          const waits = timed.test(tracks[track]);
          const moves = /^(MV|DRAM)/.test(tracks[track]);
          pen.fillStyle = event === over ? paint.orange : waits ? kinds[text] : colour(moves ? text : names[event[4]]);
          pen.fillRect(x, y + 2, Math.max(0.5, wide - (wide > 3 ? 0.5 : 0)), high - 4);
          pen.fillStyle = "#1d2733";
          const from = Math.max(x, at(seen.left, 0)[0]);
          pen.fillText(fitted(pen, text, x + wide - from - 6), from + 3, y + high / 2);
        }
        if (bound && bound < cycles) {
          const [x] = at(bound, 0);
          pen.strokeStyle = paint.orange;
          pen.setLineDash([5, 3]);
          pen.lineWidth = 2;
          pen.beginPath(); pen.moveTo(x, 0); pen.lineTo(x, own.clientHeight); pen.stroke();
          pen.setLineDash([]);
          const said = `bound ${number(bound)}`;
          pen.fillStyle = paint.paper;
          pen.fillRect(x + 3, 3, pen.measureText(said).width + 6, 16);
          pen.fillStyle = paint.orange;
          pen.fillText(said, x + 6, 11);
        }
      },
      hit: (x, y) => events.find(([track, start, length]) => track === Math.floor(y / high) && x >= start && x < start + length) || null,
      text: ([track, start, length, text, name, line]) => `${labels[track]}\n${timed.test(tracks[track]) ? `${text}: ${about[text]}` : text}\nfrom cycle ${number(start)}, ${number(length)} cycles\n${names[name]}, from line ${number(line)} of model.vsm`,
      click: (event) => { if (rows[event[4]] >= 0) location.hash = `#/${place}/node/${rows[event[4]]}/${event[5]}`; },
    });
    canvas.tracks = labels;
    canvas.events = events;
    return canvas;
  }

  const said = (found) => `${number(found.cycles)} cycles, ${number(found.events.length)} events.${found.cut ? " Later events are not shown." : ""}`;
  const key = () => legend(Object.entries(kinds).map(([kind, own]) => [own, `${kind}: ${about[kind]}`]));
  const help = () => h("p", { class: "dim" }, "Steps have the colour of their node, MVs one of their own. Turn the wheel to enlarge, drag to move, click twice to see all, click once for the node, its source and its code.");

  view("timeline", async (compile, place) => {
    const found = await load(`${place}/timeline`);
    return [h("p", null, said(found)), key(), help(), drawn(found, place, found.cycles)];
  });

  /** Two time lines above each other, with one scale; null if one has none. */
  dashboard.timelines = async (pairs) => {
    if (!pairs.every(([own]) => own.parts.includes("timeline"))) return [];
    const found = await Promise.all(pairs.map(([, place]) => load(`${place}/timeline`)));
    const most = Math.max(...found.map((one) => one.cycles));
    const canvases = dashboard.linked(found.map((one, k) => drawn(one, pairs[k][1], most)));
    return [h("h2", null, "Time lines, with one scale"), key(),
      ...canvases.flatMap((canvas, k) => [h("p", null, h("b", null, pairs[k][0].name), ": ", said(found[k])), canvas])];
  };
})();
