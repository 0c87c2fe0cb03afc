// The playground: a question to a model or two, and what becomes of it, turn by turn.

import { checkbox, field, h, json, legend, parts, pre, select, table, cells, tell, textNodes } from "./dom.js";
import { pendingNodes } from "./pending.js";
import { ask, rows } from "./server.js";
import { EventList, GrowingText } from "./stream.js";

const KINDS = ["system", "tools", "user", "assistant", "tool", "control"];

export function playgroundView(about) {
  const choices = [new Choice(about, "Model"), new Choice(about, "Second model")];
  const beside = checkbox("Compare with a second model");
  const system = h("textarea", { rows: 2 });
  const question = h("textarea", { rows: 4 });
  question.value = "What is the weather in Rome?";
  const tools = new ToolPicker(about);
  const temperature = h("input", { type: "number", min: 0, max: 2, step: 0.1 });
  const tokens = h("input", { type: "number", min: 1, step: 1 });
  const second = h("div", { hidden: true }, choices[1].element);
  const lanes = h("div", { class: "halves" });
  const button = h("button", {}, "Ask");
  const stop = h("button", { type: "button", class: "quiet", disabled: true }, "Stop");
  let asked = [];

  async function begin(event) {
    event?.preventDefault();
    let settings;
    try {
      settings = { ...tools.value(), ...number("temperature", temperature), ...number("max_tokens", tokens) };
    } catch (error) {
      tell(error.message, true);
      return;
    }
    for (const lane of asked) lane.stop();
    const messages = [...(system.value ? [{ role: "system", content: system.value }] : []), { role: "user", content: question.value }];
    asked = (beside.box.checked ? choices : choices.slice(0, 1)).map((choice) => new Lane(choice.value(), choice.label(), messages, settings, tools));
    lanes.replaceChildren(...asked.map((lane) => lane.element));
    button.disabled = true;
    stop.disabled = false;
    await Promise.all(asked.map((lane) => lane.turn()));
    button.disabled = false;
    stop.disabled = true;
  }

  beside.box.addEventListener("change", () => { second.hidden = !beside.box.checked; });
  stop.addEventListener("click", () => asked.forEach((lane) => lane.stop()));
  const form = h("form", { class: "panel form", onsubmit: begin },
    h("h1", {}, "Playground"),
    choices[0].element, beside.element, second,
    tools.element,
    field("System prompt", system),
    field("Question", question, "Ctrl+Enter asks."),
    h("details", {}, h("summary", {}, "Settings"), h("div", { class: "form" }, field("Temperature", temperature), field("Tokens at most", tokens))),
    h("div", { class: "row" }, button, stop));
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !button.disabled) begin(event);
  });
  return h("div", { class: "columns" }, form, lanes);
}

function number(name, input) {
  return input.value === "" ? {} : { [name]: Number(input.value) };
}

/** A model, and the dialect that it is asked in. */
class Choice {
  constructor(about, title) {
    this.model = select(about.models.map((one) => [one.name, one.name]));
    this.dialect = select([["", "automatic"], ...about.dialects.map((name) => [name, name])]);
    const hint = h("p", { class: "dim" });
    const tellHow = () => { hint.replaceChildren(...textNodes(this.dialect.value ? "" : about.models.find((one) => one.name === this.model.value)?.asked || "")); };
    this.model.addEventListener("change", tellHow);
    this.dialect.addEventListener("change", tellHow);
    tellHow();
    this.element = h("div", { class: "form" }, field(title, this.model), field(`Dialect${title === "Model" ? "" : " of the second"}`, this.dialect), hint);
  }

  value() {
    return { model: this.model.value, dialect: this.dialect.value };
  }

  label() {
    return this.dialect.value ? `${this.model.value} in ${this.dialect.value}` : this.model.value;
  }
}

/** The tools that are offered: those of the command line that are ticked, and those that are pasted. */
class ToolPicker {
  constructor(about) {
    this.known = new Map(about.tools.map((tool) => [tool.name, tool]));
    this.boxes = about.tools.map((tool) => [tool.name, checkbox(tool.name, { checked: true, title: tool.description })]);
    this.pasted = h("textarea", { class: "code", rows: 4, spellcheck: "false", placeholder: '[{"name": "weather", "parameters": {…}}]' });
    const given = this.boxes.length
      ? this.boxes.map(([, one]) => one.element)
      : h("p", { class: "dim" }, "No tools to run. Pass them on the command line: toolspeak ui --tools weather.py, mcp:… or openapi:…");
    const more = about.policy
      ? h("p", { class: "dim" }, "Calls run as the policy says. You are asked about calls that need approval.")
      : field("More, as JSON", this.pasted, "You type the results of these.");
    this.element = h("fieldset", {}, h("legend", {}, "Tools"), given, more);
  }

  value() {
    const offered = this.boxes.filter(([, one]) => one.box.checked).map(([name]) => name);
    let pasted = [];
    if (this.pasted.value.trim()) {
      try {
        pasted = JSON.parse(this.pasted.value);
      } catch (error) {
        throw new Error(`The tools are not JSON: ${error.message}`);
      }
      if (pasted && Array.isArray(pasted.tools)) pasted = pasted.tools;
      pasted = Array.isArray(pasted) ? pasted : [pasted];
    }
    this.schemas = new Map([...pasted.map((row) => row.function || row).map((row) => [row.name, row]), ...this.known]);
    return { offered, tools: pasted };
  }

  runs(name) {
    return this.known.has(name);
  }

  parameters(name) {
    return this.schemas?.get(name)?.parameters || {};
  }
}

/** One conversation with one model. */
class Lane {
  constructor(choice, label, messages, settings, tools) {
    this.choice = choice;
    this.messages = messages;
    this.settings = settings;
    this.tools = tools;
    this.element = h("section", { "aria-label": label }, h("h2", {}, textNodes(label)));
    this.number = 0;
  }

  stop() {
    this.abort?.abort();
  }

  async turn() {
    await this._show("turn", { messages: this.messages });
  }

  /** Goes on with a run that waits for answers. */
  async resume(paused, answers) {
    await this._show("resume", { paused, answers });
  }

  async _show(path, more) {
    this.number += 1;
    const view = new Turn(this.number);
    this.element.append(view.element);
    this.abort = new AbortController();
    const body = { ...this.choice, ...this.settings, ...more };
    try {
      for await (const row of rows(path, body, this.abort.signal)) view.take(row, this);
    } catch (error) {
      view.failed(error.name === "AbortError" ? "Stopped." : error.message);
    }
    view.done();
  }

  /** Gives the results back and asks for the next turn. */
  async goOn(message, results) {
    this.messages = [...this.messages, message, ...results];
    await this.turn();
  }
}

class Turn {
  constructor(number) {
    this.prompts = 0;
    this.raw = new GrowingText("What the model wrote");
    this.events = new EventList();
    this.asks = h("div", { class: "form" });
    this.strategy = h("p", { class: "dim" });
    this.calls = h("div", { class: "form" });
    this.figures = h("dl", { class: "tiles" });
    this.first = null;
    this.element = h("article", { class: "turn", "aria-busy": "true" },
      h("h3", {}, `Turn ${number}`), this.strategy,
      h("details", { open: true }, h("summary", {}, "Prompt as sent"), this.asks),
      h("details", { open: true }, h("summary", {}, "Raw text"), this.raw.element),
      h("details", { open: true }, h("summary", {}, "Events", this.events.count), this.events.list),
      this.calls, this.figures);
  }

  take(row, lane) {
    const seen = { strategy: this._strategy, ask: this._ask, raw: this._raw, "raw-end": () => {}, score: this._score, event: this._event, reply: this._reply, error: this._error }[row.row];
    seen?.call(this, row, lane);
  }

  done() {
    this.element.setAttribute("aria-busy", "false");
  }

  failed(message) {
    this.calls.append(h("p", { class: "bad" }, textNodes(message)));
  }

  _strategy(row) {
    this.strategy.replaceChildren(...textNodes(row.line));
  }

  _ask(row) {
    this.prompts += 1;
    if (this.prompts > 1) {
      this.asks.append(h("h3", {}, `Question ${this.prompts} to the model`));
      this.raw.add(`\n— question ${this.prompts} —\n`);
    }
    this.asks.append(...prompt(row));
  }

  _score(row) {
    const rows = row.texts.map(([text, score]) => h("tr", {}, cells(text, score.toFixed(3))));
    this.asks.append(h("details", {}, h("summary", {}, howLikely(row.size)), parts(row.prompt), table(["text", "log-likelihood"], rows)));
  }

  _raw(row) {
    this.first ??= row.at;
    this.raw.add(row.text);
  }

  _event(row) {
    this.first ??= row.at;
    this.events.event(row);
    if (row.event === "CallResult" && !row.result.pending) this.calls.append(ranNodes(row.result));
  }

  _reply(row, lane) {
    this.calls.append(...replyNodes(row));
    this.figures.append(...figures(row, this.first, this.prompts));
    if (row.pending.length) this.calls.append(...pendingNodes(row, lane));
    else if (row.calls.length) this._results(row, lane);
  }

  _error(row) {
    this.failed(`${row.type}: ${row.message}`);
    for (const one of row.attempts) {
      const calls = one.reply.calls.map((call) => `→ ${call.name} ${call.json}`).join("\n");
      this.calls.append(h("details", {}, h("summary", {}, textNodes(one.why)), pre([one.reply.text, calls].filter(Boolean).join("\n"))));
    }
  }

  /** A form in which calls are run, or their results typed, and given back. */
  _results(row, lane) {
    const places = row.calls.map((call) => {
      const result = h("textarea", { class: "code", rows: 2 });
      const run = h("button", { type: "button", class: "quiet" }, "Run");
      const note = h("span", { class: "dim" });
      run.addEventListener("click", async () => {
        run.disabled = true;
        try {
          const told = await ask("run", { name: call.name, id: call.id, arguments: call.arguments });
          result.value = told.text;
          note.replaceChildren(...textNodes(told.error ? told.error : `${(1000 * told.seconds).toFixed(1)} ms`));
        } catch (error) {
          note.replaceChildren(...textNodes(error.message));
        }
        run.disabled = false;
      });
      const runs = lane.tools.runs(call.name);
      const element = h("div", { class: "call" }, callNodes(call, lane.tools.parameters(call.name)),
        h("div", { class: "row" }, runs ? run : h("span", { class: "dim" }, "Type its result."), note),
        field(`Result of ${call.name}`, result));
      return { element, message: () => ({ role: "tool", tool_call_id: call.id, name: call.name, content: result.value }) };
    });
    const next = h("button", { type: "button" }, "Continue");
    next.addEventListener("click", () => {
      next.disabled = true;
      lane.goOn(row.messages.at(-1), places.map((place) => place.message()));
    });
    this.calls.append(...places.map((place) => place.element), h("div", { class: "row" }, next));
  }
}

/** A call that was run, or refused, and what it gave. */
function ranNodes(result) {
  const name = result.error ? h("span", { class: "bad" }, textNodes(`${result.name}: ${result.error}`)) : textNodes(result.name);
  return h("div", { class: "call" }, h("h3", {}, name), pre(result.text, { "aria-label": `What ${result.name} gave` }));
}

export function howLikely(size) {
  return size === 1 ? "Asked how likely a text is" : `Asked how likely ${size} texts are`;
}

/** What a model was asked. */
export function prompt(row) {
  const nodes = [legend(KINDS)];
  if (row.prompt) nodes.push(parts(row.prompt, { "aria-label": "Prompt" }));
  for (const message of row.messages || []) {
    const calls = message.calls ? [["assistant", `\n${json(message.calls, 0)}`]] : [];
    nodes.push(h("h3", { class: "dim" }, message.role), parts([...message.parts, ...calls], { "aria-label": `Message of ${message.role}` }));
  }
  if (row.body) nodes.push(h("details", {}, h("summary", {}, "Body, to the byte ", h("span", { class: "dim" }, textNodes(row.url))), pre(row.body)));
  if (row.stop) nodes.push(h("p", {}, "Stops at: ", h("span", { class: "code" }, textNodes(json(row.stop, 0)))));
  if (row.grammar) nodes.push(h("details", {}, h("summary", {}, "Constrained by this grammar"), pre(row.grammar)));
  if (row.schema) nodes.push(h("details", {}, h("summary", {}, "Constrained by this JSON Schema"), pre(json(row.schema))));
  return nodes;
}

/** A call with its arguments against the schema of its tool. */
export function callNodes(call, parameters) {
  const properties = parameters.properties || {};
  const required = parameters.required || [];
  const names = [...new Set([...Object.keys(properties), ...Object.keys(call.arguments)])];
  const wrong = (name) => (call.problems || []).filter((problem) => problem.path === `/${name}` || problem.path.startsWith(`/${name}/`));
  const rows = names.map((name) => {
    const faults = wrong(name);
    const there = name in call.arguments;
    const verdict = faults.length ? h("span", { class: "bad" }, textNodes(faults.map((one) => one.message).join(" "))) : there ? h("span", { class: "good" }, "fits") : h("span", { class: "dim" }, required.includes(name) ? "missing" : "left out");
    return h("tr", {}, cells(name, kind(properties[name]), there ? json(call.arguments[name], 0) : "", verdict));
  });
  const others = (call.problems || []).filter((problem) => !names.some((name) => wrong(name).includes(problem)));
  return [
    h("h3", {}, textNodes(call.name), call.whole ? null : h("span", { class: "bad" }, " cut off")),
    rows.length ? table(["parameter", "schema", "argument", ""], rows) : h("p", { class: "dim" }, "no arguments"),
    ...others.map((problem) => h("p", { class: "bad" }, textNodes(problem.message))),
    notes(call.notes),
  ];
}

function kind(schema) {
  if (!schema) return "not in the schema";
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (schema.anyOf) return schema.anyOf.map(kind).join(" | ");
  return Array.isArray(schema.type) ? schema.type.join(" | ") : schema.type || "any";
}

export function notes(list) {
  if (!list || !list.length) return null;
  return h("ul", { class: "notes", "aria-label": "Notes" }, list.map((note) => h("li", {}, h("strong", {}, note.rule), textNodes(note.detail ? `: ${note.detail}` : ""), note.at >= 0 ? h("span", { class: "dim" }, ` at character ${note.at}`) : null)));
}

/** The text, the thought and the notes of a reply; its calls are shown where they can be run. */
export function replyNodes(row) {
  const nodes = [];
  if (row.thought) nodes.push(h("details", {}, h("summary", {}, "Thought"), pre(row.thought)));
  if (row.text) nodes.push(h("div", {}, h("h3", {}, "Answer"), pre(row.text, { "aria-label": "Answer" })));
  if (row.notes.length) nodes.push(h("div", {}, h("h3", {}, "Notes"), notes(row.notes)));
  return nodes;
}

function figures(row, first, asks) {
  const tile = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
  const { prompt_tokens: sent, completion_tokens: got, cached_tokens: cached, reasoning_tokens: thought, estimated } = row.usage;
  const about = estimated ? "about " : "";
  const tokens = (count) => (count ? `${about}${count} tokens` : "tokens unknown");
  return [
    tile("ends", row.finish), tile("asked", `${asks}×`),
    tile("prompt", `${tokens(sent)}${cached ? `, ${cached} cached` : ""}`),
    tile("reply", `${tokens(got)}${thought ? `, ${thought} of thought` : ""}`),
    tile("first", first === null ? "–" : `${Math.round(first)} ms`), tile("all", `${Math.round(row.at)} ms`),
  ];
}
