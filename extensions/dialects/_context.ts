// The `ctx` that handlers, tools and commands of the families get, over our context. All members work detached.
import { type Context, errorMessage, type ToolContext, Trust } from "mortise/extension";
import { createModelQuery, createModelRegistry } from "./_models.ts";
import type { Runtime } from "./_runtime.ts";
import { isObject } from "./_schema.ts";
import { createSessionManager } from "./_session-manager.ts";
import { runSideTurn } from "./_side-turn.ts";
import { createUi } from "./_ui.ts";
import { runCommand } from "./_wire.ts";
import { PromptMemory } from "./prompt-memory.ts";

/** Our context behind one of theirs, for the functions of the virtual modules. */
const origins = new WeakMap<object, Context>();

export function contextOf(ctx: unknown): Context | undefined {
  return isObject(ctx) ? origins.get(ctx) : undefined;
}

/** The members all contexts share. */
export function createContext(runtime: Runtime, ctx: Context): Record<string, unknown> {
  let ui: Record<string, unknown> | undefined;
  const foreign = {
    get ui() {
      ui ??= createUi(runtime, ctx);
      return ui;
    },
    mode: "rpc",
    get hasUI() {
      return ctx.hasUI;
    },
    get cwd() {
      return ctx.conversation.cwd;
    },
    get sessionManager() {
      return createSessionManager(ctx);
    },
    get modelRegistry() {
      return createModelRegistry(ctx);
    },
    get models() {
      return createModelQuery(ctx);
    },
    get model() {
      return ctx.conversation.selection.model;
    },
    get thinkingLevel() {
      return ctx.conversation.selection.thinkingLevel;
    },
    // The models a person cycles through with a key of the terminal.
    scopedModels: [],
    get signal() {
      return ctx.conversation.isStreaming ? ctx.signal : undefined;
    },
    isIdle: () => !ctx.conversation.isStreaming && !ctx.conversation.isCompacting,
    abort: () => runtime.background("abort", ctx.conversation.abort("Aborted by an extension")),
    hasPendingMessages: () => ctx.conversation.queue.count > 0,
    hasQueuedMessages: () => ctx.conversation.queue.count > 0,
    shutdown: () => ctx.shutdown(),
    getContextUsage: () => ctx.conversation.contextUsage(),
    compact: (options?: unknown) => compact(runtime, ctx, options),
    getSystemPrompt: () => systemPromptOf(runtime, ctx),
    isProjectTrusted: () => ctx.tryUse(Trust)?.isTrusted(ctx.conversation.cwd) ?? false,
    ...(runtime.traits.injectsLibraries
      ? { ...timers(runtime), runEphemeralTurn: (request: unknown) => runSideTurn(ctx, request) }
      : {}),
  };
  origins.set(foreign, ctx);
  return foreign;
}

/** Tools that call tools that call tools end somewhere. */
const MAX_DEPTH = 8;

/** A tool's context: besides the shared members, other tools. Under its own name it reaches the one it took the place of. */
export function createToolContext(runtime: Runtime, ctx: ToolContext, own: string): object {
  const executeTool = async (name: string, args?: unknown) => {
    const given = isObject(args) ? args : {};
    if (name === own && ctx.next !== undefined) return ctx.next(given);
    if (depthOf(ctx.toolCallId) >= MAX_DEPTH)
      throw new Error(`Cannot call ${name}: tools call each other ${MAX_DEPTH} deep at most`);
    return ctx.runTool(name, given);
  };
  return extend(createContext(runtime, ctx), ctx, {
    toolCallId: ctx.toolCallId,
    executeTool,
    invokeTool: executeTool,
    tools: { execute: executeTool },
  });
}

/** A call on behalf of another one has that one's id and a number. */
function depthOf(toolCallId: string): number {
  return (/(?:\.\d+)*$/.exec(toolCallId)?.[0].split(".").length ?? 1) - 1;
}

/** Adds members without reading the getters of `base`. */
export function extend(base: Record<string, unknown>, ctx: Context, members: Record<string, unknown>): object {
  Object.defineProperties(base, Object.getOwnPropertyDescriptors(members));
  origins.set(base, ctx);
  return base;
}

/** The prompt as the family writes it: one text or blocks. */
export function familyPrompt(runtime: Runtime, blocks: readonly string[]): string | string[] {
  return runtime.traits.promptBlocks ? [...blocks] : blocks.join("\n\n");
}

function systemPromptOf(runtime: Runtime, ctx: Context): string | string[] {
  return familyPrompt(runtime, ctx.tryUse(PromptMemory)?.get(ctx.conversation) ?? []);
}

/** Makes `getSystemPrompt()` answer before the first model call. */
export async function rememberPrompt(ctx: Context): Promise<void> {
  const memory = ctx.tryUse(PromptMemory);
  const { conversation } = ctx;
  if (memory !== undefined && memory.get(conversation).length === 0) memory.set(conversation, await conversation.systemPrompt());
}

/** pi does not wait for a compaction and hears of it by callbacks; omp gets a promise as well. */
function compact(runtime: Runtime, ctx: Context, options: unknown): Promise<void> | undefined {
  const instructions = typeof options === "string" ? options : isObject(options) ? options["customInstructions"] : undefined;
  const onComplete = isObject(options) ? options["onComplete"] : undefined;
  const onError = isObject(options) ? options["onError"] : undefined;
  const run = async (): Promise<void> => {
    try {
      const result = await runCommand(
        ctx,
        "compact",
        typeof instructions === "string" ? { customInstructions: instructions } : {},
      );
      if (typeof onComplete === "function") onComplete(result);
    } catch (error) {
      if (typeof onError !== "function") throw error;
      onError(error instanceof Error ? error : new Error(errorMessage(error)));
    }
  };
  const done = run();
  if (runtime.traits.injectsLibraries) return done;
  runtime.background("compact", done);
  return undefined;
}

/** omp's owned timers: cleared with the generation, their errors contained. */
function timers(runtime: Runtime): Record<string, unknown> {
  const undos = new Map<NodeJS.Timeout, () => Promise<void>>();
  const own = (timer: NodeJS.Timeout): NodeJS.Timeout => {
    undos.set(
      timer,
      runtime.scope.own(() => clearTimeout(timer), "timer"),
    );
    return timer;
  };
  const clear = (timer: NodeJS.Timeout | undefined): void => {
    const undo = timer === undefined ? undefined : undos.get(timer);
    if (timer === undefined || undo === undefined) return;
    undos.delete(timer);
    runtime.background("timer", undo());
  };
  return {
    setTimeout: (code: (...args: unknown[]) => unknown, delayMs?: number, ...args: unknown[]) => {
      const timer = setTimeout(() => {
        clear(timer);
        runtime.contain("timer", () => code(...args));
      }, delayMs);
      return own(timer);
    },
    setInterval: (code: (...args: unknown[]) => unknown, delayMs?: number, ...args: unknown[]) =>
      own(setInterval(() => runtime.contain("timer", () => code(...args)), delayMs)),
    clearTimer: clear,
  };
}
