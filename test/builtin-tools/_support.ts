// A tool's surroundings for tests that call a definition directly: real services, a real folder, a recording conversation.
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BashExecutionMessage, SlotDefinition, ToolContext, ToolDefinition, ToolResult } from "mortise/extension";
import { FileLocks, Shell, z } from "mortise/extension";
import { Scope } from "../../core/kernel/scope.ts";
import { Artifacts } from "../../core/session/artifacts.ts";
import fileLocks from "../../extensions/files/file-locks.ts";
import { RpcRuns } from "../../extensions/shell/_rpc-runs.ts";
import rpcRuns from "../../extensions/shell/rpc-runs.ts";
import shellUnit from "../../extensions/shell/shell.ts";

export interface Bench {
  readonly cwd: string;
  readonly ctx: ToolContext;
  readonly updates: ToolResult[];
  readonly recorded: BashExecutionMessage[];
  readonly shell: Shell;
  /** Validates the arguments as the loop does, then runs the tool; a thrown ToolError becomes an error result. */
  call<P>(tool: ToolDefinition<P>, args: Record<string, unknown>, signal?: AbortSignal): Promise<ToolResult>;
  close(): Promise<void>;
}

export interface BenchOptions {
  mode?: "rpc" | "rpc-ui";
  services?: Record<string, unknown>;
  ui?: unknown;
  settings?: Record<string, unknown>;
}

export function bench(options: BenchOptions = {}): Bench {
  const cwd = realpathSync(mkdtempSync(join(tmpdir(), "mortise-tools-")));
  const scope = new Scope({ owner: { id: "test", origin: "builtin", order: 0 }, generation: 1 });
  const services = new Map<string, unknown>(Object.entries(options.services ?? {}));
  const slots = new Map<string, unknown>();
  const updates: ToolResult[] = [];
  const recorded: BashExecutionMessage[] = [];
  const artifacts = new Artifacts(undefined);
  const never = new AbortController();
  const slot = <T>(definition: SlotDefinition<T>) => ({
    get: () => (slots.has(definition.name) ? (slots.get(definition.name) as T) : definition.initial()),
    set: (value: T) => void slots.set(definition.name, definition.schema.parse(value)),
    update(change: (value: T) => T) {
      this.set(change(this.get()));
      return this.get();
    },
  });
  const context = {
    owner: "test",
    scope,
    signal: never.signal,
    mode: options.mode ?? "rpc-ui",
    hasUI: options.ui !== undefined,
    ui: options.ui,
    toolCallId: "call_1",
    cwd,
    conversation: {
      id: "c1",
      cwd,
      signal: never.signal,
      log: { id: "c1", file: undefined, artifacts },
      slot,
      recordBash: (message: BashExecutionMessage) => void recorded.push(message),
      abort: async () => {},
    },
    update: (partial: ToolResult) => void updates.push(partial),
    sendRaw: () => {},
    setting: (definition: { name: string; default: unknown }) => options.settings?.[definition.name] ?? definition.default,
    use: (token: { name: string }) => {
      const service = services.get(token.name);
      if (service === undefined) throw new Error(`No service "${token.name}"`);
      return service;
    },
    tryUse: (token: { name: string }) => services.get(token.name),
  };
  const ctx = context as unknown as ToolContext;
  const [shellService] = shellUnit;
  const shell = shellService.create(ctx);
  services.set(Shell.name, shell);
  services.set(FileLocks.name, fileLocks.create(ctx));
  services.set(RpcRuns.name, rpcRuns.create(ctx));
  return {
    cwd,
    ctx,
    updates,
    recorded,
    shell,
    async call(tool, args, signal) {
      const parsed = tool.params instanceof z.ZodType ? tool.params.parse(args) : (args as never);
      try {
        const result = await tool.run(signal ? { ...ctx, signal } : ctx, parsed);
        return typeof result === "string" ? { content: [{ type: "text", text: result }] } : result;
      } catch (error) {
        if (!(error instanceof Error) || error.name !== "ToolError") throw error;
        return { content: [{ type: "text", text: error.message }], isError: true };
      }
    },
    async close() {
      await scope.dispose();
      artifacts.close();
      rmSync(cwd, { recursive: true, force: true });
    },
  };
}

/** All text of a result. */
export function textOf(result: ToolResult): string {
  return result.content.map((block) => (block.type === "text" ? block.text : `<${block.mimeType}>`)).join("\n");
}
