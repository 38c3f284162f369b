// One tool call from arguments to result: repair and validation, the four hook points before it, the run itself with its own
// signal, the hook after it. Never throws: whatever goes wrong is an error result for the model.
import type { ToolResult } from "../../protocol/message.ts";
import { runCall } from "../kernel/attribution.ts";
import type { Context, PinnedHooks } from "../kernel/context.ts";
import { errorMessage, ToolError } from "../kernel/errors.ts";
import type { HookPoint, Veto } from "../kernel/hooks.ts";
import type { Entry } from "../kernel/registry.ts";
import type { ConversationHandle } from "./conversation-types.ts";
import { type ToolCallValue, toolDecide, toolFinished, toolObserve, toolRewrite, toolSeal } from "./hook-points.ts";
import { abortReason } from "./stream.ts";
import type { ToolContext } from "./tool.ts";
import { prepareArguments } from "./tool-arguments.ts";
import { untilAborted } from "./until-aborted.ts";

/** How long a tool that was aborted may take to hand in its own result; it goes on behind the run's back after that. */
const ABORT_GRACE_MS = 80;
/** How long handlers of `toolFinished` may take once the run is aborted. */
const ABORTED_HOOK_MS = 1000;
const CALL_POINTS = [toolObserve, toolRewrite, toolDecide, toolSeal, toolFinished] as const;

export interface ToolInvocation {
  readonly id: string;
  readonly name: string;
  readonly args: Record<string, unknown>;
}

export interface ExecutionPort {
  /** The daemon's own context with the conversation of the call and the signal of the run. */
  readonly ctx: Context;
  readonly conversation: ConversationHandle;
  /** The tool that answers a name in this conversation now. */
  find(name: string): Entry<"tool"> | undefined;
}

export interface ExecutionWatch {
  /** Aborted when this call is given up. */
  readonly signal: AbortSignal;
  /** Told once, before anything else, with repaired arguments. */
  started?(args: Record<string, unknown>): void;
  /** Waits for its turn to ask the gates; resolves to a result that replaces the run. */
  beforeGates?(): Promise<ToolResult | undefined>;
  gatesPassed?(): void;
  update?(partial: ToolResult): void;
  /** The tool, or the gate that blocked it, asks that the run end with this turn. */
  endRun?(): void;
}

export interface Execution {
  readonly args: Record<string, unknown>;
  readonly result: ToolResult;
  readonly isError: boolean;
}

export function errorResult(text: string, details?: unknown): ToolResult {
  const content: ToolResult["content"] = [
    { type: "text", text: text.trim() === "" ? "The tool failed without a message" : text },
  ];
  return details === undefined ? { content, isError: true } : { content, details, isError: true };
}

/** For calls that never ran: told apart from real failures by `details`. */
export function syntheticResult(text: string, source: string): ToolResult {
  return errorResult(text, { __synthetic: true, source, executed: false });
}

/** Runs one call of the model, or of a tool on its behalf, hooks included. */
export async function executeTool(port: ExecutionPort, call: ToolInvocation, watch: ExecutionWatch): Promise<Execution> {
  const entry = port.find(call.name);
  if (entry === undefined) {
    watch.started?.(call.args);
    return failed(call.args, syntheticResult(`Tool ${call.name} not found`, "unknown-tool"));
  }
  const release = entry.scope.lease("run");
  const hooks = port.ctx.pinHooks(CALL_POINTS);
  const work = new CallInProgress(port, entry, call, watch, hooks);
  try {
    return await work.run();
  } catch (error) {
    return failed(call.args, errorResult(errorMessage(error)));
  } finally {
    hooks.release();
    // A tool that ignores the abort keeps its generation until it is really over.
    if (work.running === undefined) release();
    else void work.running.then(release, release);
  }
}

function failed(args: Record<string, unknown>, result: ToolResult): Execution {
  return { args, result, isError: true };
}

class CallInProgress {
  readonly #port: ExecutionPort;
  readonly #entry: Entry<"tool">;
  readonly #call: ToolInvocation;
  readonly #watch: ExecutionWatch;
  readonly #hooks: PinnedHooks;
  /** The points that had handlers when the call began; the pinned ones answer, whatever is reloaded meanwhile. */
  readonly #handled: ReadonlySet<string>;
  running: Promise<unknown> | undefined;
  #over = false;

  constructor(port: ExecutionPort, entry: Entry<"tool">, call: ToolInvocation, watch: ExecutionWatch, hooks: PinnedHooks) {
    this.#port = port;
    this.#entry = entry;
    this.#call = call;
    this.#watch = watch;
    this.#hooks = hooks;
    this.#handled = new Set(CALL_POINTS.filter((point) => port.ctx.hasHooks(point)).map((point) => point.name));
  }

  async run(): Promise<Execution> {
    const prepared = await prepareArguments(this.#entry.definition, this.#call.args);
    this.#watch.started?.(prepared.ok ? prepared.args : this.#call.args);
    if (!prepared.ok) return this.#finish(this.#call.args, errorResult(prepared.text));
    let args = prepared.args;
    const instead = await this.#watch.beforeGates?.();
    try {
      if (instead !== undefined) return failed(args, instead);
      const gate = await this.#gates(args);
      args = gate.args;
      if (gate.result !== undefined) return await this.#finish(args, gate.result);
    } finally {
      this.#watch.gatesPassed?.();
    }
    if (this.#watch.signal.aborted) return failed(args, notExecuted(this.#watch.signal));
    return await this.#finish(args, await this.#execute(args));
  }

  /** observe → rewrite → decide → seal. A result means that the call does not run. */
  async #gates(prepared: Record<string, unknown>): Promise<{ args: Record<string, unknown>; result?: ToolResult }> {
    let args = prepared;
    await this.#hook(toolObserve, args);
    const rewritten = (await this.#hook(toolRewrite, args))?.args;
    if (rewritten !== undefined && rewritten !== args) {
      const again = await prepareArguments(this.#entry.definition, { ...rewritten });
      if (!again.ok) return { args, result: errorResult(again.text) };
      args = again.args;
    }
    // Gates see a copy: what they do to it changes nothing.
    const decided = this.#handled.has(toolDecide.name) ? await this.#hook(toolDecide, copyOf(args)) : undefined;
    if (decided !== undefined) return { args, result: this.#blocked(decided) };
    if (this.#handled.has(toolSeal.name)) args = deepFreeze(args);
    const sealed = await this.#hook(toolSeal, args);
    if (sealed !== undefined) return { args, result: this.#blocked(sealed) };
    return { args };
  }

  #blocked(verdict: Veto): ToolResult {
    if (verdict.endRun === true) this.#watch.endRun?.();
    return syntheticResult(verdict.reason?.trim() || `The call of "${this.#call.name}" was blocked`, "blocked");
  }

  /** Gives up with the call: what a handler would have answered after that does not matter any more. */
  async #hook<Out>(point: HookPoint<ToolCallValue, Out>, args: Record<string, unknown>): Promise<Out | undefined> {
    if (!this.#handled.has(point.name)) return undefined;
    const { signal } = this.#watch;
    const { conversation, ctx } = this.#port;
    const value = { conversation, toolCallId: this.#call.id, toolName: this.#call.name, args, signal };
    return untilAborted(this.#hooks.run(point, value, ctx.derive({ signal })), signal, 0);
  }

  async #execute(args: Record<string, unknown>): Promise<ToolResult> {
    const { signal } = this.#watch;
    const running = runEntry(this.#port, this.#entry, this.#call, args, {
      signal,
      update: (partial) => {
        if (!this.#over) this.#watch.update?.(partial);
      },
      endRun: () => {
        if (!this.#over) this.#watch.endRun?.();
      },
    });
    this.running = running;
    try {
      const result = await untilAborted(running, signal, ABORT_GRACE_MS);
      return result ?? errorResult(`Tool execution was aborted: ${abortReason(signal)}`);
    } catch (error) {
      return toErrorResult(error);
    } finally {
      this.#over = true;
    }
  }

  /** The hook over the result also runs for failures and after an abort, then with little time. */
  async #finish(args: Record<string, unknown>, raw: ToolResult): Promise<Execution> {
    let result = raw;
    let isError = raw.isError === true;
    const { ctx, conversation } = this.#port;
    if (this.#handled.has(toolFinished.name)) {
      const value = { conversation, toolCallId: this.#call.id, toolName: this.#call.name, args, result, isError };
      const answer = this.#hooks.run(toolFinished, value, ctx.derive({ signal: this.#watch.signal }));
      const changed = await untilAborted(answer, this.#watch.signal, ABORTED_HOOK_MS);
      if (changed !== undefined) {
        result = changed.result;
        isError = changed.isError;
      }
    }
    result = normalise(result, isError);
    return { args, result, isError };
  }
}

/** What a running tool may do besides answering. */
type RunningTool = Required<Pick<ExecutionWatch, "signal" | "update" | "endRun">>;

/** Runs one entry of a name's stack; `next` reaches the one below it. Rejects with what the tool throws. */
async function runEntry(
  port: ExecutionPort,
  entry: Entry<"tool">,
  call: ToolInvocation,
  args: Record<string, unknown>,
  { signal, update, endRun }: RunningTool,
): Promise<ToolResult> {
  const { conversation } = port;
  const base = port.ctx.derive({ scope: entry.scope, signal, locals: { conversation } });
  let nested = 0;
  const members: Omit<ToolContext, keyof Context | "conversation"> = {
    toolCallId: call.id,
    cwd: conversation.cwd,
    update,
    endRun,
    runTool: async (name, nestedArgs) => {
      const id = `${call.id}.${++nested}`;
      return (await executeTool(port, { id, name, args: nestedArgs }, { signal })).result;
    },
    next: shadowed(port, entry, call, { signal, update, endRun }),
  };
  const ctx = Object.assign(base, members) as ToolContext;
  const result = await runCall({ scope: entry.scope, locals: { conversation }, invocation: port.ctx.invocation }, () =>
    entry.definition.run(ctx, args),
  );
  return typeof result === "string" ? { content: [{ type: "text", text: result }] } : result;
}

/** What `entry` covers, as a function; it holds its own generation while it runs. */
function shadowed(port: ExecutionPort, entry: Entry<"tool">, call: ToolInvocation, running: RunningTool): ToolContext["next"] {
  const stack = port.ctx.registry.stack("tool", entry.name);
  const below = stack[stack.indexOf(entry) + 1];
  if (below === undefined || !stack.includes(entry)) return undefined;
  return async (args) => {
    const prepared = await prepareArguments(below.definition, args);
    if (!prepared.ok) throw new ToolError(prepared.text);
    const release = below.scope.lease("run");
    try {
      return await runEntry(port, below, call, prepared.args, running);
    } finally {
      release();
    }
  };
}

export function notExecuted(signal: AbortSignal): ToolResult {
  return syntheticResult(`Tool was not executed because the run was aborted: ${abortReason(signal)}.`, "aborted");
}

function toErrorResult(error: unknown): ToolResult {
  return errorResult(errorMessage(error), ToolError.is(error) ? error.details : undefined);
}

/** A result as it can be stored: blocks that are blocks, an error that says something, details that are JSON. */
function normalise(result: ToolResult, isError: boolean): ToolResult {
  const raw: unknown = result;
  const content = typeof raw === "object" && raw !== null && Array.isArray(result.content) ? result.content.filter(isBlock) : [];
  const says = content.some((block) => block.type === "image" || block.text.trim() !== "");
  if (isError && !says) return { ...result, ...errorResult(""), ...jsonDetails(result) };
  return { content, ...jsonDetails(result), ...(isError ? { isError: true } : {}) };
}

function isBlock(block: unknown): block is ToolResult["content"][number] {
  if (typeof block !== "object" || block === null || !("type" in block)) return false;
  if (block.type === "text") return "text" in block && typeof block.text === "string";
  return (
    block.type === "image" &&
    "data" in block &&
    typeof block.data === "string" &&
    "mimeType" in block &&
    typeof block.mimeType === "string"
  );
}

/** Details that JSON cannot hold are dropped: they would make the session unwritable. */
function jsonDetails(result: ToolResult): { details?: unknown } {
  if (result?.details === undefined) return {};
  try {
    return JSON.stringify(result.details) === undefined ? {} : { details: result.details };
  } catch {
    return {};
  }
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const field of Object.values(value)) deepFreeze(field);
  return value;
}

function copyOf<T>(value: T): T {
  try {
    return structuredClone(value);
  } catch {
    return value;
  }
}
