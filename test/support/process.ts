// The built daemon as a child process with three pipes, for tests of what only a process has: exit codes, signals, lost pipes.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Frame } from "../../protocol/frame.ts";
import { LineSplitter } from "../../protocol/jsonl.ts";
import { builtEntry } from "./build.ts";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const BIN = builtEntry();

export interface ProcessOptions {
  args?: readonly string[];
  mode?: "rpc" | "rpc-ui";
  model?: string | undefined;
  env?: NodeJS.ProcessEnv;
  /** Relative to the home, or with a leading `cwd/` to the working directory. */
  files?: Record<string, string>;
  home?: string;
  /** Do not read stdout until `resume` is called. */
  paused?: boolean;
  /** Another way to start it, e.g. tsx with the sources. */
  command?: readonly [string, ...string[]];
}

export interface DaemonProcess {
  readonly child: ChildProcess;
  readonly frames: Frame[];
  /** Bytes of stdout and of stderr so far. */
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly home: string;
  readonly cwd: string;
  send(frame: Record<string, unknown> | string | Buffer): void;
  request(type: string, params?: Record<string, unknown>): Promise<Frame>;
  next(fits: string | ((frame: Frame) => boolean), options?: { after?: number; timeoutMs?: number }): Promise<Frame>;
  write(path: string, text: string): string;
  resume(): void;
  /** Closes stdin and gives the exit code or signal. */
  end(): Promise<number | NodeJS.Signals | null>;
  exited: Promise<number | NodeJS.Signals | null>;
  /** Kills what is left and removes the home. */
  dispose(): Promise<void>;
}

export function startProcess(options: ProcessOptions = {}): DaemonProcess {
  const home = options.home ?? realpathSync(mkdtempSync(join(tmpdir(), "mortise-process-")));
  const cwd = join(home, "work");
  mkdirSync(cwd, { recursive: true });
  const write = (path: string, text: string) => {
    const absolute = path.startsWith("cwd/") ? join(cwd, path.slice(4)) : join(home, path);
    mkdirSync(dirname(absolute), { recursive: true });
    writeFileSync(absolute, text);
    return absolute;
  };
  for (const [path, text] of Object.entries(options.files ?? {})) write(path, text);
  const [command, ...before] = options.command ?? [process.execPath, BIN];
  const model =
    options.model === undefined ? ["--model", "offline/echo"] : options.model === "" ? [] : ["--model", options.model];
  const args = [...before, "--mode", options.mode ?? "rpc", ...model, ...(options.args ?? [])];
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, MORTISE_HOME: home, HOME: home, ...options.env },
    stdio: "pipe",
  });
  return new Running(child, { home, cwd, write, keep: options.home !== undefined, paused: options.paused === true });
}

interface Setup {
  home: string;
  cwd: string;
  write(path: string, text: string): string;
  keep: boolean;
  paused: boolean;
}

class Running implements DaemonProcess {
  readonly child: ChildProcess;
  readonly frames: Frame[] = [];
  readonly exited: Promise<number | NodeJS.Signals | null>;
  readonly #setup: Setup;
  readonly #out: Buffer[] = [];
  #err = "";
  #ids = 0;
  #seen = 0;
  readonly #waiting = new Set<() => void>();

  constructor(child: ChildProcess, setup: Setup) {
    this.child = child;
    this.#setup = setup;
    const splitter = new LineSplitter({
      onLine: (text) => {
        this.frames.push(JSON.parse(text) as Frame);
        for (const wake of [...this.#waiting]) wake();
      },
      onProblem: (problem) => {
        throw new Error(`stdout is not lines of JSON: ${problem.message}`);
      },
    });
    child.stdout?.on("data", (chunk: Buffer) => {
      this.#out.push(chunk);
      splitter.push(chunk);
    });
    if (setup.paused) child.stdout?.pause();
    child.stderr?.on("data", (chunk: Buffer) => {
      this.#err += chunk.toString();
    });
    child.stdin?.on("error", () => {});
    this.exited = new Promise((resolve) => {
      child.once("close", (code, signal) => {
        // A killed daemon may leave a line unfinished.
        if (signal !== "SIGKILL") splitter.end();
        resolve(code ?? signal);
        for (const wake of [...this.#waiting]) wake();
      });
    });
  }
  get home(): string {
    return this.#setup.home;
  }
  get cwd(): string {
    return this.#setup.cwd;
  }
  stdout = () => Buffer.concat(this.#out).toString("utf8");
  stderr = () => this.#err;
  write(path: string, text: string): string {
    return this.#setup.write(path, text);
  }
  resume(): void {
    this.child.stdout?.resume();
  }
  send(frame: Record<string, unknown> | string | Buffer): void {
    const data = Buffer.isBuffer(frame) ? frame : `${typeof frame === "string" ? frame : JSON.stringify(frame)}\n`;
    this.child.stdin?.write(data);
  }
  request(type: string, params: Record<string, unknown> = {}): Promise<Frame> {
    const id = `p${++this.#ids}`;
    const after = this.frames.length;
    this.send({ id, type, ...params });
    return this.next((frame) => frame.type === "response" && frame["id"] === id, { after });
  }
  next(fits: string | ((frame: Frame) => boolean), options: { after?: number; timeoutMs?: number } = {}): Promise<Frame> {
    const accepts = typeof fits === "string" ? (frame: Frame) => frame.type === fits : fits;
    let index = options.after ?? this.#seen;
    return new Promise((resolve, reject) => {
      const finish = (settle: () => void) => {
        clearTimeout(timer);
        this.#waiting.delete(look);
        settle();
      };
      const look = () => {
        for (; index < this.frames.length; index++) {
          const frame = this.frames[index];
          if (frame === undefined || !accepts(frame)) continue;
          if (options.after === undefined) this.#seen = index + 1;
          return finish(() => resolve(frame));
        }
        if (this.child.exitCode !== null)
          finish(() => reject(new Error(`The daemon ended with ${this.child.exitCode}: ${this.#err}`)));
      };
      const timer = setTimeout(
        () =>
          finish(() =>
            reject(
              new Error(`No frame came: ${String(fits)}\n${this.#err}\n${JSON.stringify(this.frames.slice(-5)).slice(0, 2000)}`),
            ),
          ),
        options.timeoutMs ?? 20_000,
      );
      this.#waiting.add(look);
      look();
    });
  }
  async end(): Promise<number | NodeJS.Signals | null> {
    this.child.stdin?.end();
    return this.exited;
  }
  async dispose(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      this.child.kill("SIGKILL");
      await this.exited;
    }
    if (!this.#setup.keep) rmSync(this.#setup.home, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 });
  }
}

/** Command lines of living processes that hold `needle`; zombies count as `<defunct>`. */
export function processesWith(needle: string): string[] {
  const found: string[] = [];
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      if (line.includes(needle) && Number(pid) !== process.pid) found.push(`${pid} ${line}`);
    } catch {
      // It ended while we looked.
    }
  }
  return found;
}
