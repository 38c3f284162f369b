// `tool_call` and `tool_result`. One `tool_call` handler may both change the arguments and block, we ask for these at two
// points: the handler runs once, where arguments may change, and its verdict is given where calls are decided.
// Invariant: a handler that throws, hangs or never ran blocks the call.
import { isDeepStrictEqual } from "node:util";
import {
  type Context,
  defineHook,
  errorMessage,
  type ToolCallValue,
  type ToolFinishedValue,
  toolDecide,
  toolFinished,
  toolRewrite,
  type Veto,
} from "mortise/extension";
import { createContext } from "./_context.ts";
import { storable, toContent } from "./_results.ts";
import type { Handler, Runtime } from "./_runtime.ts";
import { isObject } from "./_schema.ts";
import { type Verdict, Verdicts } from "./verdicts.ts";

const NO_REASON = "Tool execution was blocked by an extension";

/** The two hooks of one `tool_call` handler. */
export function toolCallHooks(runtime: Runtime, handler: Handler) {
  const key = {};
  const ask = (call: ToolCallValue, ctx: Context) => askHandler(runtime, handler, call, ctx);
  return [
    defineHook(toolRewrite, async (call, ctx) => {
      const verdicts = ctx.use(Verdicts).of(call.signal, call.toolCallId);
      if (verdicts.blocked) {
        verdicts.byHandler.set(key, { state: "allowed" });
        return undefined;
      }
      verdicts.byHandler.set(key, { state: "running" });
      const { verdict, input } = await ask(call, ctx);
      verdicts.byHandler.set(key, verdict);
      verdicts.blocked ||= verdict.state === "blocked";
      return verdict.state === "blocked" || isDeepStrictEqual(input, call.args) ? undefined : { ...call, args: input };
    }),
    defineHook(toolDecide, async (call, ctx) => {
      const { byHandler } = ctx.use(Verdicts).of(call.signal, call.toolCallId);
      const verdict = byHandler.get(key) ?? (await ask(call, ctx)).verdict;
      byHandler.delete(key);
      if (byHandler.size === 0) ctx.use(Verdicts).forget(call.signal, call.toolCallId);
      return toVeto(runtime, verdict);
    }),
  ];
}

function toVeto(runtime: Runtime, verdict: Verdict): Veto | undefined {
  if (verdict.state === "allowed") return undefined;
  if (verdict.state === "blocked") return { block: true, reason: verdict.reason, endRun: verdict.endRun };
  return { block: true, reason: `A tool_call handler of "${runtime.owner}" did not answer in time` };
}

async function askHandler(
  runtime: Runtime,
  handler: Handler,
  call: ToolCallValue,
  ctx: Context,
): Promise<{ verdict: Verdict; input: Record<string, unknown> }> {
  const event: Record<string, unknown> = {
    type: "tool_call",
    toolCallId: call.toolCallId,
    toolName: call.toolName,
    input: structuredClone(call.args),
  };
  try {
    const answer = await runtime.run(ctx, () => handler(event, createContext(runtime, ctx)));
    if (isObject(answer) && answer["block"] === true) {
      const { reason, terminate } = answer;
      const told = typeof reason === "string" && reason ? reason : NO_REASON;
      return { verdict: { state: "blocked", reason: told, endRun: terminate === true }, input: {} };
    }
    const input = isObject(answer) && isObject(answer["input"]) ? answer["input"] : event["input"];
    return { verdict: { state: "allowed" }, input: isObject(input) ? input : {} };
  } catch (error) {
    runtime.report("tool_call", error);
    const reason = `A tool_call handler of "${runtime.owner}" failed: ${errorMessage(error)}`;
    return { verdict: { state: "blocked", reason }, input: {} };
  }
}

/** The hook of one `tool_result` handler: its answer is a patch over what the handlers before it made. */
export function toolResultHook(runtime: Runtime, handler: Handler) {
  return defineHook(toolFinished, async (finished, ctx) => {
    const { result } = finished;
    const event = {
      type: "tool_result",
      toolCallId: finished.toolCallId,
      toolName: finished.toolName,
      input: structuredClone(finished.args),
      content: structuredClone(result.content),
      details: result.details,
      isError: finished.isError,
    };
    try {
      const answer = await runtime.run(ctx, () => handler(event, createContext(runtime, ctx)));
      return isObject(answer) ? patched(finished, answer) : undefined;
    } catch (error) {
      runtime.report("tool_result", error);
      return undefined;
    }
  });
}

function patched(finished: ToolFinishedValue, patch: Record<string, unknown>): ToolFinishedValue {
  const isError = typeof patch["isError"] === "boolean" ? patch["isError"] : finished.isError;
  return {
    ...finished,
    isError,
    result: {
      ...finished.result,
      ...(patch["content"] === undefined ? {} : { content: toContent(patch["content"]) }),
      ...("details" in patch ? { details: storable(patch["details"]) } : {}),
      isError,
    },
  };
}
