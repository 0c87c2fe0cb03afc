// What the page asks its own server for. The key stands behind the # of the address, which is sent to nobody.

const KEY = "toolspeak-key";

export class Failed extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Takes the key out of the address, so that it does not stay in the history. */
export function takeKey() {
  const found = /[#&]key=([^&]*)/.exec(location.hash);
  if (!found) return;
  setKey(decodeURIComponent(found[1]));
  history.replaceState(null, "", location.pathname);
}

export function setKey(key) {
  sessionStorage.setItem(KEY, key);
}

function headers(body) {
  const key = sessionStorage.getItem(KEY);
  return { ...(key ? { Authorization: `Bearer ${key}` } : {}), ...(body ? { "Content-Type": "application/json" } : {}) };
}

async function sent(path, body, signal) {
  let response;
  try {
    response = await fetch(`api/${path}`, {
      method: body ? "POST" : "GET", headers: headers(body), body: body && JSON.stringify(body), signal, cache: "no-store",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failed(0, "The server does not answer. Is it still running?");
  }
  if (response.ok) return response;
  let message = `The server answered ${response.status}.`;
  try {
    message = (await response.json()).error.message;
  } catch { /* no JSON: the status must do */ }
  throw new Failed(response.status, message);
}

export async function ask(path, body) {
  return (await sent(path, body)).json();
}

/** The rows of a stream as they come. */
export async function* rows(path, body, signal) {
  const response = await sent(path, body, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let left = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (left + value).split("\n\n");
    left = lines.pop();
    for (const line of lines) if (line.startsWith("data: ")) yield JSON.parse(line.slice(6));
  }
}
