// The child process of an isolated extension: started, watched, started again when it dies, ended with its generation.
// A child that does not answer pings while calls are open is killed: that is how an endless loop ends.
import { type ChildProcess, spawn } from "node:child_process";
import type { Duplex } from "node:stream";
import { Peer, type PeerOptions } from "./peer.ts";

export interface ProcessOptions {
  /** Name of the extension, for messages. */
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** How long the child may be silent while it owes an answer. */
  readonly stallMs: number;
  readonly answer: PeerOptions["answer"];
  readonly told: PeerOptions["told"];
  /** Loads the extension in a fresh child; runs at the start and after every crash. */
  load(peer: Peer): Promise<void>;
  /** A line the child printed. */
  printed(line: string): void;
  /** The child died although nobody asked it to. */
  died(error: Error, restartInMs: number): void;
  /** A later start failed. */
  failed(error: unknown): void;
}

/** A process that has not said its first word is starting: how fast is a matter of the machine, not of the extension. */
const BOOT_MS = 10_000;
/** Unanswered pings after which a child counts as stuck. */
const PINGS = 4;
const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 30_000;
/** A child that lived this long starts over with the shortest delay. */
const HEALTHY_MS = 60_000;
/** How long a polite end may take; an undo has 2 s in all. */
const END_MS = 1_500;

export class IsolatedProcess {
  readonly #options: ProcessOptions;
  #child: ChildProcess | undefined;
  #peer: Peer | undefined;
  #ready: Promise<Peer> | undefined;
  /** False until the first load is done: before that a death is the failure of the start. */
  #started = false;
  #stopped = false;
  #delay = FIRST_DELAY_MS;
  #restart: NodeJS.Timeout | undefined;
  #pings: NodeJS.Timeout | undefined;
  #unanswered = 0;
  #heard = false;
  #killedFor: string | undefined;

  constructor(options: ProcessOptions) {
    this.#options = options;
  }

  /** Starts the child and loads the extension. Rejects when it does not load; nothing is left running then. */
  async start(): Promise<void> {
    this.#ready = this.#spawn();
    try {
      await this.#ready;
      this.#started = true;
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** A child that is loaded: the one there is, or the next one after a crash. */
  ready(): Promise<Peer> {
    return this.#ready ?? Promise.reject(new Error(`The process of "${this.#options.name}" is not started`));
  }

  /** Asks the child to end, and kills it when it does not. Resolves when it is gone. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#restart);
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    this.#peer?.tell("end");
    const limit = setTimeout(() => child.kill("SIGKILL"), END_MS);
    await gone;
    clearTimeout(limit);
  }

  async #spawn(): Promise<Peer> {
    const { command, env, cwd, answer, told, load } = this.#options;
    const [file, ...args] = command;
    const started = performance.now();
    const child = spawn(file, args, { cwd, env, stdio: ["ignore", "pipe", "pipe", "pipe"] });
    this.#child = child;
    this.#killedFor = undefined;
    for (const stream of [child.stdout, child.stderr]) this.#forward(stream);
    const peer = new Peer({
      stream: child.stdio[3] as Duplex,
      answer,
      told: (method, params) => {
        this.#heard = true;
        if (method === "pong") this.#unanswered = 0;
        else told(method, params);
      },
    });
    this.#peer = peer;
    const ended = (error: Error) => {
      this.#stopPings();
      peer.end(error);
      if (this.#child === child) this.#died(error, performance.now() - started);
    };
    child.once("error", (error) =>
      ended(new Error(`The process of "${this.#options.name}" cannot be started: ${error.message}`)),
    );
    child.once("exit", (code, signal) => ended(new Error(this.#reason(code, signal))));
    this.#startPings(child, peer, started);
    await load(peer);
    return peer;
  }

  #reason(code: number | null, signal: NodeJS.Signals | null): string {
    const { name } = this.#options;
    if (this.#killedFor !== undefined) return `The process of "${name}" was ended: ${this.#killedFor}`;
    const how = signal === null ? `with exit code ${code}` : `by ${signal}`;
    const memory = signal === "SIGABRT" || code === 134 ? ", most likely because its memory ran out" : "";
    return `The process of "${name}" ended ${how}${memory}`;
  }

  #died(error: Error, livedMs: number): void {
    if (this.#stopped || !this.#started) return;
    if (livedMs > HEALTHY_MS) this.#delay = FIRST_DELAY_MS;
    const delay = this.#delay;
    this.#delay = Math.min(delay * 2, MAX_DELAY_MS);
    this.#options.died(error, delay);
    const next = new Promise<Peer>((resolve, reject) => {
      this.#restart = setTimeout(() => {
        this.#spawn().then(resolve, (failure: unknown) => {
          if (!this.#stopped) this.#options.failed(failure);
          reject(failure);
          // A child that is alive but did not load is tried again like one that died.
          this.#child?.kill("SIGKILL");
        });
      }, delay);
    });
    next.catch(() => {});
    this.#ready = next;
  }

  /** Pings while the child owes something. One that was missed because this process was busy is made up for by the next. */
  #startPings(child: ChildProcess, peer: Peer, startedAt: number): void {
    this.#stopPings();
    this.#unanswered = 0;
    this.#heard = false;
    this.#pings = setInterval(() => {
      const boots = !this.#heard && performance.now() - startedAt < BOOT_MS;
      if (peer.openCalls === 0 || boots) {
        this.#unanswered = 0;
        return;
      }
      if (this.#unanswered >= PINGS) {
        this.#killedFor = `it did not answer for ${this.#options.stallMs} ms, as in an endless loop`;
        child.kill("SIGKILL");
        return;
      }
      this.#unanswered++;
      peer.tell("ping");
    }, this.#options.stallMs / PINGS);
    this.#pings.unref();
  }

  #stopPings(): void {
    clearInterval(this.#pings);
  }

  #forward(stream: NodeJS.ReadableStream | null): void {
    let rest = "";
    stream?.setEncoding("utf8");
    stream?.on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = (lines.pop() ?? "").slice(-10_000);
      for (const line of lines) if (line !== "") this.#options.printed(line);
    });
    stream?.on("error", () => {});
  }
}
