import { defineFrame, Model, z } from "mortise/extension";

export default defineFrame({
  name: "model_changed",
  summary: "Another model answers from the next request on",
  fields: z.object({ model: Model }),
  scope: "conversation",
  source: "mortise",
  example: {
    type: "model_changed",
    model: {
      id: "echo",
      name: "Offline echo",
      api: "offline",
      provider: "offline",
      baseUrl: "offline:",
      reasoning: false,
      input: ["text", "image"],
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    },
  },
});
