// The two models that need no network.
import type { Model } from "mortise/extension";

const shared = {
  api: "offline",
  provider: "offline",
  baseUrl: "offline:",
  input: ["text", "image"],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  contextWindow: 200_000,
  maxTokens: 32_000,
  supportsTools: true,
} satisfies Partial<Model>;

export const offlineModels: readonly Model[] = [
  { id: "echo", name: "Offline echo", reasoning: false, ...shared },
  {
    id: "script",
    name: "Offline script",
    reasoning: true,
    thinking: { mode: "effort", efforts: ["minimal", "low", "medium", "high"], defaultLevel: "off" },
    ...shared,
  },
];
