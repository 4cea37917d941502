// Vercel's AI SDK: chat completions, responses and messages, each by its own provider.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import {
  COUNT, FACT, FAIL, HANG, KEY, MODEL, QUESTION, TURNS, WEATHER, failed, filler, say, weather,
} from "./talk.mjs";

const [protocol, base] = process.argv.slice(2);
const options = { baseURL: protocol === "messages" ? `${base}/v1` : base, apiKey: KEY };
const model = {
  chat: () => createOpenAICompatible({ name: "library", ...options })(MODEL),
  responses: () => createOpenAI(options).responses(MODEL),
  messages: () => createAnthropic(options)(MODEL),
}[protocol]();
const common = { model, maxRetries: 0 };
const user = (content) => ({ role: "user", content });

const talk = [user(FACT)];
for (let turn = 0; turn < TURNS; turn++) {
  const { response } = await generateText({ ...common, messages: talk });
  talk.push(...response.messages, user(filler(turn)));
}
const reply = await generateText({ ...common, messages: talk });
say("chat", reply.text, { messages: talk.length });
talk.push(...reply.response.messages, user(QUESTION));
say("recall", (await generateText({ ...common, messages: talk })).text);
const pieces = [];
for await (const piece of streamText({ ...common, prompt: COUNT }).textStream) pieces.push(piece);
say("stream", pieces.join(""), { pieces: pieces.length });
const tools = {
  get_weather: tool({
    description: "Returns the weather.",
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => weather(city),
  }),
};
const asked = { ...common, prompt: WEATHER, tools, stopWhen: stepCountIs(3) };
say("tools", (await generateText(asked)).text);
say("error", await failed(() => generateText({ ...common, prompt: FAIL })));
const going = new AbortController();
const hung = streamText({ ...common, prompt: HANG, abortSignal: going.signal, onError() {} });
for await (const _ of hung.textStream) break;
going.abort();
say("disconnect", "left");
