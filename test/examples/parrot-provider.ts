// A model service of your own. A provider turns one request into a stream of events; the loop does everything else.
import { defineProvider, type Model, ProviderError, type ProviderRequest } from "mortise/extension";

const parrot: Model = {
  id: "parrot-1",
  name: "Parrot",
  // The name of the provider contribution that speaks for this model.
  api: "parrot",
  provider: "parrot",
  baseUrl: "parrot:",
  reasoning: false,
  input: ["text"],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  contextWindow: 10_000,
  maxTokens: 1_000,
};

export default defineProvider({
  name: "parrot",
  summary: "Repeats the last message in upper case",
  needsKey: false,
  models: [parrot],
  // Never throws: a failure is the last event. A real provider passes `request.signal` to its `fetch`.
  async *stream(request) {
    const words = lastUserText(request).toUpperCase().split(" ");
    if (words.join("") === "") {
      yield { type: "error", error: new ProviderError("The parrot heard nothing", "fatal") };
      return;
    }
    yield { type: "start" };
    yield { type: "text_start", index: 0 };
    for (const [at, word] of words.entries()) yield { type: "text_delta", index: 0, delta: at === 0 ? word : ` ${word}` };
    yield { type: "text_end", index: 0 };
    yield { type: "usage", usage: { input: words.length, output: words.length } };
    yield { type: "done", stopReason: "stop" };
  },
});

function lastUserText(request: ProviderRequest): string {
  const message = request.messages.findLast((each) => each.role === "user");
  if (message === undefined) return "";
  if (typeof message.content === "string") return message.content;
  return message.content.map((block) => (block.type === "text" ? block.text : "")).join(" ");
}
