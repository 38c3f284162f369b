// Settings of the model services.
import { defineSetting, ThinkingLevel, z } from "mortise/extension";

export const enabledModels = defineSetting({
  name: "enabledModels",
  summary:
    "Models that can be chosen and cycled through: provider/id, id, either with :level, or patterns with *; empty means all",
  schema: z.array(z.string().min(1)),
  default: [] as string[],
});

export const disabledProviders = defineSetting({
  name: "disabledProviders",
  summary: "Providers whose models are not offered",
  schema: z.array(z.string().min(1)),
  default: [] as string[],
});

export const defaultProvider = defineSetting({
  name: "defaultProvider",
  summary: "Provider of defaultModel",
  schema: z.string(),
  default: "",
});

export const defaultModel = defineSetting({
  name: "defaultModel",
  summary: "Model of new conversations: id, provider/id, or either with :level; empty means the first one with a credential",
  schema: z.string(),
  default: "",
});

export const defaultThinkingLevel = defineSetting<ThinkingLevel | "">({
  name: "defaultThinkingLevel",
  summary: "Thinking level of new conversations; empty means what the model recommends",
  schema: z.union([ThinkingLevel, z.literal("")]),
  default: "",
});

export const discoveryTimeoutMs = defineSetting({
  name: "models.discoveryTimeoutMs",
  summary: "Milliseconds a server has to list its models",
  schema: z.number().int().positive(),
  default: 5000,
});
