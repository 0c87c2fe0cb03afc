// The views, one at a time, by the address behind #; the theme; the key where it is missing.

import { field, h, tell } from "./dom.js";
import { ask, setKey, takeKey } from "./server.js";
import { dialectsView } from "./dialects.js";
import { liveView } from "./live.js";
import { playgroundView } from "./playground.js";
import { reportsView } from "./reports.js";

const VIEWS = [
  ["playground", "Playground", playgroundView],
  ["live", "Live", liveView],
  ["dialects", "Dialects", dialectsView],
  ["reports", "Reports", reportsView],
];
const THEME = "toolspeak-theme";
const made = new Map();
let about = null;

function current() {
  const name = location.hash.slice(1);
  return VIEWS.find(([view]) => view === name) || VIEWS[0];
}

function show() {
  const [name, title, make] = current();
  const main = document.getElementById("main");
  if (!made.has(name)) made.set(name, make(about));
  main.replaceChildren(made.get(name));
  document.title = `${title} – toolspeak`;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function askForKey(why) {
  const key = h("input", { type: "password", autocomplete: "off" });
  const form = h("form", { class: "panel form", onsubmit: (event) => {
    event.preventDefault();
    setKey(key.value);
    start();
  } }, h("h1", {}, "A key is needed"), h("p", {}, why), field("Key", key), h("div", { class: "row" }, h("button", {}, "Open")));
  document.getElementById("main").replaceChildren(form);
  key.focus();
}

function theme() {
  const root = document.documentElement;
  const stored = localStorage.getItem(THEME);
  if (stored) root.dataset.theme = stored;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem(THEME, root.dataset.theme);
  });
}

async function start() {
  try {
    about = await ask("about");
  } catch (error) {
    if (error.status === 401) askForKey(error.message);
    else tell(error.message, true);
    return;
  }
  tell("");
  document.querySelector("nav").replaceChildren(...VIEWS.map(([name, title]) => h("a", { href: `#${name}` }, title)));
  window.addEventListener("hashchange", show);
  show();
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main").focus();
});
takeKey();
theme();
start();
