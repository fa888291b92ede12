"use strict";
// Tables that sort, filter, and can be saved as CSV; they draw more rows as one scrolls.

(() => {
  const { h, number, growing } = dashboard;

  /** Quote a cell of a CSV file. A text that a spreadsheet would take for a formula gets an apostrophe. */
  function quoted(value) {
    const text = typeof value === "string" && /^[=+@-]./.test(value) ? `'${value}` : String(value ?? "");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  function save(name, text) {
    const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    h("a", { href: url, download: `${name.replace(/[^\w.-]+/g, "_")}.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  /**
   * A column has `title`, `of` (row to value), and may have `unit`, `show` (row to element) and `number`.
   * `facts` may have `sorted`, `name` (of the file), `noun` (what the rows are), `text` (row to what is searched),
   * `search` (attributes of the field).
   */
  dashboard.table = (columns, rows, facts = {}) => {
    const { sorted, name = "table", noun = "rows", search: own = {} } = facts;
    const text = facts.text || ((row) => columns.map((column) => column.of(row)).join(" "));
    const body = growing(h("tbody"), 150, "more rows below");
    let [shown, by] = [rows, sorted || null];
    const sort = (k) => {
      by = by && by.column === k ? { column: k, down: !by.down } : { column: k, down: !!columns[k].number };
      arrange();
    };
    const heads = columns.map((column, k) => {
      const title = h("span", null, column.title);
      const cell = h("th", {
        class: `sorts${column.number ? " number" : ""}`, "data-column": column.title, tabindex: 0, scope: "col",
        onclick: () => sort(k), onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(k); } },
      }, title, column.unit ? h("span", { class: "unit" }, column.unit) : null);
      return { cell, title };
    });
    function arrange() {
      if (by) {
        const { of } = columns[by.column];
        const sign = by.down ? -1 : 1;
        shown = [...shown].sort((a, b) => {
          const [x, y] = [of(a), of(b)];
          const [one, other] = [typeof x === "number", typeof y === "number"];
          if (one !== other) return one ? -1 : 1;  // what has no number stands last
          return sign * (one ? x - y : String(x).localeCompare(String(y)));
        });
      }
      heads.forEach(({ cell, title }, k) => {
        const now = by && by.column === k;
        title.textContent = columns[k].title + (now ? (by.down ? " ↓" : " ↑") : "");
        cell.setAttribute("aria-sort", now ? (by.down ? "descending" : "ascending") : "none");
      });
      body.set(shown, (row) => h("tr", null, columns.map((column) => {
        const value = column.show ? column.show(row) : column.of(row);
        return h("td", { class: column.number ? "number" : "" }, typeof value === "number" ? number(value) : value);
      })));
      count.textContent = shown.length === rows.length ? `${number(rows.length)} ${noun}` : `${number(shown.length)} of ${number(rows.length)} ${noun}`;
    }
    const csv = () => [columns.map((column) => quoted(column.title + (column.unit ? ` (${column.unit})` : ""))),
      ...shown.map((row) => columns.map((column) => quoted(column.of(row))))].map((line) => `${line.join(",")}\r\n`).join("");
    const count = h("span", { class: "dim count" });
    const search = h("input", {
      type: "search", placeholder: "filter", "aria-label": `filter ${noun}`, ...own,
      oninput: () => {
        const parts = search.value.toLowerCase().split(/\s+/).filter(Boolean);
        shown = parts.length ? rows.filter((row) => { const all = text(row).toLowerCase(); return parts.every((part) => all.includes(part)); }) : rows;
        arrange();
      },
    });
    arrange();
    const element = h("div", { class: "sheet" },
      h("div", { class: "row" }, search, count, h("button", { class: "csv", title: "save the rows that are shown", onclick: () => save(name, csv()) }, "CSV")),
      h("div", { class: "grid", tabindex: 0 }, h("table", { class: "wide" }, h("thead", null, h("tr", null, heads.map(({ cell }) => cell))), body.elements[0]), body.elements[1]));
    element.csv = csv;
    return { element, csv, filter(words) { search.value = words; search.dispatchEvent(new Event("input")); } };
  };
})();
