"use strict";
// Data, routes and the parts that all pages share. Texts of models only ever become text nodes.

const dashboard = (() => {
  const store = new Map();
  const asked = new Map();
  const routes = [];

  function take(key, text) {
    store.set(key, JSON.parse(text));
  }

  /** Return the promise of a piece of data: a script that hands it over. */
  function load(key) {
    if (!asked.has(key)) {
      asked.set(key, new Promise((done, failed) => {
        const script = document.createElement("script");
        script.src = `data/${key}.js`;
        script.onload = () => (store.has(key) ? done(store.get(key)) : failed(new Error(`${key} is damaged`)));
        script.onerror = () => failed(new Error(`data/${key}.js cannot be read`));
        document.head.append(script);
      }));
    }
    return asked.get(key);
  }

  /** Make an element. Children that are no elements become text. */
  function h(tag, facts, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(facts || {})) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (name === "class") element.className = value;
      else if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  }

  function svg(tag, facts, ...children) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(facts || {})) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  const number = (value) => (typeof value === "number" ? value.toLocaleString("en-US") : "-");
  const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;

  /** Fill `body` with items, `size` at first and as many again whenever one scrolls to its end. */
  function growing(body, size, text) {
    const more = h("div", { class: "dim" });
    let [items, draw, drawn] = [[], null, 0];
    function grow() {
      const next = items.slice(drawn, drawn + size);
      drawn += next.length;
      body.append(...next.map(draw));
      more.textContent = drawn < items.length ? `${number(items.length - drawn)} ${text}` : "";
    }
    const watch = new IntersectionObserver((seen) => {
      if (!seen.some((one) => one.isIntersecting) || drawn >= items.length) return;
      grow();
      watch.unobserve(more);  // it is told again if the end is still in sight
      watch.observe(more);
    }, { rootMargin: "400px" });
    watch.observe(more);
    const own = {
      elements: [body, more],
      set(all, how) { [items, draw, drawn] = [all, how, 0]; body.replaceChildren(); grow(); return own; },
    };
    return own;
  }

  function tip(text, event) {
    const box = document.getElementById("tip");
    box.hidden = !text;
    if (!text) return;
    box.textContent = text;
    box.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8))}px`;
    box.style.top = `${Math.min(event.clientY + 14, innerHeight - box.offsetHeight - 8)}px`;
  }

  const tabs = [["", "Overview", null], ["nodes", "Nodes", "nodes"], ["graph", "Graph", "graph"], ["memory", "Memory", "memory"],
    ["timeline", "Time line", "timeline"], ["switches", "Switches", "switches"],
    ["roofline", "Roofline", "roofline"], ["tuning", "Tuning", "tuning"], ["passes", "Passes", "passes"], ["log", "Log", "log"]];

  function head(compile, place, now) {
    const top = document.getElementById("top");
    const parts = [h("a", { href: "#/" }, "Compiles")];
    if (compile) {
      parts.push(h("span", { class: "name" }, compile.name));
      for (const [path, title, part] of tabs) {
        if (part && !compile.parts.includes(part)) continue;
        parts.push(h("a", { href: `#/${place}${path ? `/${path}` : ""}`, class: now === path ? "now" : "" }, title));
      }
    }
    top.replaceChildren(...parts, h("span", { class: "space" }), h("span", { class: "dim keys", title: "/ search, arrows move a picture, + and - enlarge it, 0 shows all of it" }, "keys: / ← → + - 0"), themeButton());
    document.documentElement.style.setProperty("--top", `${top.offsetHeight}px`);
  }

  const themes = { auto: "◐", light: "☀", dark: "☾" };

  /** Colours of pages: those of the system, or what the button says. */
  function themed(choice) {
    if (choice === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = choice;
    dispatchEvent(new Event("themed"));
  }

  function chosenTheme() {
    try { return themes[localStorage.theme] ? localStorage.theme : "auto"; } catch { return "auto"; }
  }

  function themeButton() {
    const say = (now) => [`colours: ${now}`, themes[now]];
    const button = h("button", {
      id: "theme", onclick: () => {
        const names = Object.keys(themes);
        const next = names[(names.indexOf(button.dataset.theme) + 1) % names.length];
        try { localStorage.theme = next; } catch { /* a page from disk may have no storage */ }
        set(next);
      },
    });
    function set(now) {
      button.dataset.theme = now;
      [button.title, button.textContent] = say(now);
      button.setAttribute("aria-label", button.title);
      themed(now);
    }
    set(chosenTheme());
    return button;
  }

  /** The colours of the page as a canvas needs them. */
  function colours() {
    const style = getComputedStyle(document.documentElement);
    return Object.fromEntries(["ink", "dim", "line", "soft", "paper", "blue", "orange"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }

  let turn = 0;
  async function show() {
    const own = ++turn;
    const path = location.hash.replace(/^#\/?/, "").split("/").filter(Boolean);
    const page = document.getElementById("page");
    tip("");
    try {
      const compiles = await load("index");
      const [test, draw] = routes.find(([fits]) => fits(path, compiles)) || [];
      if (!test) throw new Error("there is no such page");
      const content = await draw(path, compiles);
      if (own !== turn) return;
      page.replaceChildren(...[content].flat());
      for (const element of page.querySelectorAll("canvas")) element.dispatchEvent(new Event("shown"));
    } catch (problem) {
      page.replaceChildren(h("div", { class: "error" }, String(problem.message || problem)));
    }
    document.body.dataset.shown = location.hash;
  }

  /** Add a page: `fits` says for which paths, `draw` returns its elements. */
  function route(fits, draw) {
    routes.push([fits, draw]);
  }

  /** Add a page of one compile. */
  function view(name, draw) {
    const fits = (path, compiles) => compiles[path[0]] && (path[1] || "") === name;
    route(fits, (path, compiles) => {
      head(compiles[path[0]], path[0], name === "node" ? "nodes" : name);
      document.title = `${compiles[path[0]].name} ${name}`;
      return draw(compiles[path[0]], path[0], path.slice(2));
    });
  }

  const node = (place, row, text) => h("a", { href: `#/${place}/node/${row}` }, text);

  addEventListener("keydown", (event) => {
    if (event.key !== "/" || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const search = document.querySelector("main input[type=search]");
    if (!search) return;
    event.preventDefault();
    search.focus();
  });
  addEventListener("resize", () => document.documentElement.style.setProperty("--top", `${document.getElementById("top").offsetHeight}px`));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new Event("themed")));
  addEventListener("hashchange", show);
  addEventListener("load", show);
  return { take, load, h, svg, number, percent, growing, tip, head, route, view, node, colours };
})();
