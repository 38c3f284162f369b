// One command from its text to its result. Resolves when the shell has exited and what it wrote before has been read; what
// its children still hold open does not matter. On abort and time-out the whole tree is ended first.
import { randomUUID } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import type { ShellResult, ShellRun } from "mortise/extension";
import type { Launcher } from "./_launch.ts";
import { LineEnds } from "./_line-ends.ts";
import { OutputCollector } from "./_output.ts";
import type { LaunchRequest, Prepared } from "./_prepared.ts";
import { commandLine, groupExists, killTree, processTree } from "./_processes.ts";

const UPDATE_MS = 100;
/** Quiet time after which the output of a dead shell counts as read, and the longest wait for quiet. */
const QUIET_MS = 15;
const DRAIN_MS = 500;
const KILL_GRACE_MS = 2000;

/** A command in flight. */
export interface Running {
  /** Process group of its shell. */
  readonly group: number;
  readonly result: Promise<ShellResult>;
  /** Resolves when the tree has ended or was left running; the result of an aborted run may come before. */
  readonly over: Promise<unknown>;
  /** Ends the tree; the result then says `cancelled`. */
  cancel(graceMs?: number): Promise<void>;
}

export interface RunOptions {
  launcher: Launcher;
  prepared: Prepared;
  request: LaunchRequest;
  /** Where the shell writes its directory when it exits; only for runs that keep it. */
  cwdFile: string | undefined;
  /** Told of a shell whose children live on. */
  onLeftover(): void;
}

export function start(run: ShellRun, options: RunOptions): Running {
  const { prepared } = options;
  const flight = new Flight(run, prepared, options);
  const complete = flight.complete();
  return {
    group: prepared.pid,
    result: run.abortGraceMs === undefined ? complete : flight.orShortAfterAbort(complete, run.abortGraceMs),
    over: complete,
    cancel: (graceMs) => flight.kill("cancelled", graceMs),
  };
}

class Flight {
  readonly #run: ShellRun;
  readonly #prepared: Prepared;
  readonly #options: RunOptions;
  readonly #collector: OutputCollector;
  readonly #lineEnds: LineEnds | undefined;
  #lastData = 0;
  #paused = false;
  #ended = false;
  #stopped: "cancelled" | "timedOut" | undefined;
  #killing: Promise<void> | undefined;
  #updateTimer: NodeJS.Timeout | undefined;
  #marker: { text: Buffer; seen: () => void; held: Buffer } | undefined;

  constructor(run: ShellRun, prepared: Prepared, options: RunOptions) {
    this.#run = run;
    this.#prepared = prepared;
    this.#options = options;
    this.#collector = new OutputCollector(run.artifactPath, (full) => this.#press(full));
    this.#lineEnds = prepared.terminal && new LineEnds();
    prepared.output.on("data", this.#onData);
    // A waiting shell was paused, and a paused stream stays so when a listener comes.
    prepared.output.resume();
    for (const event of ["end", "close"])
      prepared.output.once(event, () => {
        this.#ended = true;
      });
  }

  /** The result, or after an abort, when ending the tree takes longer, what is known by then. */
  orShortAfterAbort(complete: Promise<ShellResult>, graceMs: number): Promise<ShellResult> {
    const { signal } = this.#run;
    if (signal === undefined) return complete;
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const onAbort = () => {
        timer = setTimeout(() => resolve(this.#soFar()), graceMs);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      if (signal.aborted) onAbort();
      complete.then(resolve, reject).finally(() => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
      });
    });
  }

  #soFar(): ShellResult {
    const notes: string[] = [];
    const workingDir = this.#options.request.cwd;
    const fullOutputPath = this.#collector.path;
    return { ...this.#collector.snapshot(), cancelled: true, timedOut: false, fullOutputPath, workingDir, notes };
  }

  async complete(): Promise<ShellResult> {
    const { signal, timeoutMs } = this.#run;
    const onAbort = () => void this.kill("cancelled");
    signal?.addEventListener("abort", onAbort, { once: true });
    const timer = timeoutMs ? setTimeout(() => void this.kill("timedOut"), timeoutMs) : undefined;
    this.#options.launcher.send(this.#prepared, this.#run.command, reportDirectory(this.#options.cwdFile));
    const exitCode = await this.#prepared.exit;
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
    await this.#drain();
    await this.#killing;
    this.#prepared.output.off("data", this.#onData);
    clearTimeout(this.#updateTimer);
    const notes: string[] = [];
    if (this.#stopped === undefined) notes.push(...(await this.#leave()));
    else this.#close();
    if (this.#lineEnds !== undefined) this.#collector.push(this.#lineEnds.end());
    const fullOutputPath = await this.#collector.finish();
    const collected = this.#collector.snapshot();
    return {
      ...collected,
      exitCode: this.#stopped === undefined ? exitCode : undefined,
      cancelled: this.#stopped === "cancelled",
      timedOut: this.#stopped === "timedOut",
      fullOutputPath,
      workingDir: readDirectory(this.#options.cwdFile) ?? this.#options.request.cwd,
      notes: [...notes, ...this.#collector.notes],
    };
  }

  kill(reason: "cancelled" | "timedOut", graceMs = KILL_GRACE_MS): Promise<void> {
    this.#stopped ??= reason;
    this.#killing ??= killTree(this.#prepared.pid, this.#prepared.marker, graceMs);
    return this.#killing;
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#lastData = performance.now();
    const data = this.#marker === undefined ? chunk : this.#cutMarker(chunk);
    if (data.length === 0) return;
    this.#collect(data);
    if (this.#run.onUpdate !== undefined) {
      this.#updateTimer ??= setTimeout(() => {
        this.#updateTimer = undefined;
        this.#run.onUpdate?.(this.#collector.snapshot().output);
      }, UPDATE_MS);
    }
  };

  #collect(data: Buffer): void {
    this.#collector.push(this.#lineEnds === undefined ? data : this.#lineEnds.push(data));
  }

  /** The file cannot keep up: the command waits, memory does not grow. */
  #press(full: boolean): void {
    this.#paused = full;
    if (full) this.#prepared.output.pause();
    else this.#prepared.output.resume();
  }

  /** After the exit: reads what the shell wrote before, but waits for no child that holds the output open. */
  async #drain(): Promise<void> {
    if (this.#prepared.terminal !== undefined) return this.#drainTerminal();
    const deadline = performance.now() + DRAIN_MS;
    let quietTurns = 0;
    const from = performance.now();
    while (!this.#ended && (this.#paused || performance.now() < deadline)) {
      const before = this.#lastData;
      await turn();
      quietTurns = before === this.#lastData && !this.#paused ? quietTurns + 1 : 0;
      // Each turn polls the descriptor once; a few without data mean that nothing was left in it at the exit.
      if (quietTurns >= 3 && performance.now() - Math.max(this.#lastData, from) >= QUIET_MS) return;
    }
  }

  /** A terminal keeps order: once our mark has come through, everything before it has. */
  async #drainTerminal(): Promise<void> {
    const terminal = this.#prepared.terminal;
    if (terminal === undefined || this.#ended) return;
    const text = Buffer.from(`\0\0${randomUUID()}\0\0`);
    const deadline = performance.now() + 2 * DRAIN_MS;
    let seen = false;
    const arrived = new Promise<void>((resolve) => {
      this.#marker = {
        text,
        held: Buffer.alloc(0),
        seen: () => {
          seen = true;
          resolve();
        },
      };
    });
    let written = terminal.mark(text);
    while (written < text.length && (this.#paused || performance.now() < deadline)) {
      await pause(2);
      written += terminal.mark(text.subarray(written));
    }
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<void>((resolve) => {
      const check = () => {
        if (this.#ended || (performance.now() >= deadline && !this.#paused)) resolve();
        else timer = setTimeout(check, 50);
      };
      timer = setTimeout(check, 50);
    });
    await Promise.race([arrived, limit]);
    clearTimeout(timer);
    if (!seen && this.#marker !== undefined) this.#collect(this.#marker.held);
    this.#marker = undefined;
    terminal.release();
    // Without another holder the end comes with the next poll, which spares the search for processes left behind.
    for (let turns = 0; turns < 20 && !this.#ended; turns++) await turn();
  }

  /** Takes our mark out of the stream; it may come in parts. Nothing after it belongs to the command. */
  #cutMarker(chunk: Buffer): Buffer {
    const marker = this.#marker;
    if (marker === undefined) return chunk;
    const data = marker.held.length > 0 ? Buffer.concat([marker.held, chunk]) : chunk;
    const at = data.indexOf(marker.text);
    if (at >= 0) {
      marker.held = Buffer.alloc(0);
      this.#prepared.output.off("data", this.#onData);
      marker.seen();
      return data.subarray(0, at);
    }
    const keep = Math.min(data.length, marker.text.length - 1);
    const from = data.indexOf(0, data.length - keep);
    marker.held = from < 0 ? Buffer.alloc(0) : Buffer.from(data.subarray(from));
    return from < 0 ? data : data.subarray(0, from);
  }

  /** Lets children live on and says so. Their further output is read and dropped, so that they neither block nor break. */
  async #leave(): Promise<string[]> {
    const { output, pid } = this.#prepared;
    if (this.#ended && !groupExists(pid)) return [];
    const left = await this.#leftovers();
    if (left.length === 0) {
      this.#close();
      return [];
    }
    this.#prepared.hold(false);
    output.resume();
    this.#options.onLeftover();
    const shown = left.slice(0, 5).map(({ pid: child, line }) => `${child} (${line})`);
    const more = left.length > 5 ? ` and ${left.length - 5} more` : "";
    const subject = left.length === 1 ? "1 process is" : `${left.length} processes are`;
    return [`${subject} still running in the background and will be ended with the daemon: ${shown.join(", ")}${more}`];
  }

  /** What lives on, by its command line; a process without one is just ending. */
  async #leftovers(): Promise<{ pid: number; line: string }[]> {
    const { pid, marker } = this.#prepared;
    const deadline = performance.now() + DRAIN_MS;
    for (;;) {
      const found = await Promise.all(
        (await processTree(pid, marker)).map(async (info) => ({ pid: info.pid, line: await commandLine(info.pid) })),
      );
      const left = found.filter(({ line }) => line !== "");
      // A sandbox with its own process namespace takes its children along, a moment after the shell.
      if (left.length === 0 || this.#run.wrap === undefined || performance.now() > deadline) return left;
      await pause(10);
    }
  }

  #close(): void {
    this.#prepared.terminal?.release();
    this.#prepared.output.destroy();
  }
}

/** A trap, because a command may `exit`; `set -x` must not show it. */
function reportDirectory(file: string | undefined): string {
  if (file === undefined) return "";
  return `trap '{ set +x; } 2>/dev/null; builtin pwd -P 2>/dev/null >|${file}' EXIT; `;
}

function readDirectory(file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  try {
    return readFileSync(file, "utf8").replace(/\n$/, "") || undefined;
  } catch {
    // The command replaced the shell or our trap: the directory is unknown, the old one holds.
    return undefined;
  } finally {
    rmSync(file, { force: true });
  }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
