// Elements and texts. A text from outside becomes text nodes, never HTML; what cannot be seen in it is shown.

const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d159}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

/** An element: h("p", {class: "dim", onclick: f}, "text", otherElement). */
export function h(name, props = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "value") made.value = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** The nodes of a text of others: control characters, and those that reverse or hide text, can be seen. */
export function textNodes(text) {
  const nodes = [];
  let end = 0;
  for (const found of text.matchAll(UNSEEN)) {
    if (found.index > end) nodes.push(document.createTextNode(text.slice(end, found.index)));
    nodes.push(h("span", { class: "mark" }, code(found[0])));
    end = found.index + found[0].length;
  }
  if (end < text.length) nodes.push(document.createTextNode(text.slice(end)));
  return nodes;
}

function code(character) {
  return "U+" + character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
}

/** A block that holds a text as it is written. */
export function pre(text, props = {}) {
  return h("pre", { tabindex: "0", ...props }, textNodes(text));
}

/** A text in parts, each with its kind. */
export function parts(rows, props = {}) {
  return h("pre", { tabindex: "0", ...props }, rows.map(([kind, text]) => h("span", { "data-kind": kind, title: kind }, textNodes(text))));
}

export function legend(kinds) {
  return h("ul", { class: "legend", "aria-label": "Colors" }, kinds.map((kind) => h("li", { "data-kind": kind }, kind)));
}

export function field(label, control, hint) {
  const id = `f${++field.count}`;
  control.id = id;
  return h("div", {}, h("label", { for: id }, label), control, hint ? h("p", { class: "dim" }, hint) : null);
}
field.count = 0;

export function checkbox(label, props = {}) {
  const box = h("input", { type: "checkbox", ...props });
  return { box, element: h("label", { class: "inline" }, box, label) };
}

export function select(options, props = {}) {
  return h("select", props, options.map(([value, label]) => h("option", { value }, label)));
}

export function table(titles, rows, props = {}) {
  const head = h("tr", {}, titles.map((title) => h("th", { scope: "col" }, title)));
  return h("div", { class: "wide" }, h("table", props, h("thead", {}, head), h("tbody", {}, rows)));
}

export function cells(...values) {
  return values.map((value) => h("td", {}, typeof value === "string" ? textNodes(value) : value));
}

export function json(value, indent = 2) {
  return JSON.stringify(value, null, indent);
}

/** Tells something to whoever looks or listens. */
export function tell(text, bad = false) {
  const place = document.getElementById("status");
  place.className = bad ? "bad" : "";
  place.textContent = text;
}
