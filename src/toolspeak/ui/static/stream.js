// Shows what streams without ever holding the page up: what comes is put on the page once a frame, and only the last rows
// of a long stream stay in it.

import { h, textNodes } from "./dom.js";

const MOST_ROWS = 300;
const MOST_TEXT = 200000;
const DELTAS = { TextDelta: "text", ThoughtDelta: "text", ArgumentsDelta: "json" };
const waiting = new Set();

function soon(one) {
  if (!waiting.size) requestAnimationFrame(() => {
    const all = [...waiting];
    waiting.clear();
    for (const each of all) each.draw();
  });
  waiting.add(one);
}

/** A text that grows. */
export class GrowingText {
  constructor(label) {
    this.element = h("pre", { tabindex: "0", "aria-label": label });
    this.size = 0;
    this.fresh = "";
  }

  add(text) {
    this.fresh += text;
    soon(this);
  }

  draw() {
    const room = Math.max(0, MOST_TEXT - this.size);
    const text = this.fresh.slice(0, room);
    if (text) {
      const atEnd = this.element.scrollTop + this.element.clientHeight >= this.element.scrollHeight - 8;
      const [first, ...others] = textNodes(text);
      const last = this.element.lastChild;
      if (last && last.nodeType === 3 && first.nodeType === 3) last.appendData(first.data);
      else this.element.append(first);
      this.element.append(...others);
      if (atEnd) this.element.scrollTop = this.element.scrollHeight;
    }
    if (this.fresh.length > room && this.size <= MOST_TEXT) this.element.append(h("span", { class: "mark" }, "… more is not shown"));
    this.size += this.fresh.length;
    this.fresh = "";
  }
}

/** A list of events, of which the last ones are shown. Deltas of one kind that follow each other are one row. */
export class EventList {
  constructor() {
    this.list = h("ol", { class: "events", tabindex: "0", "aria-label": "Events" });
    this.count = h("span", { class: "dim" });
    this.total = 0;
    this.hidden = 0;
    this.fresh = [];
    this.last = null;
  }

  add(at, name, text) {
    this.total += 1;
    const last = this.fresh[this.fresh.length - 1];
    if (name in DELTAS && last && last.name === name) {
      last.text += text;
      last.times += 1;
    } else {
      this.fresh.push({ at, name, text, times: 1 });
    }
    soon(this);
  }

  event(row) {
    const { row: _, event, at, ...fields } = row;
    this.add(at, event, event in DELTAS ? row[DELTAS[event]] : JSON.stringify(fields));
  }

  draw() {
    const atEnd = this.list.scrollTop + this.list.clientHeight >= this.list.scrollHeight - 8;
    if (this.fresh.length > MOST_ROWS) this.hidden += this.fresh.splice(0, this.fresh.length - MOST_ROWS).length;
    for (const row of this.fresh) this._show(row);
    this.fresh = [];
    while (this.list.childElementCount > MOST_ROWS) {
      this.list.firstElementChild.remove();
      this.hidden += 1;
    }
    const rest = this.hidden ? `, the last ${MOST_ROWS} rows shown` : "";
    this.count.textContent = ` ${this.total.toLocaleString("en")}${rest}`;
    if (atEnd) this.list.scrollTop = this.list.scrollHeight;
  }

  _show(row) {
    const last = this.last;
    if (last && last.name === row.name && row.name in DELTAS) {
      last.times += row.times;
      last.label.textContent = `${row.name} ×${last.times}`;
      if (last.size < 2000) {
        last.place.append(...textNodes(row.text.slice(0, 2000)));
        last.size += row.text.length;
      }
      return;
    }
    const label = h("span", {}, row.times > 1 ? `${row.name} ×${row.times}` : row.name);
    const place = h("span", { class: "text code" }, textNodes(row.text.slice(0, 2000)));
    this.list.append(h("li", {}, h("span", { class: "dim" }, `${Math.round(row.at)} ms`), label, place));
    this.last = { name: row.name, times: row.times, label, place, size: row.text.length };
  }
}
