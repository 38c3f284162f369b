// Starts shells. A shell is started before its command is known: it waits on a descriptor for the text, so that a command costs one
// write. A waiting shell is used only when directory (by inode) and environment are exactly the wanted ones.
import { statSync } from "node:fs";
import { ToolError } from "mortise/extension";
import { findSetsid, hasPipes, isExecutable, Nursery } from "./_nursery.ts";
import { cannotStart, OwnShell } from "./_own-shell.ts";
import { killQuietly, type LaunchRequest, letGo, type Prepared, type Waiting } from "./_prepared.ts";
import { openTerminal, type Terminal, terminalFault } from "./_pty.ts";

/** Waiting shells of a kind: the second one gets ready while the first one's command runs. */
const WAITING = 2;

/** Masters of open terminals; node-pty lets them leak into every child. */
const leaked = (terminals: Iterable<Terminal>) => [...terminals].map((one) => one.masterFd).filter((fd) => fd > 9);

export class Launcher {
  readonly #prefix: string;
  readonly #waiting = new Set<Waiting>();
  readonly #terminals = new Set<Terminal>();
  #nursery: { readonly env: string; readonly nursery: Nursery } | undefined;
  #count = 0;
  #bash: string | undefined;
  #closed = false;
  #told = false;
  /** Why there are no terminals; empty when there are, undefined while nobody has asked. */
  #fault: string | undefined;
  readonly #noTerminal: (reason: string) => void;

  /** `prefix` starts the marker of every process of this daemon; `noTerminal` is told once why commands run over pipes. */
  constructor(prefix: string, noTerminal: (reason: string) => void) {
    this.#prefix = prefix;
    this.#noTerminal = noTerminal;
  }

  /**
   * A shell for the request: one that waits if it fits, one that is about to, else a new one.
   *
   * @throws {ToolError} when no shell can be started
   */
  async take(wanted: LaunchRequest): Promise<Prepared> {
    const request = this.#possible(wanted);
    const key = keyOf(request);
    let fostered = false;
    for (;;) {
      const fitting = [...this.#waiting].filter((waiting) => waiting.key === key);
      let ready = fitting.find((waiting) => waiting.use() !== undefined && !waiting.over) ?? fitting[0];
      if (ready === undefined && !fostered && !request.pty && !this.#closed) {
        // The pipe of the nursery is worth the wait.
        ready = this.#foster(request, key);
        fostered = true;
      }
      if (ready === undefined) break;
      // Taken out at once: two commands must not get the same.
      this.#waiting.delete(ready);
      const prepared = ready.use() ?? (await ready.settled());
      if (prepared === undefined || ready.over) continue;
      if (this.#closed) break;
      prepared.hold(true);
      return prepared;
    }
    if (this.#closed) throw new ToolError("Cannot run the command: the shell service has ended");
    const started = await this.#start(request).whenReady;
    if (started === undefined) throw cannotStart(request.wrap?.[0] ?? "bash", request.cwd);
    return started;
  }

  /** Starts one more shell for the next command of this kind, unless enough wait. Those that wait for another one are ended. */
  prepare(wanted: LaunchRequest): void {
    if (this.#closed) return;
    const request = this.#possible(wanted);
    try {
      const key = keyOf(request);
      let ready = 0;
      for (const waiting of this.#waiting) {
        if (waiting.key === key && !waiting.over) ready++;
        else if (waiting.over || waiting.request.pty === request.pty) this.#drop(waiting);
      }
      if (ready < WAITING) this.#waiting.add(this.#foster(request, key) ?? this.#wait(request, key));
    } catch {
      // The directory is gone, or there is no room for a process: the next command says so.
    }
  }

  /** Hands the command over, and starts a shell for the next one while it runs. `before` runs in the same shell first. */
  send(prepared: Prepared, command: string, before = ""): void {
    const close = leaked(this.#terminals).map((fd) => `exec ${fd}>&-; `);
    // On one line with the command, so that line numbers in messages stay right.
    prepared.script.end(`unset __mortise; ${close.join("")}${before}${command}\0`);
    setImmediate(() => this.prepare(prepared.request));
  }

  /** Ends the waiting shells and starts no more. */
  close(): void {
    this.#closed = true;
    for (const waiting of this.#waiting) this.#drop(waiting);
    this.#nursery?.nursery.close();
  }

  #drop(waiting: Waiting): void {
    this.#waiting.delete(waiting);
    waiting.discard();
  }

  /** A waiting shell of the nursery; undefined where there can be none. */
  #foster(request: LaunchRequest, key: string): Waiting | undefined {
    if (request.wrap !== undefined || (!request.pty && !hasPipes)) return undefined;
    const nursery = this.#nurseryFor(request);
    if (nursery === undefined) return undefined;
    const terminal = this.#open(request);
    if (terminal === undefined && !hasPipes) return undefined;
    const marker = this.#nextMarker();
    const shell = nursery.start(request.cwd, marker, terminal);
    // It opens the terminal by name.
    terminal?.spawned();
    const { socket, exit } = shell;
    terminal?.output.on("error", () => {}).pause();
    const hold = (keep: boolean) => {
      shell.hold(keep);
      for (const stream of [socket, terminal?.output, shell.output]) keep ? stream?.ref() : stream?.unref();
    };
    hold(false);
    const prepared = () => {
      const output = terminal?.output ?? shell.output;
      if (shell.pid === undefined || output === undefined) return undefined;
      return { pid: shell.pid, output, script: socket, terminal, marker, request, exit, hold };
    };
    const release = () => letGo(socket, terminal?.output ?? shell.output, terminal);
    return {
      key,
      request,
      get over() {
        return shell.over || socket.destroyed;
      },
      use: prepared,
      settled: async () => {
        hold(true);
        await shell.whenReady;
        const ready = prepared();
        if (ready === undefined) release();
        return ready;
      },
      discard() {
        if (shell.pid !== undefined && !shell.over) killQuietly(shell.pid);
        release();
      },
    };
  }

  #nurseryFor({ env }: LaunchRequest): Nursery | undefined {
    const setsid = findSetsid(env["PATH"]);
    if (setsid === undefined) return undefined;
    const wanted = JSON.stringify(env);
    if (this.#nursery?.env !== wanted || !this.#nursery.nursery.hasRoom) {
      // Its last shells may not have been started yet.
      this.#nursery?.nursery.retire();
      const nursery = new Nursery({ bash: this.#findBash(env["PATH"]), setsid, env, leaked: leaked(this.#terminals) });
      this.#nursery = { env: wanted, nursery };
    }
    return this.#nursery.nursery;
  }

  /** A waiting shell of our own. */
  #wait(request: LaunchRequest, key: string): Waiting {
    const shell = this.#start(request);
    shell.hold(false);
    return {
      key,
      request,
      get over() {
        return shell.over;
      },
      use: () => shell.prepared,
      settled: () => {
        shell.hold(true);
        return shell.whenReady;
      },
      discard: () => shell.discard(),
    };
  }

  #start(request: LaunchRequest): OwnShell {
    const bash = this.#findBash(request.env["PATH"]);
    return new OwnShell({ bash, request, marker: this.#nextMarker(), terminal: this.#open(request) });
  }

  #nextMarker(): string {
    return `${this.#prefix}${++this.#count}.`;
  }

  /** The same request, without a terminal where there are none. */
  #possible(request: LaunchRequest): LaunchRequest {
    if (!request.pty) return request;
    this.#fault ??= terminalFault() ?? "";
    if (this.#fault === "") return request;
    this.#tell(this.#fault);
    return { ...request, pty: false };
  }

  /** Once: the model gets the same result either way, so the person is told and not every result (DESIGN §8 "node-pty"). */
  #tell(fault: string): void {
    if (!this.#told) this.#noTerminal(fault);
    this.#told = true;
  }

  /** The terminal, if one is wanted and can be had. */
  #open(request: LaunchRequest): Terminal | undefined {
    if (!request.pty) return undefined;
    const opened = openTerminal();
    if (typeof opened === "string") {
      this.#tell(opened);
      return undefined;
    }
    this.#terminals.add(opened);
    opened.output.once("close", () => this.#terminals.delete(opened));
    return opened;
  }

  #findBash(path = ""): string {
    this.#bash ??= ["/bin/bash", ...path.split(":").map((folder) => `${folder}/bash`)].find(isExecutable);
    if (this.#bash === undefined) throw new ToolError("Cannot run commands: bash was found neither in /bin nor in PATH");
    return this.#bash;
  }
}

function keyOf(request: LaunchRequest): string {
  const { dev, ino } = statSync(request.cwd);
  return `${dev}:${ino}:${request.cwd}:${JSON.stringify([request.pty, request.wrap, request.env])}`;
}
