// Messages, temporary folders and child processes for the session tests.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { SessionLog } from "../../../core/session/log.ts";
import type { AssistantContent } from "../../../protocol/content.ts";
import type { AssistantMessage, StopReason, ToolResultMessage, Usage, UserMessage } from "../../../protocol/message.ts";
import { afterTest } from "../../support/clean-up.ts";

export const soak = process.env["MORTISE_SOAK"] !== undefined;

/** A folder that is removed after the test. */
export function tempDir(): string {
  const dir = mkdtempSync(join(tmpdir(), "mortise-session-"));
  afterTest(() => rmSync(dir, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 }));
  return dir;
}

export const usage: Usage = {
  input: 10,
  output: 5,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 15,
  cost: { input: 0.1, output: 0.2, cacheRead: 0, cacheWrite: 0, total: 0.3 },
};

export function user(text: string, timestamp = 1): UserMessage {
  return { role: "user", content: text, timestamp };
}

export function assistant(
  content: string | AssistantContent[],
  stopReason: StopReason = "stop",
  timestamp = 2,
): AssistantMessage {
  return {
    role: "assistant",
    content: typeof content === "string" ? [{ type: "text", text: content }] : content,
    api: "offline",
    provider: "offline",
    model: "echo",
    usage,
    stopReason,
    timestamp,
  };
}

export function call(id: string, name = "bash", args: Record<string, unknown> = {}): AssistantContent {
  return { type: "toolCall", id, name, arguments: args };
}

export function result(toolCallId: string, text = "done", isError = false): ToolResultMessage {
  return { role: "toolResult", toolCallId, toolName: "bash", content: [{ type: "text", text }], isError, timestamp: 3 };
}

/** A log that is closed after the test. */
export function created(sessionsDir: string | undefined, options: { cwd?: string; parentSession?: string } = {}): SessionLog {
  return closing(SessionLog.create({ cwd: options.cwd ?? "/project", sessionsDir, parentSession: options.parentSession }));
}

export async function opened(file: string, readOnly = false): Promise<Awaited<ReturnType<typeof SessionLog.open>>> {
  const result = await SessionLog.open(file, { readOnly });
  closing(result.log);
  return result;
}

export function closing(log: SessionLog): SessionLog {
  afterTest(() => {
    try {
      log.close();
    } catch {
      // A test that provokes write errors leaves entries that cannot be written.
    }
  });
  return log;
}

export function fileOf(log: SessionLog): string {
  if (log.file === undefined) throw new Error("Log has no file");
  return log.file;
}

export function lines(file: string): string[] {
  return readFileSync(file, "utf8").split("\n").slice(0, -1);
}

export interface Worker {
  readonly child: ChildProcess;
  /** Sends one command and waits for its answer. */
  ask(command: Record<string, unknown>): Promise<Record<string, unknown>>;
  /** Sends SIGKILL and waits for the end. */
  kill(): Promise<void>;
}

/** A process of its own that works on session files (see _worker.mts). */
export function worker(options: { fileBlocks?: number } = {}): Worker {
  const script = fileURLToPath(new URL("_worker.mts", import.meta.url));
  const node = [process.execPath, "--import", "tsx", script];
  const limited = `ulimit -f ${options.fileBlocks}; exec "$@"`;
  const child =
    options.fileBlocks === undefined
      ? spawn(node[0] ?? "", node.slice(1), { stdio: ["pipe", "pipe", "inherit"] })
      : spawn("bash", ["-c", limited, "bash", ...node], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  afterTest(() => child.kill("SIGKILL"));
  const waiting: ((answer: Record<string, unknown>) => void)[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => waiting.shift()?.(JSON.parse(line)));
  return {
    child,
    ask: (command) =>
      new Promise((resolve) => {
        waiting.push(resolve);
        child.stdin.write(`${JSON.stringify(command)}\n`);
      }),
    kill: async () => {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
