// `pi.registerTool` and the older tool factories, as our tools.
import {
  defineTool,
  errorMessage,
  isAbort,
  type ToolContext,
  type ToolDefinition,
  ToolError,
  type ToolResult,
} from "mortise/extension";
import { createToolContext } from "./_context.ts";
import { toToolResult } from "./_results.ts";
import type { Runtime } from "./_runtime.ts";
import { isObject, toParams } from "./_schema.ts";

/** In which order `execute` takes its arguments: older tool folders of omp put the signal last. */
export type ArgumentOrder = "signal-first" | "signal-last";

/** What an extension gives, as far as it was looked at. */
interface ForeignTool {
  readonly name: string;
  readonly execute: (...args: unknown[]) => unknown;
  readonly [member: string]: unknown;
}

export function isForeignTool(value: unknown): value is ForeignTool {
  return isObject(value) && typeof value["name"] === "string" && typeof value["execute"] === "function";
}

/**
 * Turns a tool of the families into ours.
 *
 * @throws {Error} when name, `execute` or parameters do not fit; says which and what to use.
 */
export function toTool(runtime: Runtime, tool: unknown, order: ArgumentOrder): ToolDefinition<Record<string, unknown>> {
  if (!isForeignTool(tool) || tool.name === "") {
    throw new Error("registerTool needs an object with a name, a description, parameters and an execute function");
  }
  const { name } = tool;
  return defineTool<Record<string, unknown>>({
    name,
    label: textOf(tool["label"]) ?? name,
    description: textOf(tool["description"]) ?? name,
    params: toParams(tool["parameters"], name),
    concurrency: concurrencyOf(tool),
    hidden: tool["defaultActive"] === false || tool["hidden"] === true || tool["defaultInactive"] === true,
    promptSnippet: textOf(tool["promptSnippet"]),
    promptGuidelines: linesOf(tool["promptGuidelines"]),
    source: "extension",
    ...preparation(tool),
    run: (ctx, args) => execute(runtime, tool, order, ctx, args),
  });
}

async function execute(
  runtime: Runtime,
  tool: ForeignTool,
  order: ArgumentOrder,
  ctx: ToolContext,
  args: Record<string, unknown>,
): Promise<ToolResult> {
  const onUpdate = (partial: unknown): void => {
    if (!ctx.signal.aborted) ctx.update(toToolResult(partial));
  };
  const toolCtx = createToolContext(runtime, ctx, tool.name);
  try {
    const answer = await runtime.run(ctx, () =>
      order === "signal-first"
        ? tool.execute(ctx.toolCallId, args, ctx.signal, onUpdate, toolCtx)
        : tool.execute(ctx.toolCallId, args, onUpdate, toolCtx, ctx.signal),
    );
    // pi: no further answer of the model is wanted.
    if (isObject(answer) && answer["terminate"] === true) ctx.endRun();
    return toToolResult(answer);
  } catch (error) {
    if (isAbort(error, ctx.signal) || ToolError.is(error)) throw error;
    throw new ToolError(errorMessage(error), { cause: error });
  }
}

function preparation(tool: ForeignTool): { prepareArguments?(args: unknown): unknown } {
  const prepare = tool["prepareArguments"];
  return typeof prepare === "function" ? { prepareArguments: (args) => prepare.call(tool, args) } : {};
}

function concurrencyOf(tool: ForeignTool): "shared" | "exclusive" {
  return tool["executionMode"] === "sequential" || tool["concurrency"] === "exclusive" ? "exclusive" : "shared";
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function linesOf(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value.filter((line): line is string => typeof line === "string" && line !== "");
}
