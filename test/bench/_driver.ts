// A lean host for measurements: the built daemon as a child, raw lines, no validation, and a model server that costs nothing.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { builtEntry } from "../support/build.ts";

export const BIN = builtEntry();
export const now = () => performance.now();

export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN;
}
export const median = (values: readonly number[]) => quantile(values, 0.5);

/** Resident memory of a process in MiB. */
export function residentMiB(pid: number): number {
  const kib = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kib ?? Number.NaN) / 1024;
}

/** CPU seconds a process has used. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

export interface Box {
  home: string;
  cwd: string;
  write(path: string, text: string): string;
  remove(): void;
}

export function makeBox(files: Record<string, string> = {}): Box {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "mortise-bench-")));
  const cwd = join(home, "work");
  mkdirSync(cwd);
  const write = (path: string, text: string) => {
    const file = join(home, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return file;
  };
  for (const [path, text] of Object.entries(files)) write(path, text);
  return { home, cwd, write, remove: () => rmSync(home, { recursive: true, force: true }) };
}

export type Line = Record<string, unknown> & { type: string };

export class Host {
  readonly child: ChildProcess;
  readonly startedAt: number;
  /** Bytes of stdout so far. */
  bytes = 0;
  #rest = "";
  #ids = 0;
  readonly #waiting = new Set<(line: string) => void>();

  constructor(box: Box, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    this.startedAt = now();
    this.child = spawn(process.execPath, [BIN, "--mode", "rpc", ...args], {
      cwd: box.cwd,
      env: { ...process.env, MORTISE_HOME: box.home, HOME: box.home, ...env },
      stdio: ["pipe", "pipe", "ignore"],
    });
    this.child.stdout?.setEncoding("utf8");
    this.child.stdout?.on("data", (text: string) => {
      this.bytes += text.length;
      this.#rest += text;
      for (let end = this.#rest.indexOf("\n"); end >= 0; end = this.#rest.indexOf("\n")) {
        const line = this.#rest.slice(0, end);
        this.#rest = this.#rest.slice(end + 1);
        for (const look of [...this.#waiting]) look(line);
      }
    });
  }
  get pid(): number {
    return this.child.pid ?? 0;
  }
  send(frame: Record<string, unknown>): void {
    this.child.stdin?.write(`${JSON.stringify(frame)}\n`);
  }
  /** The first line that holds `needle`; gives when it came. */
  line(needle: string): Promise<string> {
    return new Promise((resolve) => {
      const look = (line: string) => {
        if (!line.includes(needle)) return;
        this.#waiting.delete(look);
        resolve(line);
      };
      this.#waiting.add(look);
    });
  }
  onLine(look: (line: string) => void): () => void {
    this.#waiting.add(look);
    return () => this.#waiting.delete(look);
  }
  async ask(type: string, params: Record<string, unknown> = {}): Promise<Line> {
    const id = `b${++this.#ids}`;
    const answer = this.line(`"id":"${id}"`);
    this.send({ id, type, ...params });
    return JSON.parse(await answer) as Line;
  }
  /** Milliseconds from the prompt to its `agent_end`. */
  async turn(message: string): Promise<number> {
    const end = this.line('"type":"agent_end"');
    const began = now();
    this.send({ id: `b${++this.#ids}`, type: "prompt", message });
    await end;
    return now() - began;
  }
  async end(): Promise<void> {
    const closed = new Promise((resolve) => this.child.once("close", resolve));
    this.child.stdin?.end();
    await closed;
  }
}

/** What the next answers of the model server are. */
export interface Script {
  deltas: number;
  text: string;
  /** A call of `bash` in every first answer of a turn. */
  call?: Record<string, unknown> | undefined;
}

export interface ModelServer {
  url: string;
  script: Script;
  close(): void;
}

/** Speaks the Messages API without looking at what it is asked. */
export async function startModelServer(): Promise<ModelServer> {
  const script: Script = { deltas: 1, text: "Hello" };
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (chunk: string) => {
      body += chunk;
    });
    request.on("end", () => answer(response, script, body.slice(body.lastIndexOf('"role":"user"')).includes('"tool_result"')));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, script, close: () => server.close() };
}

const event = (type: string, fields: Record<string, unknown>) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;

function answer(response: ServerResponse, script: Script, afterTool: boolean): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const usage = { input_tokens: 10, output_tokens: 1 };
  const head = event("message_start", {
    message: { id: "msg_1", type: "message", role: "assistant", model: "m", content: [], stop_reason: null, usage },
  });
  const calling = script.call !== undefined && !afterTool;
  const parts = [head];
  if (calling) {
    parts.push(
      event("content_block_start", {
        index: 0,
        content_block: { type: "tool_use", id: `toolu_${Date.now()}`, name: "bash", input: {} },
      }),
    );
    parts.push(
      event("content_block_delta", { index: 0, delta: { type: "input_json_delta", partial_json: JSON.stringify(script.call) } }),
    );
  } else {
    parts.push(event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }));
    const delta = event("content_block_delta", { index: 0, delta: { type: "text_delta", text: script.text } });
    for (let index = 0; index < script.deltas; index++) parts.push(delta);
  }
  parts.push(event("content_block_stop", { index: 0 }));
  parts.push(event("message_delta", { delta: { stop_reason: calling ? "tool_use" : "end_turn" }, usage: { output_tokens: 5 } }));
  parts.push(event("message_stop", {}));
  response.end(parts.join(""));
}

/** Milliseconds until a bare Node program writes its first line. */
export async function bareNode(): Promise<number> {
  const began = now();
  const child = spawn(process.execPath, ["-e", 'console.log("hello")'], { stdio: ["ignore", "pipe", "ignore"] });
  await new Promise((resolve) => child.stdout.once("data", resolve));
  const took = now() - began;
  await new Promise((resolve) => child.once("close", resolve));
  return took;
}

/** Resident memory of a Node program that does nothing. */
export async function bareMemory(): Promise<number> {
  const child = spawn(process.execPath, ["-e", 'console.log("x"); setInterval(() => {}, 1000)'], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  await new Promise((resolve) => child.stdout.once("data", resolve));
  await new Promise((resolve) => setTimeout(resolve, 500));
  const mib = residentMiB(child.pid ?? 0);
  child.kill();
  return mib;
}
