// What the model may call.
import type { z } from "zod";
import type { ToolResult } from "../../protocol/message.ts";
import type { Context } from "../kernel/context.ts";
import { type Definition, define, type MaybePromise } from "../kernel/definition.ts";
import type { ConversationHandle } from "./conversation-types.ts";

export interface ToolContext extends Context {
  readonly toolCallId: string;
  readonly conversation: ConversationHandle;
  /** The session's working directory; relative paths resolve against it, never against the process's. */
  readonly cwd: string;
  /** Sends a cumulative snapshot as `tool_execution_update`; bounded in rate by the loop. */
  update(partial: ToolResult): void;
  /** Runs another tool by name on behalf of this call, hooks included. */
  runTool(name: string, args: Record<string, unknown>): Promise<ToolResult>;
  /** Asks that the run end with this turn, without another answer of the model: done when every call of the turn asks for it. */
  endRun(): void;
  /** The contribution this one shadows, or undefined; an override calls it to pass through. */
  readonly next: ((args: Record<string, unknown>) => Promise<ToolResult>) | undefined;
}

export interface ToolDefinition<P = Record<string, unknown>> extends Definition<"tool"> {
  /** Shown by hosts; defaults to the name. */
  readonly label?: string | undefined;
  /** Teaches the model what the tool is for. */
  readonly description: string;
  /** A zod object, or a JSON Schema that is validated as it is. */
  readonly params: z.ZodType<P> | Record<string, unknown>;
  /**
   * `shared` calls of one message run together (default); an `exclusive` one waits for all before it and holds all after it.
   */
  readonly concurrency?: "shared" | "exclusive" | { decide(args: P): "shared" | "exclusive" }["decide"] | undefined;
  /** True for pure waits, which immediate steering may abort while they run. */
  readonly interruptible?: boolean | undefined;
  /** Registered but not offered to the model until activated. */
  readonly hidden?: boolean | undefined;
  /** Whether the tool is offered in a conversation, e.g. `ask` only where the host shows dialogs. */
  available?(ctx: {
    mode: "rpc" | "rpc-ui";
    hasUI: boolean;
    isSubagent: boolean;
    setting: <T>(path: string) => T;
    /** For tools that need another contribution or service. */
    context?: Context | undefined;
  }): boolean;
  /**
   * True when it changes nothing, on no machine: the modes of `tools.approvalMode` let it pass. A tool of which only some calls are
   * that decides by the arguments.
   */
  readonly readOnly?: boolean | { decide(args: P): boolean }["decide"] | undefined;
  /** One line and bullet points for the system prompt. */
  readonly promptSnippet?: string | undefined;
  readonly promptGuidelines?: readonly string[] | undefined;
  /** Which wire source names it, for the docs. */
  readonly source?: "host" | "extension" | undefined;
  /** Brings raw arguments into shape before they are validated; a throw is a validation error. */
  prepareArguments?(args: unknown): unknown;
  /** Returns the result; a string is one text block. Throw ToolError for an error result. */
  run(ctx: ToolContext, args: P): MaybePromise<ToolResult | string>;
}

export function defineTool<P>(tool: Omit<ToolDefinition<P>, "kind">): ToolDefinition<P> {
  return define({ kind: "tool", ...tool });
}

/** One text block. */
export function textResult(text: string, details?: unknown): ToolResult {
  return details === undefined ? { content: [{ type: "text", text }] } : { content: [{ type: "text", text }], details };
}

declare module "../kernel/definition.ts" {
  interface Kinds {
    tool: ToolDefinition;
  }
}
