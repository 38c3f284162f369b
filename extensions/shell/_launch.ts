// Starts shells. A shell is started before its command is known: it waits on descriptor 3 for the text, so that a command
// costs one write. A waiting shell is used only when directory (by inode) and environment are exactly the wanted ones.
import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { ToolError } from "mortise/extension";
import { MARKER } from "./_processes.ts";
import { openTerminal, type Terminal } from "./_pty.ts";

/** A shell that waits for its command. */
export interface Prepared {
  readonly child: ChildProcess;
  readonly pid: number;
  /** stdout and stderr in one. */
  readonly output: Readable;
  readonly script: Writable;
  readonly terminal: Terminal | undefined;
  readonly marker: string;
  /** Environment, directory and kind this shell stands for. */
  readonly key: string;
}

export interface LaunchRequest {
  cwd: string;
  env: Readonly<Record<string, string>>;
  pty: boolean;
  /** Program and arguments in front of the shell's. */
  wrap?: readonly string[] | undefined;
}

// `read` takes the whole command up to a NUL; `exec 2>&1` keeps the order of both streams.
const waitForScript = "exec 2>&1; IFS= read -r -d '' -u 3 __mortise; exec 3<&-; eval \"$__mortise\"";

/** Masters of open terminals; node-pty lets them leak into every child. */
const leaked = (prepared: Iterable<Prepared>) => [...prepared].map((one) => one.terminal?.masterFd ?? -1).filter((fd) => fd > 9);

export class Launcher {
  readonly #prefix: string;
  readonly #waiting = new Map<boolean, Prepared>();
  readonly #terminals = new Set<Prepared>();
  #count = 0;
  #bash: string | undefined;
  #closed = false;

  #told = false;

  readonly #noTerminal: (reason: string) => void;

  /** `prefix` starts the marker of every process of this daemon; `noTerminal` is told once why commands run over pipes. */
  constructor(prefix: string, noTerminal: (reason: string) => void) {
    this.#prefix = prefix;
    this.#noTerminal = noTerminal;
  }

  /** Once: the model gets the same result either way, so the person is told and not every result (DESIGN §8 "node-pty"). */
  #tellOnce(reason: string): void {
    if (!this.#told) this.#noTerminal(reason);
    this.#told = true;
  }

  /** A shell for the request: the waiting one if it fits, else a new one. @throws {ToolError} when no shell can be started. */
  take(request: LaunchRequest): Prepared {
    const key = keyOf(request);
    const waiting = this.#waiting.get(request.pty);
    if (waiting !== undefined) {
      this.#waiting.delete(request.pty);
      if (waiting.key === key && waiting.child.exitCode === null && waiting.child.signalCode === null) {
        hold(waiting, true);
        return waiting;
      }
      discard(waiting);
    }
    return this.#start(request, key);
  }

  /** Starts the shell for the next command of this kind, unless one waits. */
  prepare(request: LaunchRequest): void {
    if (this.#closed || this.#waiting.has(request.pty)) return;
    try {
      const prepared = this.#start(request, keyOf(request));
      hold(prepared, false);
      prepared.output.pause();
      prepared.child.once("exit", () => {
        if (this.#waiting.get(request.pty) === prepared) this.#waiting.delete(request.pty);
      });
      this.#waiting.set(request.pty, prepared);
    } catch {
      // The directory is gone: the next command says so.
    }
  }

  /** Hands the command over. `before` runs in the same shell first. */
  send(prepared: Prepared, command: string, before = ""): void {
    const close = leaked(this.#terminals).map((fd) => `exec ${fd}>&-; `);
    // On one line with the command, so that line numbers in messages stay right.
    prepared.script.end(`unset __mortise; ${close.join("")}${before}${command}\0`);
  }

  /** Ends the waiting shells and starts no more. */
  close(): void {
    this.#closed = true;
    for (const prepared of this.#waiting.values()) discard(prepared);
    this.#waiting.clear();
  }

  #start(request: LaunchRequest, key: string): Prepared {
    const marker = `${this.#prefix}${++this.#count}.`;
    const opened = request.pty ? openTerminal() : undefined;
    const terminal = typeof opened === "object" ? opened : undefined;
    const bash = this.#findBash(request.env["PATH"]);
    const [program = bash, ...args] = [...(request.wrap ?? []), bash, "--norc", "--noprofile", "-c", waitForScript];
    const child = spawn(program, args, {
      cwd: request.cwd,
      env: { ...request.env, [MARKER]: marker },
      // detached: own session, hence own process group and no controlling terminal.
      detached: true,
      stdio: terminal ? ["ignore", terminal.childFd, terminal.childFd, "pipe"] : ["ignore", "pipe", "ignore", "pipe"],
    });
    terminal?.spawned();
    child.on("error", () => {});
    const output = terminal?.output ?? child.stdout;
    const script = child.stdio[3];
    if (child.pid === undefined || output === null || script === null || script === undefined || !("end" in script)) {
      terminal?.release();
      terminal?.output.destroy();
      throw new ToolError(`Cannot start ${program} in "${request.cwd}": is it installed and the directory readable?`);
    }
    script.on("error", () => {});
    output.on("error", () => {});
    if (typeof opened === "string") this.#tellOnce(opened);
    const prepared: Prepared = { child, pid: child.pid, output, script, terminal, marker, key };
    if (terminal !== undefined) {
      this.#terminals.add(prepared);
      output.once("close", () => this.#terminals.delete(prepared));
    }
    return prepared;
  }

  #findBash(path = ""): string {
    this.#bash ??= ["/bin/bash", ...path.split(":").map((folder) => `${folder}/bash`)].find(isExecutable);
    if (this.#bash === undefined) throw new ToolError("Cannot run commands: bash was found neither in /bin nor in PATH");
    return this.#bash;
  }
}

/** Makes a shell and its pipes keep the process alive, or not. */
export function hold(prepared: Prepared, keep: boolean): void {
  for (const handle of [prepared.child, prepared.output, prepared.script]) {
    const name = keep ? "ref" : "unref";
    const method: unknown = Reflect.get(handle, name);
    if (typeof method === "function") Reflect.apply(method, handle, []);
  }
}

function discard(prepared: Prepared): void {
  prepared.child.kill("SIGKILL");
  prepared.script.destroy();
  prepared.terminal?.release();
  prepared.output.destroy();
}

function keyOf(request: LaunchRequest): string {
  const { dev, ino } = statSync(request.cwd);
  return `${dev}:${ino}:${request.cwd}:${JSON.stringify([request.wrap, request.env])}`;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
