// `pi.exec`: runs a program without a shell, in its own process group, and gives its whole output.
import { spawn } from "node:child_process";
import type { Runtime } from "./_runtime.ts";
import { isObject } from "./_schema.ts";

export interface ExecResult {
  stdout: string;
  stderr: string;
  /** Exit code; 1 when the program could not start or ended by a signal. */
  code: number;
  /** True when we ended it: time limit, signal or disposal. */
  killed: boolean;
}

/** After TERM a program has this long before KILL. */
const GRACE_MS = 5000;
/** Output beyond this is cut: an extension that reads 64 MiB wants a file. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Runs a program. Resolves when it has ended, whatever its code; the generation's disposal ends it. */
export function exec(runtime: Runtime, command: string, args: readonly string[], options: unknown): Promise<ExecResult> {
  const { cwd, signal, timeout, env } = readOptions(options);
  const callSignal = runtime.scope.signal;
  const result: ExecResult = { stdout: "", stderr: "", code: 1, killed: false };
  if (signal?.aborted || callSignal.aborted) return Promise.resolve({ ...result, killed: true });
  return new Promise((resolve) => {
    const child = spawn(command, [...args], {
      cwd: cwd ?? runtime.ctx.conversation.cwd,
      ...(env === undefined ? {} : { env: { ...process.env, ...env } }),
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    let graceTimer: NodeJS.Timeout | undefined;
    const kill = (): void => {
      if (result.killed) return;
      result.killed = true;
      killGroup(child.pid, "SIGTERM");
      graceTimer = setTimeout(() => killGroup(child.pid, "SIGKILL"), GRACE_MS);
    };
    const timer = timeout === undefined ? undefined : setTimeout(kill, timeout);
    signal?.addEventListener("abort", kill, { once: true });
    callSignal.addEventListener("abort", kill, { once: true });
    const stdout = collect(child.stdout);
    const stderr = collect(child.stderr);
    let settled = false;
    const settle = (code: number, problem: string): void => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      clearTimeout(graceTimer);
      signal?.removeEventListener("abort", kill);
      callSignal.removeEventListener("abort", kill);
      resolve({ ...result, stdout: stdout(), stderr: stderr() + problem, code });
    };
    child.on("error", (error) => settle(1, error.message));
    // A background child may hold the pipes open for ever; what has arrived shortly after the exit is all there is.
    child.on("exit", (code) => {
      const late = setTimeout(() => settle(code ?? 1, ""), 200);
      child.on("close", () => {
        clearTimeout(late);
        settle(code ?? 1, "");
      });
    });
  });
}

function collect(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = [];
  let bytes = 0;
  stream.on("data", (chunk: Buffer) => {
    if (bytes > MAX_BYTES) return;
    bytes += chunk.length;
    chunks.push(chunk);
  });
  return () => Buffer.concat(chunks).toString("utf8");
}

/** Signals a process group; one that is gone is no error. */
export function killGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // Already gone.
  }
}

function readOptions(options: unknown): {
  cwd?: string;
  signal?: AbortSignal;
  timeout?: number;
  env?: Record<string, string>;
} {
  if (!isObject(options)) return {};
  const { cwd, signal, timeout, env } = options;
  return {
    ...(typeof cwd === "string" ? { cwd } : {}),
    ...(signal instanceof AbortSignal ? { signal } : {}),
    ...(typeof timeout === "number" && timeout > 0 ? { timeout } : {}),
    ...(isObject(env) ? { env: stringsOf(env) } : {}),
  };
}

function stringsOf(values: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).flatMap(([key, value]) => (typeof value === "string" ? [[key, value]] : [])));
}
