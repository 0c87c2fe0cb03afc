// JavaScript's: OpenAI's and Anthropic's tool runners, the AI SDK by openai() and anthropic(), OpenAI's agents, LangChain.
import Anthropic from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, run, setTracingDisabled, tool as agentTool } from "@openai/agents";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool as chainTool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import { z } from "zod";

const [url, names, only] = process.argv.slice(2);
const KEY = "sk-client-canary";
const TASK = "What is the weather in Xiamen, and then what time is it there? [[weather city=Xiamen]] [[clock city=Xiamen]]";
const SCHEMA = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };
let ran = [];
const RUN = {
  weather: ({ city }) => { ran.push(`weather ${city}`); return `sunny in ${city}`; },
  clock: ({ city }) => { ran.push(`clock ${city}`); return `noon in ${city}: canary-7f3a`; },
};
const each = (make) => Object.entries(RUN).map(([name, execute]) => make(name, `The ${name} in a city.`, execute));

// ------------------------------------------------------------------ @anthropic-ai/sdk

const client = new Anthropic({ baseURL: url, apiKey: KEY, maxRetries: 0 });

async function runner(model, stream) {
  const tools = each((name, description, execute) => betaTool({ name, description, inputSchema: SCHEMA, run: execute }));
  const messages = [{ role: "user", content: TASK }];
  const running = client.beta.messages.toolRunner({ model, max_tokens: 500, messages, tools, stream });
  let last;
  for await (const turn of running) last = stream ? await turn.finalMessage() : turn;
  return last.content.map((block) => block.text ?? "").join("");
}

// ------------------------------------------------------------------ ai

const openai = createOpenAI({ baseURL: `${url}/v1`, apiKey: KEY });
const anthropic = createAnthropic({ baseURL: `${url}/v1`, apiKey: KEY });

async function aiSdk(model, stream) {
  const schema = z.object({ city: z.string() });
  const tools = Object.fromEntries(each((name, description, execute) => [name, tool({ description, inputSchema: schema, execute: async (given) => execute(given) })]));
  const asked = { model, tools, prompt: TASK, maxRetries: 0, stopWhen: stepCountIs(4) };
  if (!stream) return (await generateText(asked)).text;
  let failed;
  const result = streamText({ ...asked, onError: ({ error }) => { failed = error; } });
  await result.consumeStream();
  if (failed) throw failed;
  return await result.text;
}

// ------------------------------------------------------------------ openai

const sdk = new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0 });

async function runTools(model, stream) {
  const tools = each((name, description, execute) => ({ type: "function", function: { name, description, parameters: SCHEMA, parse: JSON.parse, function: execute } }));
  return await sdk.chat.completions.runTools({ model, messages: [{ role: "user", content: TASK }], tools, stream }).finalContent();
}

async function responses(model, stream) {
  const tools = each((name, description) => ({ type: "function", name, description, parameters: SCHEMA, strict: true }));
  const input = [{ role: "user", content: TASK }];
  for (let turn = 0; turn < 4; turn++) {
    const asked = { model, input, tools, store: false };
    const reply = stream ? await sdk.responses.stream(asked).finalResponse() : await sdk.responses.create(asked);
    const calls = reply.output.filter((item) => item.type === "function_call");
    if (!calls.length) return reply.output_text;
    input.push(...reply.output);
    for (const call of calls) input.push({ type: "function_call_output", call_id: call.call_id, output: RUN[call.name](JSON.parse(call.arguments)) });
  }
}

// ------------------------------------------------------------------ @openai/agents

setTracingDisabled(true);

async function agents(model, stream) {
  const parameters = z.object({ city: z.string() });
  const tools = each((name, description, execute) => agentTool({ name, description, parameters, execute }));
  const agent = new Agent({ name: "a", model, tools });
  const result = await run(agent, TASK, { stream });
  if (stream) { for await (const _ of result) { /* to the end */ } await result.completed; }
  return result.finalOutput;
}

// ------------------------------------------------------------------ @langchain/openai

async function langchain(model, stream) {
  const tools = each((name, description, execute) => chainTool(execute, { name, description, schema: z.object({ city: z.string() }) }));
  const bound = model.bindTools(tools);
  const messages = [new HumanMessage(TASK)];
  for (let turn = 0; turn < 4; turn++) {
    let message;
    if (stream) { for await (const piece of await bound.stream(messages)) message = message ? message.concat(piece) : piece; }
    else message = await bound.invoke(messages);
    if (!message.tool_calls?.length) return message.text ?? message.content;
    messages.push(stream ? new AIMessage({ content: message.content, tool_calls: message.tool_calls }) : message);
    for (const call of message.tool_calls) messages.push(new ToolMessage({ content: RUN[call.name](call.args), tool_call_id: call.id }));
  }
}
const chain = (model, useResponsesApi) => new ChatOpenAI({ model, apiKey: KEY, useResponsesApi, configuration: { baseURL: `${url}/v1` }, maxRetries: 0 });

const WAYS = {
  "openai-js": { chat: runTools, responses },
  "anthropic-sdk": { messages: runner },
  "ai-sdk": {
    chat: (model, stream) => aiSdk(openai.chat(model), stream),
    responses: (model, stream) => aiSdk(openai(model), stream),
    messages: (model, stream) => aiSdk(anthropic(model), stream),
  },
  "openai-agents-js": {
    chat: (model, stream) => agents(new OpenAIChatCompletionsModel(sdk, model), stream),
    responses: (model, stream) => agents(new OpenAIResponsesModel(sdk, model), stream),
  },
  "langchain-js": {
    chat: (model, stream) => langchain(chain(model, false), stream),
    responses: (model, stream) => langchain(chain(model, true), stream),
  },
};
const came = {};
for (const model of names.split(",")) {
  for (const [way, play] of Object.entries(WAYS[only])) {
    for (const stream of [false, true]) {
      const name = `${way}${stream ? "-stream" : ""}.${model}`;
      ran = [];
      try {
        came[name] = { text: await play(model, stream), ran };
      } catch (error) {
        came[name] = { failed: `${error.stack} ${JSON.stringify(error.responseBody ?? error.error ?? "")}`.slice(0, 3000), ran };
      }
    }
  }
}
console.log("\n" + JSON.stringify(came));
process.exit(0);
