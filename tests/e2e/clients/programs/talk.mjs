// What every Node program says; talk.py's words, so that all clients are asked the same.

export const MODEL = "gpt-4o-mini";
export const KEY = "sk-nobody";
export const FACT = "My locker has the number 5582. Remember it.";
export const QUESTION = "What number has my locker?";
export const COUNT = "Count to five, please.";
export const WEATHER = "What is the weather in Oslo? Use the tool.";
export const FAIL = "Please fail now.";
export const HANG = "Please hang in the middle.";
export const TURNS = 10;
const WORDS = "orbit maple cinder harbour velvet lantern quarry meadow copper thistle".split(" ");

/** Returns words that no question asks for; the same for a turn every time. */
export function filler(turn) {
  const words = [];
  for (let at = 0; at < 200; at++) words.push(WORDS[(at * at + 7 * turn + at) % WORDS.length]);
  return `Note ${turn}: ${words.join(" ")}`;
}

export function say(step, text, more = {}) {
  console.log(JSON.stringify({ step, text: String(text), ...more }));
}

export function weather(city) {
  return city === "Oslo" ? "rain and 7 degrees" : "unknown";
}

/** Returns the error that a step ends with, in words. */
export async function failed(step) {
  try {
    return `no error, but ${await step()}`;
  } catch (error) {
    const status = error.status ?? error.statusCode ?? "";
    return `${error.name}: ${error.message} ${status}`;
  }
}
