// Dialects: which of them reads a reply and how, character by character; and what a chat template tells.

import { cells, field, h, json, legend, pre, select, table, tell, textNodes } from "./dom.js";
import { notes } from "./playground.js";
import { ask } from "./server.js";

const KINDS = ["literal", "name", "id", "arguments", "text", "thought", "syntax"];
const HOLES = {
  literal: "a literal of the dialect", name: "the hole of the tool's name", id: "the hole of the call's id", arguments: "the hole of the arguments",
  text: "text for the user", thought: "the model's thought", syntax: "syntax between holes", space: "white space",
};

export function dialectsView(about) {
  return h("div", { class: "halves" }, reader(about), drafter());
}

function reader(about) {
  const text = h("textarea", { class: "code", rows: 8, spellcheck: "false" });
  text.value = 'I will look.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>';
  const dialect = select([["", "the one that reads it best"], ...about.dialects.map((name) => [name, name])]);
  const tools = h("textarea", { class: "code", rows: 2, spellcheck: "false" });
  const result = h("div", { class: "form", "aria-live": "polite" });

  async function read(event) {
    event?.preventDefault();
    try {
      const offered = tools.value.trim() ? JSON.parse(tools.value) : null;
      const body = { text: text.value, dialect: dialect.value, ...(offered ? { tools: [offered].flat() } : {}) };
      result.replaceChildren(...reading(body, await ask("read", body), (name) => { dialect.value = name; read(); }));
      tell("");
    } catch (error) {
      tell(error.message, true);
    }
  }

  const form = h("form", { class: "form", onsubmit: read }, h("h1", {}, "A reply"),
    field("What a model wrote", text), field("Dialect", dialect),
    h("details", {}, h("summary", {}, "Tools"), field("Tools as JSON", tools, "Without them, a call may have any name.")),
    h("div", { class: "row" }, h("button", {}, "Read")));
  form.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) read(event); });
  return h("section", { class: "panel form" }, form, result);
}

function reading({ text, dialect }, told, choose) {
  const detail = h("p", { role: "status", class: "dim" }, "Point at a character, or move with the arrow keys.");
  const characters = Array.from(text.length ? told.spans : [], ([start, end, kind, call]) => {
    const span = h("span", { "data-kind": kind, "data-start": start }, textNodes(text.slice(start, end)));
    span.addEventListener("mouseenter", () => mark(span));
    span.told = [`characters ${start} to ${end - 1}: ${HOLES[kind]}${call ? `, call ${call}` : ""}`, text.slice(start, end)];
    return span;
  });
  let current = -1;
  function mark(span) {
    characters[current]?.classList.remove("current");
    current = characters.indexOf(span);
    span.classList.add("current");
    detail.replaceChildren(h("strong", {}, span.told[0]), " ", h("span", { class: "code text" }, textNodes(json(span.told[1]))));
  }
  const block = h("pre", { tabindex: "0", "aria-label": "How it is read" }, characters);
  block.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step || !characters.length) return;
    event.preventDefault();
    mark(characters[Math.min(characters.length - 1, Math.max(0, current + step))]);
  });
  const { reply } = told;
  const calls = reply.calls.map((call) => h("tr", {}, cells(call.name, call.id, call.json, call.whole ? "whole" : "not whole: never run")));
  const able = told.readers.filter((row) => row.calls || row.dialect === dialect);
  const others = told.readers.filter((row) => !able.includes(row)).map((row) => row.dialect);
  const readers = able.map((row) => h("tr", { "aria-selected": String(row.dialect === told.dialect) },
    h("td", {}, h("button", { type: "button", class: "quiet", onclick: () => choose(row.dialect) }, row.dialect)),
    cells(String(row.calls), String(row.whole), row.notes.map((note) => note.rule).join(", "))));
  return [
    h("h2", {}, able.length ? `Read as ${told.dialect}` : "No dialect finds a call in it"), legend(KINDS), block, detail,
    calls.length ? table(["call", "id", "arguments", ""], calls) : able.length ? h("p", {}, "No call.") : null,
    reply.text ? h("div", {}, h("h3", {}, "Text"), pre(reply.text, { "aria-label": "Text" })) : null,
    reply.thought ? h("div", {}, h("h3", {}, "Thought"), pre(reply.thought)) : null,
    notes(reply.notes),
    able.length ? h("div", {}, h("h3", {}, "Dialects that read it, the best first"), table(["dialect", "calls", "whole", "notes"], readers)) : null,
    able.length && others.length ? h("details", {}, h("summary", {}, `${others.length} others find no call`), h("p", { class: "dim" }, others.join(", "))) : null,
  ].filter(Boolean);
}

function drafter() {
  const template = h("textarea", { class: "code", rows: 8, spellcheck: "false" });
  const model = h("input", { type: "text" });
  const result = h("div", { class: "form", "aria-live": "polite" });

  async function draft(event) {
    event.preventDefault();
    try {
      const told = await ask("draft", { template: template.value, name: model.value });
      result.replaceChildren(
        h("h2", {}, textNodes(told.dialect)), h("p", {}, "Found ", textNodes(told.origin)),
        ...(told.problem ? [h("p", { class: "bad" }, textNodes(told.problem))] : []),
        h("h3", {}, "A call"), pre(told.call), h("h3", {}, "The dialect as Python"), pre(told.source, { "aria-label": "The dialect as Python" }));
      tell("");
    } catch (error) {
      tell(error.message, true);
    }
  }

  return h("section", { class: "panel form" }, h("form", { class: "form", onsubmit: draft }, h("h1", {}, "A chat template"),
    field("Template (Jinja)", template), field("Name of the model", model, "May be left out."),
    h("div", { class: "row" }, h("button", {}, "Find the dialect"))), result);
}
