// A shell that the daemon starts itself: the first one, those in a sandbox, and all where there is no nursery.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { Duplex, type Readable, type Writable } from "node:stream";
import { ToolError } from "mortise/extension";
import { hasPipes, openPipe } from "./_nursery.ts";
import { type LaunchRequest, letGo, type Prepared, refer } from "./_prepared.ts";
import { MARKER } from "./_processes.ts";
import type { Terminal } from "./_pty.ts";

// `read` takes the whole command up to a NUL; `exec 2>&1` keeps the order of both streams.
const waitForScript = "exec 2>&1; IFS= read -r -d '' -u 3 __mortise; exec 3<&-; eval \"$__mortise\"";

/** Descriptor that tells that the pipe is there and is told that it has been opened, and that of the pipe. */
const READY = 4;
const PIPE = 9;
/**
 * Node gives its children a socket for a pipe, which cannot be opened as /dev/stdout. This makes one, as the nursery does, and becomes
 * what is wanted. Everything holds the pipe open for both directions until it has taken it as its output.
 */
const withPipe = `exec ${PIPE}<> <(:); wait $!; echo >&${READY}; read -r -u ${READY}; exec ${READY}>&-; exec "$@" 1>/proc/self/fd/${PIPE} 2>&1`;

export interface OwnShellOptions {
  bash: string;
  request: LaunchRequest;
  marker: string;
  terminal: Terminal | undefined;
}

export class OwnShell {
  /** The same as `prepared` to wait for; undefined when the shell ended before. */
  readonly whenReady: Promise<Prepared | undefined>;
  readonly #options: OwnShellOptions;
  readonly #child: ChildProcess;
  readonly #script: Writable;
  readonly #exit: Promise<number>;
  #output: Readable | undefined;
  #announcement: Duplex | undefined;
  #held = true;

  /** @throws {ToolError} when it cannot be started */
  constructor(options: OwnShellOptions) {
    const { bash, request, marker, terminal } = options;
    this.#options = options;
    const makesPipe = terminal === undefined && hasPipes && existsSync("/proc/self/fd");
    const close = makesPipe ? `exec ${PIPE}>&-; ` : "";
    const shell = [...(request.wrap ?? []), bash, "--norc", "--noprofile", "-c", `${close}${waitForScript}`];
    const [program = bash, ...args] = makesPipe ? [bash, "--norc", "--noprofile", "-c", withPipe, "bash", ...shell] : shell;
    const child = spawn(program, args, {
      cwd: request.cwd,
      env: { ...request.env, [MARKER]: marker },
      // detached: own session, hence own process group and no controlling terminal.
      detached: true,
      stdio: terminal
        ? ["ignore", terminal.childFd, terminal.childFd, "pipe"]
        : ["ignore", makesPipe ? "ignore" : "pipe", "ignore", "pipe", ...(makesPipe ? (["pipe"] as const) : [])],
    });
    terminal?.spawned();
    child.on("error", () => {});
    const script = child.stdio[3];
    if (child.pid === undefined || script === null || script === undefined || !("end" in script)) {
      terminal?.release();
      terminal?.output.destroy();
      throw cannotStart(program, request.cwd);
    }
    script.on("error", () => {});
    this.#child = child;
    this.#script = script;
    this.#exit = new Promise((resolve) => {
      child.once("exit", (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)));
    });
    this.#take(terminal?.output ?? child.stdout ?? undefined);
    this.whenReady = makesPipe ? this.#announced(child.stdio[READY]) : Promise.resolve(this.prepared);
  }

  /** Undefined while it is not ready. */
  get prepared(): Prepared | undefined {
    const { pid } = this.#child;
    const output = this.#output;
    if (pid === undefined || output === undefined) return undefined;
    const { marker, request, terminal } = this.#options;
    const hold = (keep: boolean) => this.hold(keep);
    return { pid, output, script: this.#script, terminal, marker, request, exit: this.#exit, hold };
  }

  get over(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  hold(keep: boolean): void {
    this.#held = keep;
    for (const handle of [this.#child, this.#script, this.#output, this.#announcement]) {
      if (handle !== undefined) refer(handle, keep);
    }
  }

  discard(): void {
    this.#child.kill("SIGKILL");
    this.#announcement?.destroy();
    letGo(this.#script, this.#output, this.#options.terminal);
  }

  /** Paused until somebody listens: the shell writes nothing before it has its command. */
  #take(output: Readable | undefined): void {
    output?.on("error", () => {}).pause();
    this.#output = output;
  }

  async #announced(stream: unknown): Promise<Prepared | undefined> {
    const { pid } = this.#child;
    if (pid === undefined || !(stream instanceof Duplex)) return undefined;
    this.#announcement = stream.on("error", () => {});
    await new Promise<void>((resolve) => {
      for (const event of ["data", "close", "error"]) stream.once(event, () => resolve());
    });
    if (this.over || stream.destroyed) return undefined;
    this.#take(openPipe(pid, PIPE));
    // Only now does it become another program, into which the system may not let us look.
    stream.end("\n");
    this.#announcement = undefined;
    this.hold(this.#held);
    // A pipe that cannot be opened: nobody would ever give this shell a command.
    if (this.#output === undefined) this.discard();
    return this.prepared;
  }
}

export function cannotStart(program: string, cwd: string): ToolError {
  return new ToolError(`Cannot start ${program} in "${cwd}": is it installed and the directory readable?`);
}
