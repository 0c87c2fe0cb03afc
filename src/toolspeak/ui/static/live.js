// The requests that pass through the gateway, as they happen, and all that is kept of one.

import { cells, h, pre, tell, textNodes } from "./dom.js";
import { howLikely, notes, prompt } from "./playground.js";
import { ask } from "./server.js";

const PAUSE = 1000;
const TITLES = ["", "time", "path", "model", "status", "seconds", "tokens", "notes"];
const MORE = new Set(["path", "tokens", "notes"]);

export function liveView(about) {
  if (!about.live) {
    return h("section", { class: "panel" }, h("h1", {}, "Live"), h("p", {}, "No requests are recorded here. In the gateway's configuration, live = 200 in [ui] keeps the last 200."));
  }
  return new Live().element;
}

class Live {
  constructor() {
    this.version = 0;
    this.lines = new Map();
    this.body = h("tbody");
    this.detail = h("section", { class: "panel form", "aria-label": "Request", hidden: true });
    this.none = h("p", { class: "dim" }, "Nothing yet. What clients ask at /v1 shows up here.");
    const head = h("tr", {}, TITLES.map((title) => h("th", { scope: "col", class: more(title) }, title)));
    const table = h("div", { class: "wide" }, h("table", { "aria-label": "Requests" }, h("thead", {}, head), this.body));
    this.element = h("div", { class: "form" }, h("section", { class: "panel form" }, h("h1", {}, "Live"), this.none, table), this.detail);
    this.look();
  }

  /** Asks what has changed, again and again while this view is on the page. */
  async look() {
    if (this.element.isConnected && !document.hidden) {
      try {
        const told = await ask(`live?after=${this.version}`);
        if (told.version < this.version) this.lines.clear();
        this.version = told.version;
        for (const row of told.requests) this.show(row);
        if (this.failed) tell("");
        this.failed = false;
      } catch (error) {
        this.failed = true;
        tell(error.message, true);
      }
    }
    setTimeout(() => this.look(), PAUSE);
  }

  show(row) {
    this.none.hidden = true;
    const before = this.lines.get(row.number);
    const open = h("button", { type: "button", class: "quiet", onclick: () => this.open(row.number) }, `#${row.number}`);
    const status = row.done ? h("span", { class: row.status < 400 ? "good" : "bad" }, `${row.status}${row.code ? ` ${row.code}` : ""}`) : "…";
    const tokens = row.done ? `${row.tokens_in} + ${row.tokens_out}` : "";
    const line = h("tr", { "aria-selected": String(this.number === row.number) }, cells(open, new Date(1000 * row.time).toLocaleTimeString(), row.path, row.model || "", status, row.seconds.toFixed(2), tokens, String(row.notes)));
    [...line.cells].forEach((cell, at) => cell.classList.toggle("more", Boolean(more(TITLES[at]))));
    this.lines.set(row.number, line);
    if (before?.isConnected) before.replaceWith(line);
    else this.body.prepend(line);
    while (this.body.childElementCount > 500) this.body.lastElementChild.remove();
    if (this.number === row.number && row.done) this.open(row.number);
  }

  async open(number) {
    try {
      const row = await ask(`request?number=${number}`);
      this.lines.get(this.number)?.setAttribute("aria-selected", "false");
      this.number = number;
      this.lines.get(number)?.setAttribute("aria-selected", "true");
      this.detail.hidden = false;
      this.detail.replaceChildren(...details(row));
      tell("");
    } catch (error) {
      tell(error.message, true);
    }
  }
}

/** The class of a column that a phone has no room for. */
function more(title) {
  return MORE.has(title) ? "more" : null;
}

function details(row) {
  const save = h("button", { type: "button", class: "quiet", disabled: !row.case, onclick: () => download(`live-${row.number}.jsonl`, `${row.case}\n`) }, "Save as case");
  const repairs = Object.entries(row.repairs || {}).map(([rule, times]) => `${rule} ×${times}`);
  const tile = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, textNodes(value)));
  const seconds = (value) => (value === null || value === undefined ? "–" : `${value.toFixed(3)} s`);
  return [
    h("h2", {}, `Request ${row.number} `, h("span", { class: "dim code" }, textNodes(`${row.path} ${row.id}`))),
    h("p", {}, textNodes(row.strategy || "The request was invalid, or no model was asked.")),
    h("dl", { class: "tiles" }, tile("asked", `${row.asks.length}×`), tile("asked again", String(row.reasks ?? 0)), tile("sent again", String(row.retries ?? 0)),
      tile("waited", seconds(row.waited)), tile("first", seconds(row.first)), tile("all", seconds(row.seconds)), tile("tokens", `${row.tokens_in ?? "–"} + ${row.tokens_out ?? "–"}`), tile("repairs", repairs.join(", ") || "none")),
    h("div", { class: "row" }, save, row.case ? null : h("span", { class: "dim" }, "A case needs tools and a whole reply.")),
    h("details", {}, h("summary", {}, "What the client sent"), pre(pretty(row.body))),
    h("details", { open: true }, h("summary", {}, "Prompt as sent"), row.asks.map((one, at) => h("div", { class: "form" }, at ? h("h3", {}, `Question ${at + 1} to the model`) : null, one.row === "score" ? h("p", { class: "dim" }, howLikely(one.size)) : prompt(one)))),
    h("div", { class: "halves" },
      h("div", {}, h("h3", {}, "What the model wrote"), pre(row.raw, { "aria-label": "What the model wrote" })),
      h("div", {}, h("h3", {}, "What the client got"), pre(pretty(row.sent), { "aria-label": "What the client got" }))),
    row.notes.length ? h("div", {}, h("h3", {}, "Notes"), notes(row.notes)) : null,
  ].filter(Boolean);
}

/** JSON over several lines; anything else as it is. */
function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function download(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = h("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), PAUSE);
}
