// The anthropic package for Node.

import Anthropic from "@anthropic-ai/sdk";
import {
  COUNT, FACT, FAIL, HANG, KEY, MODEL, QUESTION, TURNS, WEATHER, failed, filler, say, weather,
} from "./talk.mjs";

const sdk = new Anthropic({ baseURL: process.argv[3], apiKey: KEY, maxRetries: 0 });
const user = (content) => ({ role: "user", content });
const assistant = (content) => ({ role: "assistant", content });
const ask = (messages, more = {}) =>
  sdk.messages.create({ model: MODEL, max_tokens: 200, messages, ...more });

const talk = [user(FACT)];
for (let turn = 0; turn < TURNS; turn++) {
  talk.push(assistant((await ask(talk)).content), user(filler(turn)));
}
const reply = await ask(talk);
say("chat", reply.content[0].text, { messages: talk.length });
talk.push(assistant(reply.content), user(QUESTION));
say("recall", (await ask(talk)).content[0].text);
const pieces = [];
for await (const one of await ask([user(COUNT)], { stream: true })) {
  if (one.type === "content_block_delta") pieces.push(one.delta.text);
}
say("stream", pieces.join(""), { pieces: pieces.length });
const tools = [
  {
    name: "get_weather",
    description: "Returns the weather.",
    input_schema: { type: "object", properties: { city: { type: "string" } } },
  },
];
const asked = [user(WEATHER)];
const { content } = await ask(asked, { tools });
const results = content
  .filter((block) => block.type === "tool_use")
  .map(({ id, input }) => ({ type: "tool_result", tool_use_id: id, content: weather(input.city) }));
asked.push(assistant(content), user(results));
say("tools", (await ask(asked, { tools })).content[0].text);
say("error", await failed(() => ask([user(FAIL)])));
for await (const one of await ask([user(HANG)], { stream: true })) {
  if (one.type === "content_block_delta") break;
}
say("disconnect", "left");
