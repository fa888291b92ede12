"use strict";
// A layout as a picture: the tree of units, what each PE holds, and the place of one element.

(() => {
  const { h, svg, number, tip } = dashboard;

  /** Return the coordinates of an element by level, as the compiler computes them. */
  function coordinates(layout, element) {
    const found = {};
    layout.axes.forEach((axis, k) => {
      let rest = element[k];
      for (const [size, level, stride] of [...axis].reverse()) {
        found[level] = (found[level] || 0) + (rest % size) * stride;
        rest = Math.floor(rest / size);
      }
    });
    return found;
  }

  /** Return, for a coordinate of a level, the digit of each subaxis there; null if nothing lies there. */
  function digits(layout, level, place) {
    const own = [];
    layout.axes.forEach((axis, k) => {
      let worth = 1;
      for (const [size, at, stride] of [...axis].reverse()) {
        if (at === level && size > 1) own.push({ axis: k, size, stride, worth });
        worth *= size;
      }
    });
    for (const [size, at, stride] of layout.copies) if (at === level && size > 1) own.push({ axis: -1, size, stride, worth: 0 });
    let rest = place;
    const add = layout.axes.map(() => 0);
    for (const one of own.sort((a, b) => b.stride - a.stride)) {
      const digit = one.stride ? Math.min(Math.floor(rest / one.stride), one.size - 1) : 0;
      rest -= digit * one.stride;
      if (one.axis >= 0) add[one.axis] += digit * one.worth;
    }
    return rest ? null : add;
  }

  /** Return the element that lies at coordinates by level; null if it is padding or nothing. */
  function elementAt(value, place) {
    const sum = value.shape.map(() => 0);
    for (const [level, at] of Object.entries(place)) {
      const add = digits(value.layout, level, at);
      if (!add) return null;
      add.forEach((part, k) => { sum[k] += part; });
    }
    return sum.every((index, k) => index < value.shape[k]) ? sum : null;
  }

  function* places(units) {
    const counts = units.map(([, count]) => count);
    const total = counts.reduce((a, b) => a * b, 1);
    for (let k = 0; k < total; k++) {
      const at = {};
      let rest = k;
      for (let level = units.length - 1; level >= 0; level--) {
        at[units[level][0]] = rest % counts[level];
        rest = Math.floor(rest / counts[level]);
      }
      yield at;
    }
  }

  /** Name a unit as a debug statement does. */
  function unitName(machine, at) {
    const [top, ...below] = machine.units.map(([level]) => at[level] || 0);
    const numbers = [Math.floor(top / machine.l2bs), top % machine.l2bs, ...below];
    return machine.letters.map((letter, k) => letter + numbers[k]).join("");
  }

  const cell = 7;

  /** Return size and places of boxes in boxes: `columns` units side by side on each level. */
  function boxes(units) {
    let [wide, high] = [cell, cell];
    const levels = [...units].reverse().map(([name, count], k) => {
      const columns = Math.ceil(Math.sqrt(k < 2 ? count : 2 * count));
      const gap = [1, 3, 8, 14][k] || 14;
      const label = k < 2 ? 0 : 14;
      const own = { name, columns, dx: wide + gap, dy: high + gap + label, label, wide, high };
      wide = Math.min(columns, count) * own.dx;
      high = Math.ceil(count / columns) * own.dy;
      return own;
    });
    return { levels: levels.reverse(), wide, high };
  }

  function copiesOf(layout, units) {
    const on = layout.copies.filter(([size, level]) => size > 1 && units.some(([name]) => name === level));
    return on.reduce((list, [size, level, stride]) => list.flatMap((at) => Array.from({ length: size }, (_, k) => ({ ...at, [level]: (at[level] || 0) + k * stride }))), [{}]);
  }

  /** Draw a value's layout. `value` has shape, layout, location, addr. */
  function drawn(value, machine) {
    const { units } = machine;
    const { layout } = value;
    const { levels, wide, high } = boxes(units);
    const picture = svg("svg", { class: "units", width: wide + 4, height: high + 4, viewBox: `0 0 ${wide + 4} ${high + 4}` });
    const cells = new Map();
    const key = (at) => units.map(([name]) => at[name] || 0).join(",");
    let holding = 0;
    for (const at of places(units)) {
      let [x, y] = [2, 2];
      levels.forEach((level, k) => {
        const index = at[level.name];
        x += (index % level.columns) * level.dx;
        y += Math.floor(index / level.columns) * level.dy + level.label;
        const first = levels.slice(k + 1).every((below) => at[below.name] === 0);
        if (level.label && first) {
          picture.append(svg("text", { x, y: y - 3, "font-size": 10, class: "dim-fill" }, `${level.name} ${index}`),
            svg("rect", { x: x - 2, y: y - 1, width: level.wide + 1, height: level.high + 1, class: "frame" }));
        }
      });
      const holds = elementAt(value, at) !== null;
      holding += holds;
      const rect = svg("rect", { x, y, width: cell, height: cell, "data-unit": key(at) });
      cells.set(key(at), { rect, at, holds });
      picture.append(rect);
    }
    const facts = h("p", { class: "place" });
    const content = h("div");
    const inputs = value.shape.map((size, k) => h("input", {
      class: "small", type: "number", min: 0, max: size - 1, value: 0, "aria-label": `axis ${k}`, oninput: () => choose(inputs.map((one) => Math.floor(Number(one.value)))),
    }));
    const whole = h("div", { class: "layout" });
    whole.choose = (wanted) => choose(wanted, true);
    let element = value.shape.map(() => 0);
    let shown = {};

    function choose(wanted, told = false) {
      if (!wanted.every((index, k) => Number.isInteger(index) && index >= 0 && index < value.shape[k])) {
        facts.textContent = "There is no such element.";
        return;
      }
      element = wanted;
      inputs.forEach((one, k) => { if (document.activeElement !== one) one.value = element[k]; });
      const at = coordinates(layout, element);
      const others = copiesOf(layout, units).map((copy) => {
        const own = {};
        for (const [name] of units) own[name] = (at[name] || 0) + (copy[name] || 0);
        return own;
      });
      const chosen = new Set(others.map(key));
      for (const [name, { rect, holds }] of cells) rect.setAttribute("fill", chosen.has(name) ? "#e8710a" : holds ? "#8fb8de" : "var(--hollow)");
      const [base, more] = [value.addr || 0, at.Addr || 0];
      const lm = value.location.startsWith("LM");
      const where = lm ? `${value.location} long word ${base + more} (${base} + ${more})` : `after a download: long word ${more} of its copy in LM`;
      facts.textContent = `Element [${element.join(", ")}]: ${where}, word ${at.W || 0} of ${layout.lanes}, in ${unitName(machine, others[0])}`
        + (others.length > 1 ? ` and in ${number(others.length - 1)} more PEs` : "") + (at.Time ? `, time slice ${at.Time}` : "");
      facts.dataset.place = JSON.stringify({ unit: unitName(machine, others[0]), addr: base + more, word: at.W || 0, copies: others.length });
      shown = others[0];
      pe(shown);
      if (!told) whole.dispatchEvent(new CustomEvent("element", { detail: element }));
    }

    function pe(at) {
      shown = at;
      const most = Math.min(layout.words, 256);
      const lanes = Array.from({ length: layout.lanes }, (_, k) => k);
      const rows = Array.from({ length: most }, (_, addr) => h("tr", null, h("th", null, String((value.location.startsWith("LM") ? value.addr || 0 : 0) + addr)), lanes.map((lane) => {
        const found = elementAt(value, { ...at, Addr: addr, W: lane });
        const same = found && found.every((index, k) => index === element[k]);
        return h("td", { class: found ? (same ? "chosen" : "") : "pad", onclick: () => found && choose(found) }, found ? `[${found.join(", ")}]` : "·");
      })));
      content.replaceChildren(h("h2", null, `What ${unitName(machine, at)} holds`), h("table", { class: "cells mono" }, rows),
        layout.words > most ? h("p", { class: "dim" }, `${number(layout.words - most)} more long words`) : "");
    }

    picture.addEventListener("click", (event) => {
      const found = cells.get(event.target.dataset && event.target.dataset.unit);
      if (found) pe(found.at);
    });
    picture.addEventListener("pointermove", (event) => {
      const found = cells.get(event.target.dataset && event.target.dataset.unit);
      tip(found ? `${unitName(machine, found.at)}\n${found.holds ? `from element [${elementAt(value, found.at).join(", ")}] on` : "holds no element"}` : "", event);
    });
    picture.addEventListener("pointerleave", () => tip(""));
    choose(element, true);
    const legend = (colour, text) => h("span", null, h("span", { class: "key", style: `background:${colour}` }), text);
    whole.append(
      h("p", { class: "mono" }, value.text),
      h("div", { class: "row" }, "Element", inputs.length ? inputs : "(a scalar)",
        legend("#e8710a", "holds it"), legend("#8fb8de", `${number(holding)} PEs hold elements`), legend("var(--hollow)", "nothing, or padding")),
      facts, h("div", { class: "split" }, h("div", { class: "wider" }, picture), content));
    return whole;
  }

  Object.assign(dashboard, { drawLayout: drawn, coordinates, elementAt, unitName });
})();
