// `createBashTool(cwd)` and its siblings: our own tools behind the families' tool objects, looked up when they are called.
import { spawn } from "node:child_process";
import { type Context, type ToolContext, ToolError, type ToolResult } from "mortise/extension";
import { contextOf } from "./_context.ts";
import { killGroup } from "./_exec.ts";
import { toToolResult } from "./_results.ts";
import { currentCall } from "./_runtime.ts";
import { isObject, isZod4, toJsonSchema } from "./_schema.ts";

type Execute = (
  id: string,
  params: unknown,
  signal?: AbortSignal,
  onUpdate?: (partial: unknown) => void,
  ctx?: unknown,
) => unknown;

/** A tool object of the families for the built-in `name`, bound to a directory. */
export interface BoundTool {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  readonly parameters: Record<string, unknown>;
  readonly execute: Execute;
}

/**
 * Binds a built-in to a directory. `operations` replace where bash runs; other tools work on the local file system only.
 *
 * @throws {Error} for operations of another tool than bash.
 */
export function bindTool(daemon: Context, name: string, cwd: unknown, options: unknown): BoundTool {
  const dir = typeof cwd === "string" ? cwd : undefined;
  const operations = isObject(options) ? options["operations"] : undefined;
  if (isObject(operations) && name !== "bash") {
    throw new Error(`The ${name} tool works on local files only: leave "operations" out, or register a tool of your own`);
  }
  const definition = () => builtin(daemon, name)?.definition;
  return {
    name,
    label: name,
    get description() {
      return definition()?.description ?? name;
    },
    get parameters() {
      return toJsonSchema(definition()?.params ?? { type: "object", properties: {} });
    },
    execute: (id, params, signal, onUpdate, ctx) => {
      const changed = name === "bash" ? changedCommand(params, dir, options) : params;
      if (isObject(operations)) return runWith(operations, changed, dir, signal, onUpdate);
      return run(contextOf(ctx) ?? currentCall()?.ctx ?? daemon, name, { id, params: changed, dir, signal, onUpdate });
    },
  };
}

/** The built-in itself, whatever shadows it: an override that wraps it must not meet itself. */
function builtin(ctx: Context, name: string) {
  const stack = ctx.registry.stack("tool", name);
  return stack.find((entry) => entry.scope.owner.origin === "builtin") ?? stack.at(-1);
}

interface BoundCall {
  readonly id: string;
  readonly params: unknown;
  readonly dir: string | undefined;
  readonly signal: AbortSignal | undefined;
  readonly onUpdate: ((partial: unknown) => void) | undefined;
}

async function run(ctx: Context, name: string, call: BoundCall): Promise<ToolResult> {
  const entry = builtin(ctx, name);
  if (entry === undefined) throw new ToolError(`Tool ${name} is not loaded`);
  const release = entry.scope.lease();
  try {
    const { params } = entry.definition;
    const args: unknown = isZod4(params) ? params.parse(call.params) : call.params;
    return toToolResult(await entry.definition.run(boundContext(ctx, call), args as never));
  } finally {
    release();
  }
}

/** The context of the call at hand for another directory and signal. A proxy, because contexts have private members. */
function boundContext(ctx: Context, call: BoundCall): ToolContext {
  const derived = ctx.derive({ signal: call.signal ?? ctx.signal });
  const outer = "runTool" in ctx && typeof ctx.runTool === "function" ? ctx.runTool : undefined;
  const own: Record<PropertyKey, unknown> = {
    toolCallId: call.id,
    cwd: call.dir ?? derived.conversation.cwd,
    update: (partial: unknown) => call.onUpdate?.(partial),
    runTool: outer?.bind(ctx) ?? (() => Promise.reject(new ToolError("No other tool can be run from here"))),
    next: undefined,
  };
  return new Proxy(derived, {
    get: (target, key) => {
      if (Object.hasOwn(own, key)) return own[key];
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
    has: (target, key) => Object.hasOwn(own, key) || Reflect.has(target, key),
  }) as ToolContext;
}

/** `commandPrefix` and `spawnHook` of bash. */
function changedCommand(params: unknown, cwd: string | undefined, options: unknown): unknown {
  if (!isObject(params) || !isObject(options)) return params;
  const { commandPrefix, spawnHook } = options;
  let command = String(params["command"] ?? "");
  if (typeof commandPrefix === "string" && commandPrefix !== "") command = `${commandPrefix}\n${command}`;
  if (typeof spawnHook !== "function") return { ...params, command };
  const changed: unknown = spawnHook({ command, cwd: params["cwd"] ?? cwd, env: { ...process.env } });
  if (!isObject(changed)) return { ...params, command };
  return {
    ...params,
    command: typeof changed["command"] === "string" ? changed["command"] : command,
    ...(typeof changed["cwd"] === "string" ? { cwd: changed["cwd"] } : {}),
    ...(isObject(changed["env"]) ? { env: changedEnv(changed["env"]) } : {}),
  };
}

/** Only what the hook changed: the rest is inherited anyway. */
function changedEnv(env: Record<string, unknown>): Record<string, string> {
  const entries = Object.entries(env).flatMap(([key, value]) =>
    typeof value === "string" && process.env[key] !== value ? [[key, value] as const] : [],
  );
  return Object.fromEntries(entries);
}

async function runWith(
  operations: Record<string, unknown>,
  params: unknown,
  cwd: string | undefined,
  signal: AbortSignal | undefined,
  onUpdate: ((partial: unknown) => void) | undefined,
): Promise<ToolResult> {
  const { exec } = operations;
  if (typeof exec !== "function") throw new Error("The operations of the bash tool have no exec function");
  const { command, timeout, env } = isObject(params) ? params : {};
  const chunks: Buffer[] = [];
  const output = (): string => Buffer.concat(chunks).toString("utf8");
  const onData = (data: unknown): void => {
    chunks.push(Buffer.isBuffer(data) ? data : Buffer.from(String(data)));
    onUpdate?.({ content: [{ type: "text", text: output() }] });
  };
  const done: unknown = await exec.call(operations, String(command ?? ""), cwd ?? process.cwd(), {
    onData,
    signal,
    timeout,
    env,
  });
  const code = isObject(done) ? done["exitCode"] : undefined;
  if (typeof code === "number" && code !== 0) throw new ToolError(`${output()}\n\nCommand exited with code ${code}`);
  return { content: [{ type: "text", text: output() || "(no output)" }] };
}

/** `createLocalBashOperations()`: runs a command with bash here and tells its output as it comes. */
export function localBashOperations(): {
  exec(command: string, cwd: string, options?: unknown): Promise<{ exitCode: number | null }>;
} {
  return {
    exec: (command, cwd, options) =>
      new Promise((resolve, reject) => {
        const { onData, signal, timeout, env } = isObject(options) ? options : {};
        const child = spawn("bash", ["-c", command], {
          cwd,
          detached: true,
          stdio: ["ignore", "pipe", "pipe"],
          ...(isObject(env) ? { env: { ...process.env, ...changedEnv(env) } } : {}),
        });
        const kill = (): void => {
          if (child.pid !== undefined) killGroup(child.pid, "SIGKILL");
        };
        const timer = typeof timeout === "number" && timeout > 0 ? setTimeout(kill, timeout * 1000) : undefined;
        if (signal instanceof AbortSignal) signal.addEventListener("abort", kill, { once: true });
        const told = (data: Buffer): void => {
          if (typeof onData === "function") onData(data);
        };
        child.stdout.on("data", told);
        child.stderr.on("data", told);
        const over = (): void => {
          clearTimeout(timer);
          if (signal instanceof AbortSignal) signal.removeEventListener("abort", kill);
        };
        child.on("error", (error) => {
          over();
          reject(error);
        });
        child.on("close", (exitCode) => {
          over();
          resolve({ exitCode });
        });
      }),
  };
}
