// The built daemon for the case tests: processes that are ended afterwards, a strict model service, frames by id.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach } from "vitest";
import type { Frame } from "../../protocol/frame.ts";
import { type FakeOpenAIOptions, startFakeOpenAI } from "../support/fake-openai.ts";
import type { FakeServer } from "../support/fake-provider.ts";
import { type DaemonProcess, type ProcessOptions, startProcess } from "../support/process.ts";

/** Long, because the machine may be busy; a test that waits this long has failed. */
export const PATIENCE_MS = 60_000;
export const SOAK = process.env["MORTISE_SOAK"] !== undefined;

export interface Service extends FakeServer {
  /** Options of a daemon that talks to this service. */
  readonly daemon: { model: string; env: NodeJS.ProcessEnv };
}

/** Call once in a test file; what was started is ended after each test. */
export function useProcesses() {
  const daemons: DaemonProcess[] = [];
  const services: FakeServer[] = [];
  const undo: (() => unknown)[] = [];
  afterEach(async () => {
    for (const daemon of daemons.splice(0)) await daemon.dispose();
    for (const service of services.splice(0)) await service.close();
    for (const each of undo.splice(0).reverse()) await each();
  });
  return {
    start(options: ProcessOptions = {}): DaemonProcess {
      const daemon = startProcess(options);
      daemons.push(daemon);
      return daemon;
    },
    async service(options: FakeOpenAIOptions = {}): Promise<Service> {
      const fake = await startFakeOpenAI(options);
      services.push(fake);
      const env = { OPENAI_API_KEY: "k", OPENAI_BASE_URL: `${fake.url}/v1` };
      return Object.defineProperty(fake, "daemon", { value: { model: "openai/gpt-5.1", env } }) as Service;
    },
    /** Runs after the test, last one first. */
    later(fn: () => unknown): void {
      undo.push(fn);
    },
  };
}

/** Sends a command and gives its response, success or failure. */
export async function request(daemon: DaemonProcess, type: string, params: Record<string, unknown> = {}): Promise<Frame> {
  const id = `ask_${++asked}`;
  const after = daemon.frames.length;
  daemon.send({ id, type, ...params });
  return daemon.next((frame) => frame.type === "response" && frame["id"] === id, { after, timeoutMs: PATIENCE_MS });
}
let asked = 0;

/** Like `request`, but gives `data` and throws on a failure. */
export async function ask(
  daemon: DaemonProcess,
  type: string,
  params: Record<string, unknown> = {},
): Promise<Record<string, unknown>> {
  const response = await request(daemon, type, params);
  if (response["success"] !== true) throw new Error(`${type} failed: ${String(response["error"])}`);
  return (response["data"] ?? {}) as Record<string, unknown>;
}

/** The next frame that fits, from `after` on, with patience. */
export function wait(daemon: DaemonProcess, fits: string | ((frame: Frame) => boolean), after?: number): Promise<Frame> {
  return daemon.next(fits, { timeoutMs: PATIENCE_MS, ...(after === undefined ? {} : { after }) });
}

/** Prompts and waits for the end of the run; gives the frames from the prompt on. */
export async function prompt(daemon: DaemonProcess, message: string): Promise<Frame[]> {
  const after = daemon.frames.length;
  const response = await request(daemon, "prompt", { message });
  if (response["success"] !== true) throw new Error(`prompt failed: ${String(response["error"])}`);
  const end = await wait(daemon, "agent_end", after);
  return daemon.frames.slice(after, daemon.frames.indexOf(end) + 1);
}

export function ofId(daemon: DaemonProcess, id: string | number): Frame[] {
  return daemon.frames.filter((frame) => frame.type === "response" && frame["id"] === id);
}

/** Text of the content of a message, a tool result or the result of `tool_execution_end`. */
export function textOf(value: unknown): string {
  const content = (value as { content?: unknown } | undefined)?.content;
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((block) => (block as { text?: string }).text ?? "").join("");
}

/** Every line of a session file, parsed; throws when one is no JSON or the last one is not complete. */
export function sessionLines(file: string): Record<string, unknown>[] {
  const text = readFileSync(file, "utf8");
  if (!text.endsWith("\n")) throw new Error(`${file} ends inside a line: ${text.slice(-100)}`);
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** Session files below a home. */
export function sessionFiles(home: string): string[] {
  return readdirSync(join(home, "sessions"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".jsonl"))
    .map((name) => join(home, "sessions", name));
}

/** A session file of version 3 with these messages. */
export function sessionText(
  cwd: string,
  messages: readonly Record<string, unknown>[],
  header: Record<string, unknown> = {},
): string {
  const timestamp = "2026-01-01T00:00:00.000Z";
  const lines: Record<string, unknown>[] = [
    { type: "session", version: 3, id: "01936a00-0000-7000-8000-000000000001", timestamp, cwd, ...header },
  ];
  for (const [index, message] of messages.entries()) {
    const id = (index + 1).toString(16).padStart(8, "0");
    lines.push({ type: "message", id, parentId: index === 0 ? null : index.toString(16).padStart(8, "0"), timestamp, message });
  }
  return `${lines.map((line) => JSON.stringify(line)).join("\n")}\n`;
}

export const userMessage = (text: string) => ({ role: "user", content: [{ type: "text", text }], timestamp: 1 });

export const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Polls until `check` gives something, for what no frame tells (processes, files). */
export async function eventually<T>(what: string, check: () => T | undefined | false, limitMs = PATIENCE_MS): Promise<T> {
  for (const start = Date.now(); ; await sleep(20)) {
    const found = check();
    if (found !== undefined && found !== false) return found;
    if (Date.now() - start > limitMs) throw new Error(`Waited ${limitMs} ms in vain: ${what}`);
  }
}

export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
