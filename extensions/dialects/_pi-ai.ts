// The model library of the families: schema builders, streams and model calls. Calls go to our providers.
import { randomBytes } from "node:crypto";
import { type Context, errorMessage, isAbort, type Model, Models, ThinkingLevel, type VirtualModule } from "mortise/extension";
import { AssistantMessageEventStream } from "./_event-stream.ts";
import { toKnownModel } from "./_models.ts";
import { UNAVAILABLE_AI } from "./_pi-ai-names.ts";
import { streamModel } from "./_pi-stream.ts";
import { currentCall } from "./_runtime.ts";
import { isObject } from "./_schema.ts";
import { unavailableOnes } from "./_unavailable.ts";

/** The namespace of `…/pi-ai` and its subpaths. */
export async function piAiModule(daemon: Context): Promise<VirtualModule> {
  const { Type } = await import("typebox");
  const ctx = (): Context => currentCall()?.ctx ?? daemon;
  const stream = (model: unknown, context: unknown, options?: unknown) => {
    const known = modelOf(ctx(), model);
    return streamModel(ctx(), known, context, options);
  };
  const complete = (model: unknown, context: unknown, options?: unknown) => stream(model, context, options).result();
  return {
    ...unavailableOnes(UNAVAILABLE_AI),
    Type,
    StringEnum: (values: readonly string[], options?: Record<string, unknown>) =>
      Type.Unsafe({ type: "string", enum: [...values], ...options }),
    uuidv7,
    stream,
    streamSimple: stream,
    complete,
    completeSimple: complete,
    getModel: (provider: string, id: string) => ctx().use(Models).find(provider, id),
    getModels: (provider?: string) =>
      ctx()
        .use(Models)
        .all()
        .filter((model) => provider === undefined || model.provider === provider),
    getProviders: () => [
      ...new Set(
        ctx()
          .use(Models)
          .all()
          .map((model) => model.provider),
      ),
    ],
    getEnvApiKey: () => undefined,
    modelsAreEqual: (a: unknown, b: unknown) =>
      isObject(a) && isObject(b) && a["provider"] === b["provider"] && a["id"] === b["id"],
    supportsXhigh: (model: unknown) => levelsOf(model).includes("xhigh"),
    calculateCost,
    isContextOverflow: (message: unknown) =>
      isObject(message) && /context.{0,20}(length|window)|too long|too many tokens/i.test(String(message["errorMessage"] ?? "")),
    parseStreamingJson,
    EventStream: AssistantMessageEventStream,
    AssistantMessageEventStream,
    createAssistantMessageEventStream: () => new AssistantMessageEventStream(),
    isAbortError: (error: unknown) => isAbort(error),
    contentText: (content: unknown) => contentText(content),
    formatThrownValue: errorMessage,
    getSupportedThinkingLevels: (model: unknown) => levelsOf(model),
    clampThinkingLevel: (model: unknown, level: unknown) => {
      const parsed = ThinkingLevel.safeParse(level);
      return ctx()
        .use(Models)
        .clamp(modelOf(ctx(), model), parsed.success ? parsed.data : "off");
    },
    validateToolArguments: (_tool: unknown, call: unknown) => (isObject(call) ? call["arguments"] : call),
    getBuiltinModel: (provider: string, id: string) => ctx().use(Models).find(provider, id),
    getBuiltinModels: (provider: string) =>
      ctx()
        .use(Models)
        .all()
        .filter((model) => model.provider === provider),
    getAllBuiltinModels: () => ctx().use(Models).all(),
    PI_AI_VERSION: "1.6.0",
  };
}

/** The catalogue's model, or a complete one that an extension made itself. */
function modelOf(ctx: Context, model: unknown): Model {
  const known = toKnownModel(ctx, model);
  if (known !== undefined) return known;
  if (isObject(model) && typeof model["api"] === "string" && typeof model["id"] === "string") return model as Model;
  throw new Error("A model needs provider and id of a known model, or an api");
}

function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((block: unknown) => (isObject(block) && typeof block["text"] === "string" ? block["text"] : "")).join("");
}

function levelsOf(model: unknown): unknown[] {
  return isObject(model) && model["reasoning"] === true ? ["off", ...efforts(model["thinking"])] : ["off"];
}

function efforts(thinking: unknown): unknown[] {
  return isObject(thinking) && Array.isArray(thinking["efforts"]) ? thinking["efforts"] : [];
}

/** Fills in `usage.cost` from the prices per million tokens and returns it. */
function calculateCost(model: unknown, usage: unknown): unknown {
  if (!isObject(usage)) return undefined;
  const prices = isObject(model) && isObject(model["cost"]) ? model["cost"] : {};
  const price = (key: string): number => (Number(prices[key] ?? 0) * Number(usage[key] ?? 0)) / 1_000_000;
  const parts = {
    input: price("input"),
    output: price("output"),
    cacheRead: price("cacheRead"),
    cacheWrite: price("cacheWrite"),
  };
  usage["cost"] = { ...parts, total: parts.input + parts.output + parts.cacheRead + parts.cacheWrite };
  return usage["cost"];
}

/** The value of complete JSON; an empty object while it is still arriving. */
function parseStreamingJson(json: unknown): unknown {
  try {
    return JSON.parse(String(json));
  } catch {
    return {};
  }
}

/** A version 7 UUID: the time in milliseconds, then random bits. */
export function uuidv7(): string {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(Date.now(), 0, 6);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x70, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
