// Calls that a policy asks about: each is shown whole, and runs only if somebody says so.

import { field, h, json, pre, select, tell, textNodes } from "./dom.js";
import { callNodes } from "./playground.js";

const DECISIONS = [["", "Decide later"], ["approve", "Approve"], ["refuse", "Refuse"], ["edit", "Approve with other arguments"], ["answer", "Do not run it, answer instead"]];
const ORIGINS = { trusted: "only trusted text came before it", untrusted: "text that is not trusted came before it" };

/** The pending calls of a reply, and what sends the answers. */
export function pendingNodes(row, lane) {
  const places = row.pending.map((one) => new Place(one, row, lane));
  const next = h("button", { type: "button" }, "Continue");
  next.addEventListener("click", async () => {
    const answers = {};
    try {
      for (const place of places) if (place.decision.value) answers[place.one.id] = place.answer();
    } catch (error) {
      tell(error.message, true);
      return;
    }
    if (!Object.keys(answers).length) {
      tell("Decide about a call first.", true);
      return;
    }
    tell("");
    next.disabled = true;
    await lane.resume({ messages: row.messages, pending: row.pending }, answers);
  });
  return [...places.map((place) => place.element), h("div", { class: "row" }, next)];
}

/** One call, and what is decided about it. */
class Place {
  constructor(one, row, lane) {
    this.one = one;
    this.decision = select(DECISIONS);
    this.reason = h("input", { type: "text" });
    this.edited = h("textarea", { class: "code", rows: 4, spellcheck: "false" });
    this.edited.value = json(one.arguments);
    this.result = h("textarea", { class: "code", rows: 2 });
    const more = {
      refuse: field("Reason, which the model reads", this.reason),
      edit: field("Arguments, as JSON", this.edited),
      answer: field("Answer, which the model reads", this.result),
    };
    const show = () => { for (const [name, element] of Object.entries(more)) element.hidden = this.decision.value !== name; };
    this.decision.addEventListener("change", show);
    show();
    const call = row.calls.find((found) => found.id === one.id) || { name: one.tool, arguments: one.arguments, whole: true };
    const fact = (name, text) => h("div", {}, h("dt", {}, name), h("dd", {}, textNodes(text)));
    this.element = h("section", { class: "call", "aria-label": `Pending call of ${one.tool}` },
      callNodes(call, lane.tools.parameters(one.tool)),
      pre(whole(one.arguments), { "aria-label": `Arguments of ${one.tool}` }),
      h("dl", { class: "tiles" }, fact("needs approval because", one.why), fact("origin", `${one.origin}: ${ORIGINS[one.origin] || ""}`),
        fact("until", new Date(1000 * one.expires).toLocaleString())),
      field(`Decision about ${one.tool}`, this.decision), ...Object.values(more));
  }

  answer() {
    const decided = this.decision.value;
    if (decided === "approve") return true;
    if (decided === "refuse") return this.reason.value;
    if (decided === "answer") return { answer: this.result.value };
    let edit;
    try {
      edit = JSON.parse(this.edited.value);
    } catch (error) {
      throw new Error(`The arguments of ${this.one.tool} are not JSON: ${error.message}`);
    }
    if (!edit || typeof edit !== "object" || Array.isArray(edit)) throw new Error(`The arguments of ${this.one.tool}: expected a JSON object.`);
    return { edit };
  }
}

/** Arguments, each text as it is: its line breaks are line breaks, and what cannot be seen in it is marked. */
function whole(values) {
  return Object.entries(values).map(([name, value]) => `${name}: ${typeof value === "string" ? value : json(value)}`).join("\n");
}
