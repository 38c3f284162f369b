// @ts-nocheck: written for pi, whose types are not installed here
// A model service of its own: answers with the last user text in capitals.
import { type AssistantMessage, calculateCost, createAssistantMessageEventStream } from "@mariozechner/pi-ai";
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";

export default function (pi: ExtensionAPI) {
  pi.registerProvider("shouting", {
    baseUrl: "http://127.0.0.1:9",
    apiKey: "none",
    api: "shouting-api",
    models: [
      {
        id: "shout-1",
        name: "Shout 1",
        reasoning: false,
        input: ["text"],
        cost: { input: 1, output: 2, cacheRead: 0, cacheWrite: 0 },
        contextWindow: 10_000,
        maxTokens: 1000,
      },
    ],
    streamSimple(model, context, options) {
      const stream = createAssistantMessageEventStream();
      const last = context.messages.findLast((message) => message.role === "user");
      const text = (
        typeof last?.content === "string" ? last.content : (last?.content ?? []).map((block) => block.text ?? "").join("")
      ).toUpperCase();
      const message: AssistantMessage = {
        role: "assistant",
        content: [{ type: "text", text: "" }],
        api: model.api,
        provider: model.provider,
        model: model.id,
        usage: {
          input: 10,
          output: text.length,
          cacheRead: 0,
          cacheWrite: 0,
          totalTokens: 10 + text.length,
          cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
        },
        stopReason: "stop",
        timestamp: Date.now(),
      };
      queueMicrotask(() => {
        stream.push({ type: "start", partial: message });
        stream.push({ type: "text_start", contentIndex: 0, partial: message });
        for (const word of text.split(/(?<= )/)) {
          if (options?.signal?.aborted) break;
          message.content[0].text += word;
          stream.push({ type: "text_delta", contentIndex: 0, delta: word, partial: message });
        }
        stream.push({ type: "text_end", contentIndex: 0, content: text, partial: message });
        calculateCost(model, message.usage);
        stream.push({ type: "done", reason: "stop", message });
        stream.end();
      });
      return stream;
    },
  });
}
