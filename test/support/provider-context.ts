// Runs one provider by itself: a context with what providers use, and a collector of its events.
import type {
  Context,
  Model,
  ProviderDefinition,
  ProviderEvent,
  ProviderRequest,
  SettingDefinition,
  Token,
} from "mortise/extension";
import type { AnyDefinition } from "../../core/kernel/definition.ts";

export interface ProviderContextOptions {
  /** Values by dotted path; the default answers for the rest. */
  settings?: Record<string, unknown>;
  /** Service definitions of the unit, and values for other tokens by name. */
  definitions?: readonly AnyDefinition[];
  services?: Record<string, unknown>;
}

/** A context that knows settings, services and a silent log; anything else is not there. */
export function providerContext(options: ProviderContextOptions = {}): Context {
  const services = new Map<string, unknown>(Object.entries(options.services ?? {}));
  const silent = () => {};
  const context = {
    owner: "test",
    signal: new AbortController().signal,
    log: { debug: silent, info: silent, warn: silent, error: silent },
    setting: <T>(setting: SettingDefinition<T>): T => (options.settings?.[setting.name] as T | undefined) ?? setting.default,
    scope: { own: () => async () => {} },
    tryUse: <T>(token: Token<T>): T | undefined => {
      if (!services.has(token.name)) {
        const definition = options.definitions?.find(
          (candidate) => candidate.kind === "service" && candidate.name === token.name,
        );
        if (definition?.kind === "service") services.set(token.name, definition.create(context));
      }
      return services.get(token.name) as T | undefined;
    },
    use: <T>(token: Token<T>): T => {
      const service = context.tryUse(token);
      if (service === undefined) throw new Error(`Nothing provides "${token.name}"`);
      return service;
    },
  } as unknown as Context;
  return context;
}

/** The one provider among what a unit's file exports. */
export function providerOf(exported: unknown): ProviderDefinition {
  const definitions = Array.isArray(exported) ? exported : [exported];
  const provider = definitions.find((definition) => definition.kind === "provider");
  if (!provider) throw new Error("The file exports no provider");
  return provider as ProviderDefinition;
}

/** A request with one user text, changed by `change`. */
export function requestOf(model: Model, change: Partial<ProviderRequest> & { text?: string } = {}): ProviderRequest {
  const { text = "Hello", ...rest } = change;
  return {
    model,
    systemPrompt: [],
    messages: [{ role: "user", content: text, timestamp: 1 }],
    tools: [],
    thinkingLevel: "off",
    signal: new AbortController().signal,
    apiKey: "test-key",
    ...rest,
  };
}

/** All events of a stream; `onEvent` sees each as it comes. */
export async function collect(
  stream: AsyncIterable<ProviderEvent>,
  onEvent?: (event: ProviderEvent) => void,
): Promise<ProviderEvent[]> {
  const events: ProviderEvent[] = [];
  for await (const event of stream) {
    events.push(event);
    onEvent?.(event);
  }
  return events;
}

/** The text of all deltas of one kind. */
export function joined(events: readonly ProviderEvent[], type: "text_delta" | "thinking_delta" | "toolcall_delta"): string {
  return events.map((event) => (event.type === type ? event.delta : "")).join("");
}

/** The last event, which must be a failure. */
export function failureOf(events: readonly ProviderEvent[]) {
  const last = events.at(-1);
  if (last?.type !== "error") throw new Error(`The stream did not fail: ${JSON.stringify(last)}`);
  return last.error;
}
