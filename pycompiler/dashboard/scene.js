"use strict";
// A canvas that one moves and enlarges; only what is in sight is drawn.

dashboard.scene = ({ width, height, high, draw, hit, text, click, fixY }) => {
  const canvas = dashboard.h("canvas", { style: `height:${high || 620}px`, tabindex: "0" });
  const view = { x: 0, y: 0, kx: 1, ky: 1 };
  let chosen = null;

  /** Show all; a drawing of boxes begins with its top, large enough to read. */
  function fit(least) {
    view.kx = canvas.clientWidth / width;
    view.ky = canvas.clientHeight / height;
    if (!fixY && draw.uniform) view.kx = view.ky = Math.max(Math.min(view.kx, view.ky, 1), least);
    view.x = (width - canvas.clientWidth / view.kx) / 2;
    view.y = draw.uniform ? 0 : (height - canvas.clientHeight / view.ky) / 2;
  }

  function paint() {
    const ratio = devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = '12px system-ui, "DejaVu Sans", sans-serif';
    pen.textBaseline = "middle";
    const sight = {
      left: view.x, top: view.y,
      right: view.x + canvas.clientWidth / view.kx, bottom: view.y + canvas.clientHeight / view.ky,
    };
    const at = (x, y) => [(x - view.x) * view.kx, (y - view.y) * view.ky];
    draw(pen, at, view, sight, chosen, canvas);
  }

  function world(event) {
    const box = canvas.getBoundingClientRect();
    return [view.x + (event.clientX - box.left) / view.kx, view.y + (event.clientY - box.top) / view.ky];
  }

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const [x, y] = world(event);
    const times = Math.exp(-event.deltaY / 400);
    const least = Math.min(canvas.clientWidth / width, canvas.clientHeight / height) / 4;
    const zoom = (k) => Math.max(least, Math.min(k * times, 1e5));
    const [kx, ky] = [zoom(view.kx), fixY || event.shiftKey ? view.ky : zoom(view.ky)];
    view.x = x - ((x - view.x) * view.kx) / kx;
    view.y = y - ((y - view.y) * view.ky) / ky;
    [view.kx, view.ky] = [kx, ky];
    paint();
  }, { passive: false });

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
      paint();
      return;
    }
    const before = chosen;
    chosen = hit(...world(event), view);
    dashboard.tip(chosen === null ? "" : text(chosen), event);
    if (before !== chosen) paint();
  });
  canvas.addEventListener("pointerup", (event) => {
    const moved = held && held.moved;
    held = null;
    const found = hit(...world(event), view);
    if (!moved && found !== null && click) click(found);
  });
  canvas.addEventListener("pointerleave", () => dashboard.tip(""));
  canvas.addEventListener("dblclick", () => { fit(0); paint(); });
  canvas.addEventListener("shown", () => { fit(0.5); paint(); });
  new ResizeObserver(() => { if (canvas.isConnected && canvas.clientWidth) paint(); }).observe(canvas);
  canvas.scene = {
    screen: (x, y) => [(x - view.x) * view.kx, (y - view.y) * view.ky],
    look(x, y, k) {
      [view.kx, view.ky] = [k, fixY ? view.ky : k];
      view.x = x - canvas.clientWidth / 2 / view.kx;
      if (!fixY) view.y = y - canvas.clientHeight / 2 / view.ky;
      paint();
    },
    reset() { fit(0); paint(); },
  };
  return canvas;
};

/** Return a colour for a text: the same text always gets the same. */
dashboard.colour = (text, light) => {
  let hash = 7;
  for (const letter of text) hash = (hash * 31 + letter.codePointAt(0)) % 3600;
  return `hsl(${(hash * 137) % 360} 52% ${light || 62}%)`;
};

/** Cut a text to a width in pixels. */
dashboard.fitted = (pen, text, wide) => {
  if (wide < 14) return "";
  const whole = pen.measureText(text).width;
  if (whole <= wide) return text;
  const most = Math.floor((text.length * wide) / whole) - 2;
  return most > 1 ? `${text.slice(0, most)}…` : "";
};
