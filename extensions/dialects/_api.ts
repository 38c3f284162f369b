// The `pi` object: what an extension's factory gets. Every member is a closure, so `const { on } = pi` works.
import { type Context, errorMessage, Models, Settings, type SetupScope, SlashCommands, ThinkingLevel } from "mortise/extension";
import { createBus } from "./_bus.ts";
import { toSlashCommand } from "./_commands.ts";
import { createContext } from "./_context.ts";
import { toCustomMessage } from "./_events.ts";
import { exec } from "./_exec.ts";
import { injectedLibraries } from "./_libraries.ts";
import { Lifecycle } from "./_lifecycle.ts";
import { toKnownModel } from "./_models.ts";
import { providerDefinitions } from "./_providers.ts";
import { storable, toContent, toImages } from "./_results.ts";
import { Runtime } from "./_runtime.ts";
import { isObject, toJsonSchema } from "./_schema.ts";
import { setLabel } from "./_session-manager.ts";
import { isForeignTool, toTool } from "./_tools.ts";
import type { Traits } from "./_traits.ts";
import { runCommand } from "./_wire.ts";

type Definitions = Parameters<Runtime["scope"]["add"]>;

/** The set-up of the extension behind a factory: calls the factory with a fresh `pi` object. */
export async function runFactory(factory: (api: unknown) => unknown, traits: Traits, scope: SetupScope): Promise<void> {
  const runtime = new Runtime(scope, traits);
  const lifecycle = new Lifecycle(runtime);
  const libraries = traits.injectsLibraries ? await injectedLibraries(runtime) : {};
  const pi = createApi(runtime, lifecycle, libraries);
  const returned: unknown = await runtime.run(scope.ctx, () => factory(pi));
  if (traits.returnsTools) addReturnedTools(runtime, lifecycle, returned);
  lifecycle.install();
}

/** Older `tools/` folders: the factory gives back one tool or several, with their own session events. */
function addReturnedTools(runtime: Runtime, lifecycle: Lifecycle, returned: unknown): void {
  for (const tool of Array.isArray(returned) ? returned : [returned]) {
    if (!isForeignTool(tool)) continue;
    runtime.scope.add(toTool(runtime, tool, "signal-last"));
    const { onSession, dispose } = tool;
    if (typeof onSession === "function") {
      const told = (reason: string) => (event: Record<string, unknown>, ctx: object) =>
        onSession.call(tool, { reason, previousSessionFile: event["previousSessionFile"] }, ctx);
      lifecycle.on("session_start", told("start"));
      lifecycle.on("session_switch", told("switch"));
      lifecycle.on("session_branch", told("branch"));
      lifecycle.on("session_shutdown", told("shutdown"));
    }
    if (typeof dispose === "function") runtime.scope.own(() => dispose.call(tool), `dispose of ${tool.name}`);
  }
}

function createApi(runtime: Runtime, lifecycle: Lifecycle, libraries: Record<string, unknown>): object {
  const pi = {
    on: (event: unknown, handler: unknown) => {
      runtime.assertUsable("on");
      if (typeof event !== "string" || typeof handler !== "function") throw new Error("on needs an event name and a function");
      return lifecycle.on(event, handler as Parameters<Lifecycle["on"]>[1]);
    },
    events: createBus(runtime),
    exec: (command: string, args: readonly string[] = [], options?: unknown) => {
      runtime.assertUsable("exec");
      return exec(runtime, command, args, options);
    },
    ...registrations(runtime),
    ...messages(runtime),
    ...session(runtime),
    ...tools(runtime),
    ...models(runtime),
  };
  Object.defineProperties(pi, Object.getOwnPropertyDescriptors(libraries));
  if (runtime.traits.returnsTools) Object.defineProperties(pi, Object.getOwnPropertyDescriptors(folderToolMembers(runtime)));
  return pi;
}

/** What factories of older tool folders read from their argument. */
function folderToolMembers(runtime: Runtime): object {
  return {
    get cwd() {
      return runtime.ctx.conversation.cwd;
    },
    get hasUI() {
      return runtime.ctx.hasUI;
    },
    get ui() {
      return createContext(runtime, runtime.ctx)["ui"];
    },
  };
}

/** A set of contributions by name: registering a name again replaces what was registered before. */
class Named {
  readonly #removals = new Map<string, () => void>();
  readonly #runtime: Runtime;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  set(name: string, ...definitions: Definitions): void {
    this.#removals.get(name)?.();
    this.#removals.set(name, this.#runtime.scope.add(...definitions));
  }

  remove(name: string): void {
    this.#removals.get(name)?.();
    this.#removals.delete(name);
  }
}

function registrations(runtime: Runtime): Record<string, unknown> {
  const named = { tools: new Named(runtime), commands: new Named(runtime), providers: new Named(runtime) };
  const flags = new Map<string, unknown>();
  // Kept with the generation for whoever asks for them later; nothing in RPC mode draws them or presses keys.
  const stored = new Map<string, unknown>();
  const store = (kind: string) => (name: unknown, value?: unknown) => {
    runtime.assertUsable(kind);
    stored.set(`${kind} ${typeof name === "string" ? name : stored.size}`, value ?? name);
  };
  return {
    registerTool: (tool: unknown) => {
      runtime.assertUsable("registerTool");
      const definition = toTool(runtime, tool, "signal-first");
      named.tools.set(definition.name, definition);
    },
    registerCommand: (name: unknown, options: unknown) => {
      runtime.assertUsable("registerCommand");
      const definition = toSlashCommand(runtime, name, options);
      stored.set(`completions ${definition.name}`, isObject(options) ? options["getArgumentCompletions"] : undefined);
      named.commands.set(definition.name, definition);
    },
    registerFlag: (name: string, options: unknown) => {
      runtime.assertUsable("registerFlag");
      flags.set(name, isObject(options) ? options["default"] : undefined);
    },
    getFlag: (name: string) =>
      flags.has(name) ? (runtime.scope.ctx.tryUse(Settings)?.getPath(`flags.${name}`) ?? flags.get(name)) : undefined,
    registerProvider: (first: unknown, config?: unknown) => {
      runtime.assertUsable("registerProvider");
      const name = typeof first === "string" ? first : isObject(first) ? String(first["id"] ?? first["name"] ?? "") : "";
      const add = () => named.providers.set(name, ...providerDefinitions(runtime, name, isObject(config) ? config : first));
      // Changing the address of known models needs the model services, which a loading extension cannot ask.
      if (isObject(config) && !Array.isArray(config["models"])) runtime.whenLive(add);
      else add();
    },
    unregisterProvider: (name: string) => named.providers.remove(name),
    registerShortcut: store("registerShortcut"),
    registerMessageRenderer: store("registerMessageRenderer"),
    registerEntryRenderer: store("registerEntryRenderer"),
    registerToolRenderer: store("registerToolRenderer"),
    registerMarkdownTransformer: store("registerMarkdownTransformer"),
    registerAssistantThinkingRenderer: store("registerAssistantThinkingRenderer"),
    registerComposerShape: store("registerComposerShape"),
    ...withoutEffect(runtime, store, [
      "registerMcpServer",
      "registerVirtualModel",
      "registerFileWriteFallback",
      "registerFileDeleteFallback",
    ]),
    unregisterMcpServer: () => {},
    getMcpServers: () => [],
  };
}

/** Registrations that would change behaviour and do not here: accepted, and said once. */
function withoutEffect(
  runtime: Runtime,
  store: (kind: string) => (name: unknown, value?: unknown) => void,
  names: readonly string[],
): Record<string, unknown> {
  return Object.fromEntries(
    names.map((name) => [
      name,
      (first: unknown, value?: unknown) => {
        runtime.warnOnce(name, `${name} has no effect here`);
        store(name)(first, value);
      },
    ]),
  );
}

function messages(runtime: Runtime): Record<string, unknown> {
  return {
    sendMessage: (message: unknown, options?: unknown) => {
      const ctx = runtime.action("sendMessage");
      const custom = toCustomMessage(message);
      if (custom?.role !== "custom") throw new Error("sendMessage needs an object with customType and content");
      const { role, timestamp, ...fields } = custom;
      const triggerTurn = isObject(options) && options["triggerTurn"] === true;
      const delivery = deliveryOf(options);
      return track(
        runtime,
        ctx,
        "sendMessage",
        ctx.conversation.submitCustom({ ...fields, attribution: "agent" }, { triggerTurn, delivery, invocation: ctx.invocation }),
      );
    },
    sendUserMessage: (content: unknown, options?: unknown) => {
      const ctx = runtime.action("sendUserMessage");
      const delivery = deliveryOf(options) ?? (ctx.conversation.isStreaming ? "steer" : undefined);
      const images = isObject(options) ? toImages(options["images"]) : undefined;
      return track(
        runtime,
        ctx,
        "sendUserMessage",
        ctx.conversation.submit(typeof content === "string" ? content : toContent(content), {
          ...(delivery === undefined ? {} : { delivery: delivery === "followUp" ? "followUp" : "steer" }),
          ...(images === undefined ? {} : { images }),
          attribution: "agent",
          invocation: ctx.invocation,
        }),
      );
    },
    appendEntry: (customType: unknown, data?: unknown) => {
      const ctx = runtime.action("appendEntry");
      const entry = ctx.conversation.log.append({ type: "custom", customType: String(customType), data: storable(data) });
      return entry.id;
    },
  };
}

/** omp's asides join the run at its next step, as steering does. */
function deliveryOf(options: unknown): "steer" | "followUp" | "nextTurn" | undefined {
  const value = isObject(options) ? options["deliverAs"] : undefined;
  if (value === "aside") return "steer";
  return value === "steer" || value === "followUp" || value === "nextTurn" ? value : undefined;
}

/**
 * Nobody has to wait for a submission: its failure is reported, and the command that caused it counts as agent work until the
 * submission is accepted (agent-semantics §12 item 12). The result of omp's variants may be awaited.
 */
function track(runtime: Runtime, ctx: Context, event: string, submission: Promise<void>): Promise<void> {
  const accepted = submission.catch((error: unknown) => runtime.report(event, error));
  const { invocation } = ctx;
  invocation?.pending.add(accepted);
  return accepted.finally(() => invocation?.pending.delete(accepted));
}

function session(runtime: Runtime): Record<string, unknown> {
  return {
    setSessionName: (name: unknown) => {
      runtime.action("setSessionName").conversation.log.setName(String(name), "user");
    },
    getSessionName: () => runtime.action("getSessionName").conversation.log.name,
    setLabel: (target: unknown, ...rest: unknown[]) => {
      // omp: one argument labels the extension itself, which nothing shows here.
      if (rest.length === 0) return;
      const [label] = rest;
      setLabel(runtime.action("setLabel"), String(target), typeof label === "string" ? label : undefined);
    },
    getCommands: () => {
      const listing = runtime.action("getCommands").use(SlashCommands).listing();
      return listing.map((command) => (isObject(command) ? { ...command } : command));
    },
    getSettings: () => runtime.action("getSettings").use(Settings).all(),
    compact: (options?: unknown) => runCommand(runtime.action("compact"), "compact", isObject(options) ? options : {}),
  };
}

function tools(runtime: Runtime): Record<string, unknown> {
  const offered = (ctx: Context): string[] =>
    ctx.conversation.activeTools?.slice() ?? ctx.conversation.toolSchemas().map((tool) => tool.name);
  return {
    getActiveTools: () => offered(runtime.action("getActiveTools")),
    getAllTools: () => {
      const { registry } = runtime.action("getAllTools");
      return registry.list("tool").map(({ name, definition, scope }) => ({
        name,
        label: definition.label ?? name,
        description: definition.description,
        parameters: toJsonSchema(definition.params),
        sourceInfo: { path: scope.owner.id, source: scope.owner.origin === "builtin" ? "builtin" : "extension" },
      }));
    },
    setActiveTools: (names: unknown) => {
      const list = Array.isArray(names) ? names.map(String) : [];
      runtime.action("setActiveTools").conversation.setActiveTools(list);
      return runtime.traits.injectsLibraries ? Promise.resolve() : undefined;
    },
  };
}

function models(runtime: Runtime): Record<string, unknown> {
  return {
    setModel: async (model: unknown) => {
      const ctx = runtime.action("setModel");
      const known = toKnownModel(ctx, model);
      const providers = ctx
        .use(Models)
        .available()
        .map((each) => each.provider);
      if (known === undefined || !providers.includes(known.provider)) return false;
      await runCommand(ctx, "set_model", { provider: known.provider, modelId: known.id });
      return true;
    },
    getThinkingLevel: () => runtime.action("getThinkingLevel").conversation.selection.thinkingLevel,
    setThinkingLevel: (level: unknown) => {
      const ctx = runtime.action("setThinkingLevel");
      const parsed = ThinkingLevel.safeParse(level);
      if (!parsed.success)
        throw new Error(`Thinking level must be one of ${ThinkingLevel.options.join(", ")}, found ${errorText(level)}`);
      const { model, thinkingLevel: before } = ctx.conversation.selection;
      const thinkingLevel = model === undefined ? parsed.data : ctx.use(Models).clamp(model, parsed.data);
      if (thinkingLevel === before) return;
      ctx.conversation.select({ thinkingLevel });
      ctx.conversation.emitRaw({ type: "thinking_level_changed", thinkingLevel });
    },
    getServiceTier: () => undefined,
    setServiceTier: () => {},
    getServiceTiers: () => ({}),
    setServiceTiers: () => {},
  };
}

function errorText(value: unknown): string {
  return typeof value === "string" ? `"${value}"` : errorMessage(value);
}
