"use strict";
// What lies in each memory: addresses over time, the sum of all, and one instant.

(() => {
  const { h, load, number, scene, colour, fitted, view } = dashboard;
  const each = { DRAM: " of each group", L2BM: " of each L2B" };

  /** Return the places at which the words that live change, and their number from there on. */
  function totals(lives) {
    const changes = new Map();
    for (const [, , start, stop, , words] of lives) {
      changes.set(start, (changes.get(start) || 0) + words);
      changes.set(stop, (changes.get(stop) || 0) - words);
    }
    let sum = 0;
    return [...changes.keys()].sort((a, b) => a - b).map((at) => { sum += changes.get(at); return [at, sum]; });
  }

  view("memory", async (compile, place, [chosen]) => {
    const { sizes, names, lives, cycles, rows } = await load(`${place}/memory`);
    const memories = Object.keys(sizes);
    const now = memories.includes(chosen) ? chosen : memories.find((name) => lives.some((life) => life[1] === name)) || memories[0];
    const own = lives.filter((life) => life[1] === now);
    const timed = now === "L2BM";  // its times are cycles, those of the others are nodes
    const width = (timed ? cycles : names.length) || 1;
    const used = Math.max(1, ...own.map((life) => life[4] + life[5]));
    const curve = totals(own);
    const peak = curve.reduce((best, one) => (one[1] > best[1] ? one : best), [0, 0]);
    const when = (time) => (timed ? `cycle ${number(time)}` : names[Math.min(time, names.length - 1)] || "the end");
    const axis = timed ? "cycles" : "nodes, in their order";
    const about = ([name, , start, stop, addr, words]) => `${name}\nlong words ${number(addr)} to ${number(addr + words - 1)} (${number(words)})\nfrom ${when(start)}\nto ${when(timed ? stop : stop - 1)}`;
    const instant = h("div", { id: "instant" });
    let marker = null;

    function look(time) {
      marker = Math.max(0, Math.min(Math.floor(time), width - 1));
      const there = own.filter(([, , start, stop]) => marker >= start && marker < stop).sort((a, b) => a[4] - b[4]);
      const sum = there.reduce((total, life) => total + life[5], 0);
      const bar = h("div", { class: "words" }, there.map((life) => h("div", {
        style: `left:${(100 * life[4]) / used}%;width:${Math.max(0.1, (100 * life[5]) / used)}%;background:${colour(life[0])}`, title: about(life),
      }, life[0])));
      const made = dashboard.table([
        { title: "value", of: (life) => life[0] },
        { title: "address", unit: "long word", of: (life) => life[4], number: true },
        { title: "size", unit: "long words", of: (life) => life[5], number: true },
        { title: "share", unit: `of ${now}`, of: (life) => life[5] / sizes[now], show: (life) => dashboard.percent(life[5] / sizes[now]), number: true },
        { title: "from", of: (life) => life[2], show: (life) => when(life[2]) },
        { title: "to", of: (life) => life[3], show: (life) => when(timed ? life[3] : life[3] - 1) },
      ], there, { name: `${now} at ${marker}`, noun: "values" });
      instant.replaceChildren(h("h2", null, `${now} at ${when(marker)}`), h("p", null, `${number(there.length)} values, ${number(sum)} long words. The bar has addresses 0 to ${number(used - 1)}.`), bar, made.element);
      canvases.forEach((canvas) => canvas.scene.paint());
    }

    function mark(pen, at, canvas, paint) {
      if (marker === null) return;
      const [x] = at(marker + (timed ? 0 : 0.5), 0);
      pen.strokeStyle = paint.orange;
      pen.lineWidth = 1.5;
      pen.beginPath(); pen.moveTo(x, 0); pen.lineTo(x, canvas.clientHeight); pen.stroke();
    }
    const click = (_, [x]) => look(x);
    click.anywhere = true;

    const map = scene({
      width, height: used, high: 460, click, label: `${now}: addresses over time`,
      axis: { x: axis, y: "long words", flip: (y) => used - y },
      draw: (pen, at, sight, seen, over, canvas, paint) => {
        canvas.drawn = 0;
        for (const life of own) {
          const [name, , start, stop, addr, words] = life;
          if (stop < seen.left || start > seen.right) continue;
          canvas.drawn += 1;
          const [x, y] = at(start, used - addr - words);
          const [wide, high] = [Math.max(1, (stop - start) * sight.kx), Math.max(1, words * sight.ky)];
          pen.fillStyle = life === over ? paint.orange : colour(name);
          pen.fillRect(x, y, wide, high);
          if (wide > 3 && high > 3) { pen.strokeStyle = paint.paper; pen.lineWidth = 1; pen.strokeRect(x, y, wide, high); }
          if (high > 13) { pen.fillStyle = "#1d2733"; const from = Math.max(x, 64); pen.fillText(fitted(pen, name, x + wide - from - 6), from + 4, y + high / 2); }
        }
        mark(pen, at, canvas, paint);
      },
      hit: (x, y) => own.find(([, , start, stop, addr, words]) => x >= start && x < stop && used - y >= addr && used - y < addr + words) || null,
      text: about,
    });
    const ceiling = Math.max(1, peak[1]) * 1.15;
    const sum = scene({
      width, height: ceiling, high: 130, fixY: true, click, label: `${now}: words that live`,
      axis: { y: "live words", flip: (y) => ceiling - y },
      draw: (pen, at, sight, seen, over, canvas, paint) => {
        pen.fillStyle = paint.blue;
        pen.beginPath();
        pen.moveTo(...at(0, ceiling));
        let last = 0;
        for (const [time, words] of curve) { pen.lineTo(...at(time, ceiling - last)); pen.lineTo(...at(time, ceiling - words)); last = words; }
        pen.lineTo(...at(width, ceiling - last));
        pen.lineTo(...at(width, ceiling));
        pen.globalAlpha = 0.55;
        pen.fill();
        pen.globalAlpha = 1;
        const [x, y] = at(peak[0], ceiling - peak[1]);
        pen.fillStyle = paint.orange;
        pen.beginPath(); pen.arc(x, y, 4, 0, 7); pen.fill();
        const said = `peak ${number(peak[1])}`;
        const room = pen.measureText(said).width;
        pen.fillText(said, Math.min(x + 8, canvas.clientWidth - room - 6), Math.max(y, 9));
        mark(pen, at, canvas, paint);
      },
      hit: () => null, text: () => "",
    });
    const canvases = dashboard.linked([sum, map]);
    map.lives = own;
    const field = h("input", { type: "number", class: "small", min: 0, max: width - 1, value: peak[0], "aria-label": "instant", id: "at", onchange: () => look(Number(field.value)) });
    if (own.length) setTimeout(() => look(peak[0]));
    return [h("div", { class: "row" }, memories.map((name) => h("a", { href: `#/${place}/memory/${name}`, class: `button${name === now ? " now" : ""}` }, name)),
      timed ? "cycle" : "node number", field),
    h("p", null, `${number(own.length)} values in ${now}, up to long word ${number(used)} of ${number(sizes[now])}${each[now] || " of each PE"}. `
      + (own.length ? `Most live at ${when(peak[0])}: ${number(peak[1])} long words.` : "")),
    h("p", { class: "dim" }, `${timed ? "What MVs bring to L2BM, and take from there. " : ""}Click for one instant. Turn the wheel to enlarge, drag to move, click twice to see all.`),
    sum, map, instant];
  });
})();
