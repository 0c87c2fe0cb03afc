// The reports of evaluations, routing and tuning: listed, and opened in a frame in which nothing runs.

import { cells, h, table, tell, textNodes } from "./dom.js";
import { ask } from "./server.js";

export function reportsView(about) {
  const list = h("div");
  const shown = h("div");

  async function open(name, title) {
    try {
      const { address } = await ask("report", { name });
      shown.replaceChildren(h("h2", {}, textNodes(name)), h("iframe", { src: address, title, sandbox: "allow-popups" }));
      tell("");
    } catch (error) {
      tell(error.message, true);
    }
  }

  async function load() {
    try {
      const { reports } = await ask("reports");
      const rows = reports.map((row) => h("tr", {},
        h("td", {}, h("button", { type: "button", class: "quiet", onclick: () => open(row.name, row.title) }, textNodes(row.name))),
        cells(row.title, new Date(1000 * row.time).toLocaleString(), `${Math.ceil(row.size / 1000)} kB`)));
      const hint = about.reports ? "None found. toolspeak eval writes them; --reports DIR says where they are." : "No folder of reports was given, or this key sees none.";
      list.replaceChildren(rows.length ? table(["report", "about", "written", "size"], rows, { "aria-label": "Reports" }) : h("p", { class: "dim" }, hint));
    } catch (error) {
      tell(error.message, true);
    }
  }

  load();
  return h("div", { class: "form" }, h("section", { class: "panel form" },
    h("div", { class: "row" }, h("h1", { class: "grow" }, "Reports"), h("button", { type: "button", class: "quiet", onclick: load }, "Reload")), list), shown);
}
