// The openai package for Node: chat completions and responses.

import OpenAI from "openai";
import {
  COUNT, FACT, FAIL, HANG, KEY, MODEL, QUESTION, TURNS, WEATHER, failed, filler, say, weather,
} from "./talk.mjs";

const [protocol, baseURL] = process.argv.slice(2);
const sdk = new OpenAI({ baseURL, apiKey: KEY, maxRetries: 0 });
const parameters = { type: "object", properties: { city: { type: "string" } } };
const user = (content) => ({ role: "user", content });

async function chat() {
  const ask = (messages, more = {}) =>
    sdk.chat.completions.create({ model: MODEL, messages, ...more });
  const talk = [user(FACT)];
  for (let turn = 0; turn < TURNS; turn++) {
    talk.push((await ask(talk)).choices[0].message, user(filler(turn)));
  }
  const reply = await ask(talk);
  say("chat", reply.choices[0].message.content, { messages: talk.length });
  talk.push(reply.choices[0].message, user(QUESTION));
  say("recall", (await ask(talk)).choices[0].message.content);
  const pieces = [];
  for await (const one of await ask([user(COUNT)], { stream: true })) {
    if (one.choices[0].delta.content) pieces.push(one.choices[0].delta.content);
  }
  say("stream", pieces.join(""), { pieces: pieces.length });
  const tools = [{ type: "function", function: { name: "get_weather", parameters } }];
  const asked = [user(WEATHER)];
  const { message } = (await ask(asked, { tools })).choices[0];
  asked.push(message);
  for (const call of message.tool_calls) {
    const content = weather(JSON.parse(call.function.arguments).city);
    asked.push({ role: "tool", tool_call_id: call.id, content });
  }
  say("tools", (await ask(asked, { tools })).choices[0].message.content);
  say("error", await failed(() => ask([user(FAIL)])));
  for await (const one of await ask([user(HANG)], { stream: true })) {
    if (one.choices[0].delta.content) break;
  }
  say("disconnect", "left");
}

async function responses() {
  const ask = (input, more = {}) => sdk.responses.create({ model: MODEL, input, ...more });
  const talk = [user(FACT)];
  for (let turn = 0; turn < TURNS; turn++) {
    talk.push(...(await ask(talk)).output, user(filler(turn)));
  }
  const reply = await ask(talk);
  say("chat", reply.output_text, { messages: talk.length });
  talk.push(...reply.output, user(QUESTION));
  say("recall", (await ask(talk)).output_text);
  const pieces = [];
  for await (const one of await ask(COUNT, { stream: true })) {
    if (one.type === "response.output_text.delta") pieces.push(one.delta);
  }
  say("stream", pieces.join(""), { pieces: pieces.length });
  const tools = [{ type: "function", name: "get_weather", parameters, strict: false }];
  const asked = [user(WEATHER)];
  const { output } = await ask(asked, { tools });
  asked.push(...output);
  for (const call of output) {
    const result = weather(JSON.parse(call.arguments).city);
    asked.push({ type: "function_call_output", call_id: call.call_id, output: result });
  }
  say("tools", (await ask(asked, { tools })).output_text);
  say("error", await failed(() => ask(FAIL)));
  for await (const one of await ask(HANG, { stream: true })) {
    if (one.type === "response.output_text.delta") break;
  }
  say("disconnect", "left");
}

await { chat, responses }[protocol]();
