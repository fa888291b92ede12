"use strict";
// A canvas that one moves and enlarges, with axes; only what is in sight is drawn.

(() => {
  const { h, tip, colours } = dashboard;

  /** Return round numbers between two numbers, about one for each `wide` of `room` pixels. */
  function ticks(from, to, room, wide) {
    const rough = (to - from) / Math.max(1, room / wide);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = Math.max(1, [1, 2, 5, 10].find((times) => times * power >= rough) * power);
    const found = [];
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(Math.round(at));
    return found;
  }
  dashboard.ticks = ticks;

  const short = (value) => (value >= 1e6 ? `${+(value / 1e6).toPrecision(4)}M` : value.toLocaleString("en-US"));

  /**
   * `draw(pen, at, view, sight, chosen, canvas, paint)` draws what is in sight. `axis` may have `x` and `y` (names with
   * units), `flip` (y to what is written), and `clock` (MHz, for a second line of microseconds). `rows` are names of rows.
   */
  dashboard.scene = ({ width, height, high, draw, hit, text, click, fixY, axis = {}, rows, rowHigh, label = "picture" }) => {
    const canvas = h("canvas", { style: `height:${high || 620}px`, tabindex: "0", role: "img", "aria-label": label });
    const narrow = () => canvas.clientWidth < 700;
    const pad = { left: rows ? 128 : axis.y ? 64 : 0, top: 0, right: 0, bottom: axis.x ? (axis.clock ? 40 : 26) : 0 };
    const view = { x: 0, y: 0, kx: 1, ky: 1 };
    const others = [];
    let [chosen, had] = [null, 0];  // what the pointer is on; the width at the last look
    const wide = () => Math.max(1, canvas.clientWidth - pad.left - pad.right);
    const tall = () => Math.max(1, canvas.clientHeight - pad.top - pad.bottom);

    /** Show all; a drawing of boxes begins with its top, large enough to read. */
    function fit(least) {
      pad.left = rows ? (narrow() ? 96 : 128) : pad.left;
      view.kx = wide() / width;
      view.ky = tall() / height;
      if (!fixY && draw.uniform) view.kx = view.ky = Math.max(Math.min(view.kx, view.ky, 1), least);
      view.x = (width - wide() / view.kx) / 2;
      view.y = draw.uniform ? 0 : (height - tall() / view.ky) / 2;
    }

    function axes(pen, sight, paint) {
      const [right, bottom] = [pad.left + wide(), pad.top + tall()];
      pen.strokeStyle = paint.line;
      pen.fillStyle = paint.dim;
      pen.lineWidth = 1;
      pen.textAlign = "center";
      if (axis.x) {
        const named = Math.max(pen.measureText(axis.x).width, axis.clock ? pen.measureText("microseconds").width : 0) + 40;
        for (const at of ticks(Math.max(0, sight.left), Math.min(width, sight.right), wide(), 110)) {
          const x = pad.left + (at - view.x) * view.kx;
          pen.beginPath(); pen.moveTo(x, bottom); pen.lineTo(x, bottom + 4); pen.stroke();
          if (x < right - named && x > pad.left - 1) {
            pen.fillText(short(at), x, bottom + 13);
            if (axis.clock) pen.fillText(+(at / axis.clock).toPrecision(4), x, bottom + 28);
          }
        }
        pen.textAlign = "right";
        pen.fillText(axis.x, right - 2, bottom + 13);
        if (axis.clock) pen.fillText("microseconds", right - 2, bottom + 28);
      }
      if (axis.y) {
        pen.textAlign = "right";
        const flip = axis.flip || ((value) => value);
        const [from, to] = [flip(Math.min(height, sight.bottom)), flip(Math.max(0, sight.top))].sort((a, b) => a - b);
        for (const at of ticks(Math.max(0, from), to, tall(), 42)) {
          const y = pad.top + (flip(at) - view.y) * view.ky;
          if (y < pad.top + 20) continue;
          pen.beginPath(); pen.moveTo(pad.left - 4, y); pen.lineTo(pad.left, y); pen.stroke();
          pen.fillText(short(at), pad.left - 6, Math.min(y, bottom - 6));
        }
        pen.textAlign = "left";
        pen.fillText(axis.y, 2, pad.top + 8);
      }
      if (rows) {
        pen.textAlign = "right";
        pen.fillStyle = paint.ink;
        rows.forEach((name, k) => pen.fillText(dashboard.fitted(pen, name, pad.left - 8), pad.left - 6, pad.top + ((k + 0.5) * rowHigh - view.y) * view.ky));
      }
      pen.strokeRect(pad.left + 0.5, pad.top + 0.5, wide() - 1, tall() - 1);
      pen.textAlign = "left";
    }

    function paint() {
      const ratio = devicePixelRatio || 1;
      canvas.width = canvas.clientWidth * ratio;
      canvas.height = canvas.clientHeight * ratio;
      const [pen, theme] = [canvas.getContext("2d"), colours()];
      pen.scale(ratio, ratio);
      pen.font = '12px system-ui, "DejaVu Sans", sans-serif';
      pen.textBaseline = "middle";
      const sight = { left: view.x, top: view.y, right: view.x + wide() / view.kx, bottom: view.y + tall() / view.ky };
      const at = (x, y) => [pad.left + (x - view.x) * view.kx, pad.top + (y - view.y) * view.ky];
      pen.save();
      pen.beginPath();
      pen.rect(pad.left, pad.top, wide(), tall());
      pen.clip();
      draw(pen, at, view, sight, chosen, canvas, theme);
      pen.restore();
      axes(pen, sight, theme);
    }

    /** Paint, and show the same part to the right in pictures that follow this one. */
    function moved() {
      paint();
      for (const other of others) other.scene.take(view.x, view.kx);
    }

    function zoomed(x, y, times, both) {
      const least = Math.min(wide() / width, tall() / height) / 4;
      const zoom = (k) => Math.max(least, Math.min(k * times, 1e5));
      const [kx, ky] = [zoom(view.kx), fixY || !both ? view.ky : zoom(view.ky)];
      view.x = x - ((x - view.x) * view.kx) / kx;
      view.y = y - ((y - view.y) * view.ky) / ky;
      [view.kx, view.ky] = [kx, ky];
      moved();
    }

    function world(event) {
      const box = canvas.getBoundingClientRect();
      return [view.x + (event.clientX - box.left - pad.left) / view.kx, view.y + (event.clientY - box.top - pad.top) / view.ky];
    }

    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      zoomed(...world(event), Math.exp(-event.deltaY / 400), !event.shiftKey);
    }, { passive: false });

    canvas.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
      const [cx, cy] = [view.x + wide() / view.kx / 2, view.y + tall() / view.ky / 2];
      if (steps[event.key]) {
        view.x += (steps[event.key][0] * wide()) / view.kx / 8;
        if (!fixY) view.y += (steps[event.key][1] * tall()) / view.ky / 8;
        moved();
      } else if (event.key === "+" || event.key === "=") zoomed(cx, cy, 1.5, true);
      else if (event.key === "-") zoomed(cx, cy, 1 / 1.5, true);
      else if (event.key === "0" || event.key === "Home") { fit(0); moved(); }
      else if (event.key === "Enter" && chosen !== null && click) click(chosen, world(event));
      else return;
      event.preventDefault();
    });

    let held = null;
    canvas.addEventListener("pointerdown", (event) => {
      held = { x: event.clientX, y: event.clientY, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (held) {
        const [dx, dy] = [event.clientX - held.x, event.clientY - held.y];
        if (!held.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
        held = { x: event.clientX, y: event.clientY, moved: true };
        view.x -= dx / view.kx;
        if (!fixY) view.y -= dy / view.ky;
        moved();
        return;
      }
      const before = chosen;
      chosen = hit(...world(event), view);
      tip(chosen === null ? "" : text(chosen), event);
      if (before !== chosen) paint();
    });
    canvas.addEventListener("pointerup", (event) => {
      const dragged = held && held.moved;
      held = null;
      const place = world(event);
      const found = hit(...place, view);
      if (!dragged && click && (found !== null || click.anywhere)) click(found, place);
    });
    canvas.addEventListener("pointerleave", () => tip(""));
    canvas.addEventListener("dblclick", () => { fit(0); moved(); });
    canvas.addEventListener("shown", () => { fit(0.8); had = wide(); paint(); });
    new ResizeObserver(() => {
      if (!canvas.isConnected || !canvas.clientWidth) return;
      if (had && !draw.uniform) view.kx *= wide() / had;  // the same part stays in sight
      had = wide();
      paint();
    }).observe(canvas);
    const themed = () => { if (canvas.isConnected) paint(); else removeEventListener("themed", themed); };
    setTimeout(() => addEventListener("themed", themed));
    canvas.scene = {
      screen: (x, y) => [pad.left + (x - view.x) * view.kx, pad.top + (y - view.y) * view.ky],
      view,
      look(x, y, k) {
        [view.kx, view.ky] = [k, fixY ? view.ky : k];
        view.x = x - wide() / 2 / view.kx;
        if (!fixY) view.y = y - tall() / 2 / view.ky;
        moved();
      },
      take(x, kx) { [view.x, view.kx] = [x, kx]; paint(); },
      reset() { fit(0); moved(); },
      paint,
    };
    canvas.follow = (other) => others.push(other);
    return canvas;
  };

  /** Let pictures show the same part to the right. */
  dashboard.linked = (canvases) => {
    for (const one of canvases) for (const other of canvases) if (one !== other) one.follow(other);
    return canvases;
  };

  /** Return a colour for a text: the same text always gets the same. */
  dashboard.colour = (text, light) => {
    let hash = 7;
    for (const letter of text) hash = (hash * 31 + letter.codePointAt(0)) % 3600;
    return `hsl(${(hash * 137) % 360} 52% ${light || 66}%)`;
  };

  /** Cut a text to a width in pixels. */
  dashboard.fitted = (pen, text, wide) => {
    if (wide < 14) return "";
    const whole = pen.measureText(text).width;
    if (whole <= wide) return text;
    const most = Math.floor((text.length * wide) / whole) - 2;
    return most > 1 ? `${text.slice(0, most)}…` : "";
  };

  /** A row of colours with what they mean. */
  dashboard.legend = (pairs) => h("div", { class: "row legend" }, pairs.map(([colour, name]) => h("span", null, h("span", { class: "key", style: `background:${colour}` }), name)));
})();
