// LangChain for Node: chat completions and responses.

import { HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { z } from "zod";
import {
  COUNT, FACT, FAIL, HANG, KEY, MODEL, QUESTION, TURNS, WEATHER, failed, filler, say, weather,
} from "./talk.mjs";

const [protocol, baseURL] = process.argv.slice(2);
const model = new ChatOpenAI({
  model: MODEL,
  apiKey: KEY,
  maxRetries: 0,
  configuration: { baseURL },
  useResponsesApi: protocol === "responses",
});

const talk = [new HumanMessage(FACT)];
for (let turn = 0; turn < TURNS; turn++) {
  talk.push(await model.invoke(talk), new HumanMessage(filler(turn)));
}
const reply = await model.invoke(talk);
say("chat", reply.text, { messages: talk.length });
talk.push(reply, new HumanMessage(QUESTION));
say("recall", (await model.invoke(talk)).text);
const pieces = [];
for await (const one of await model.stream(COUNT)) if (one.text) pieces.push(one.text);
say("stream", pieces.join(""), { pieces: pieces.length });
const getWeather = tool(async ({ city }) => weather(city), {
  name: "get_weather",
  description: "Returns the weather.",
  schema: z.object({ city: z.string() }),
});
const able = model.bindTools([getWeather]);
const asked = [new HumanMessage(WEATHER)];
const called = await able.invoke(asked);
asked.push(called);
for (const call of called.tool_calls) asked.push(await getWeather.invoke(call));
say("tools", (await able.invoke(asked)).text);
say("error", await failed(() => model.invoke(FAIL)));
const going = new AbortController();
try {
  for await (const one of await model.stream(HANG, { signal: going.signal })) {
    if (one.text) going.abort();
  }
} catch {
  // The abort.
}
say("disconnect", "left");
process.exit(0);
