// The Vercel AI SDK with @ai-sdk/openai-compatible: generateText and streamText, its own loop over the tools.
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { readFileSync } from "node:fs";

const [url, name, only] = process.argv.slice(2);
const { questions, functions, key } = JSON.parse(readFileSync(0, "utf-8"));
const provider = createOpenAICompatible({ name: "gateway", baseURL: `${url}/v1`, apiKey: key, includeUsage: true });
const RUN = { weather: ({ city }) => `sunny in ${city}`, clock: ({ city }) => `noon in ${city}` };

function tools(runs) {
  return Object.fromEntries(
    functions.map((one) => [
      one.name,
      tool({
        description: one.description,
        inputSchema: jsonSchema(one.parameters),
        ...(runs ? { execute: async (given) => RUN[one.name](given) } : {}),
      }),
    ]),
  );
}

function asked(scenario) {
  const made = { model: provider(name), prompt: name === "scripted" ? questions[scenario] : questions[scenario].split(" [")[0], maxRetries: 0 };
  if (!["plain", "stream", "error"].includes(scenario)) made.tools = tools(scenario === "loop");
  if (scenario === "loop") made.stopWhen = stepCountIs(3);
  if (scenario === "required") made.toolChoice = "required";
  if (scenario === "named") made.toolChoice = { type: "tool", toolName: "clock" };
  return made;
}

const calls = (steps) => steps.flatMap((step) => step.toolCalls.map((call) => [call.toolName, call.input]));

async function whole(scenario) {
  const result = await generateText(asked(scenario));
  return { text: result.text, calls: calls(result.steps), finish: result.finishReason, usage: result.totalUsage.outputTokens > 0 };
}

async function streamed(scenario) {
  let pieces = 0;
  let failed;
  const result = streamText({ ...asked(scenario), onError: ({ error }) => { failed = error; } });
  for await (const part of result.fullStream) pieces += part.type === "text-delta";
  if (failed) throw failed;
  return {
    text: await result.text, calls: calls(await result.steps), finish: await result.finishReason, pieces,
    usage: (await result.totalUsage).outputTokens > 0,
  };
}

const WAYS = { chat: [whole, ["stream", "stream_call"]], "chat-stream": [streamed, ["plain", "call"]] };
const came = {};
for (const [way, [play, left]] of Object.entries(WAYS)) {
  for (const scenario of Object.keys(questions)) {
    if (left.includes(scenario) || (only && !only.split(",").includes(scenario))) continue;
    try {
      came[`${way}.${scenario}`] = await play(scenario);
    } catch (error) {
      came[`${way}.${scenario}`] = {
        error: error.name, status: error.statusCode ?? null, said: String(error.message).slice(0, 1000),
        ...(scenario === "error" ? {} : { failed: String(error.stack).slice(0, 3000) }),
      };
    }
  }
}
console.log(JSON.stringify(came));
