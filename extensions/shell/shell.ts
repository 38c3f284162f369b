// The Shell service: working directories that persist by key, waiting shells, and the end of everything at shutdown.
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type Context,
  Credentials,
  defineService,
  defineSetting,
  Launch,
  Shell,
  type ShellResult,
  type ShellRun,
  ToolError,
  z,
} from "mortise/extension";
import { shellEnvironment } from "./_env.ts";
import { Launcher } from "./_launch.ts";
import { Lifeline } from "./_lifeline.ts";
import { discard, type LaunchRequest, type Prepared } from "./_prepared.ts";
import { groupExists, killTree } from "./_processes.ts";
import { Retention } from "./_retention.ts";
import { type Running, start } from "./_run.ts";

const ArtifactsMaxBytes = defineSetting({
  name: "artifacts.maxBytes",
  schema: z.number().int().min(0),
  default: 1024 * 1024 * 1024,
  summary: "Bytes that the full outputs of one conversation may take before the oldest are removed; 0 keeps all",
});

const service = defineService(Shell, {
  create(ctx) {
    const shell = new BashShell(ctx);
    ctx.scope.own(() => shell.close(), "shell");
    return shell;
  },
});

export default [service, ArtifactsMaxBytes] as const;

class BashShell implements Shell {
  readonly #ctx: Context;
  readonly #prefix = `${process.pid}.${randomBytes(6).toString("hex")}.`;
  readonly #launcher = new Launcher(this.#prefix, (message) => {
    this.#ctx.sendRaw({ type: "notice", level: "warning", message, source: "shell" });
  });
  readonly #lifeline = new Lifeline(this.#prefix);
  readonly #retention = new Retention();
  readonly #running = new Set<Running>();
  readonly #directories = new Map<string, { base: string; current: string }>();
  #leftovers = false;
  /** Aborted by `killAll`, for commands that have no shell yet. */
  #killing = new AbortController();
  #folder: string | undefined;
  #files = 0;

  constructor(ctx: Context) {
    this.#ctx = ctx;
  }

  async run(run: ShellRun): Promise<ShellResult> {
    if (run.command.includes("\0")) throw new ToolError("Cannot run the command: it holds a NUL character");
    const { wrap, pty = false } = run;
    const request: LaunchRequest = { cwd: this.#directory(run), env: this.#environment(run.env), pty, wrap };
    const signals = run.signal === undefined ? [this.#killing.signal] : [run.signal, this.#killing.signal];
    const taking = this.#launcher.take(request);
    const prepared = await orAborted(taking, signals);
    if (prepared === undefined || signals.some((signal) => signal.aborted)) {
      taking.then(discard, () => {});
      return notRun(request.cwd);
    }
    const artifact = this.#artifactOf(run);
    const running = start(
      { ...run, artifactPath: artifact.create },
      {
        launcher: this.#launcher,
        prepared,
        request,
        cwdFile: run.session === undefined ? undefined : this.#temporary(),
        onLeftover: () => this.#adopt(prepared),
      },
    );
    this.#running.add(running);
    this.#lifeline.hold(running.group);
    try {
      const result = await running.result;
      if (run.session !== undefined) this.#directories.set(run.session, { base: run.cwd, current: result.workingDir });
      return result;
    } finally {
      const forget = () => {
        this.#forget(running);
        artifact.complete();
      };
      running.over.then(forget, forget);
      const next = { ...request, cwd: run.session === undefined ? request.cwd : this.#directory(run, request.cwd) };
      setImmediate(() => this.#launcher.prepare(next));
    }
  }

  async killAll(): Promise<void> {
    this.#killing.abort();
    this.#killing = new AbortController();
    const hasLeftovers = this.#leftovers;
    this.#leftovers = false;
    // 1 s: DESIGN §9 "End of input". All at once: the end of the daemon does not wait long for it.
    const graceMs = 1000;
    await Promise.all([
      ...[...this.#running].map((running) => running.cancel(graceMs)),
      ...(hasLeftovers ? [killTree(undefined, this.#prefix, graceMs)] : []),
    ]);
  }

  async close(): Promise<void> {
    this.#launcher.close();
    await this.killAll();
    this.#lifeline.close();
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true, force: true });
  }

  /** The file for a long output, and what to do when it is complete. */
  #artifactOf({ artifactPath }: ShellRun): { create: (() => string) | undefined; complete(): void } {
    let file: string | undefined;
    const create = (path: () => string) => {
      file = path();
      this.#retention.opened(file);
      return file;
    };
    return {
      create: artifactPath && (() => create(artifactPath)),
      complete: () => {
        if (file !== undefined) void this.#retention.closed(file, this.#ctx.setting(ArtifactsMaxBytes));
      },
    };
  }

  #forget(running: Running): void {
    this.#running.delete(running);
    if (!groupExists(running.group)) this.#lifeline.drop(running.group);
  }

  #adopt(prepared: Prepared): void {
    this.#leftovers = true;
    prepared.output.once("close", () => prepared.terminal?.release());
  }

  #environment(extra: Record<string, string> | undefined): Record<string, string> {
    return shellEnvironment(this.#ctx.tryUse(Launch)?.env ?? process.env, this.#ctx.tryUse(Credentials)?.secrets() ?? [], extra);
  }

  /** The remembered directory of a key, as long as the conversation's own is still the one it started from. */
  #directory(run: ShellRun, fallback?: string): string {
    const kept = run.session === undefined ? undefined : this.#directories.get(run.session);
    if (kept !== undefined && kept.base === run.cwd && isDirectory(kept.current)) return kept.current;
    if (fallback !== undefined) return fallback;
    if (!isDirectory(run.cwd)) throw new ToolError(`Cannot run the command: "${run.cwd}" is not a directory`);
    return run.cwd;
  }

  #temporary(): string {
    return join(this.#temporaryFolder(), `cwd-${++this.#files}`);
  }

  /** Without quotes and blanks in its name: it stands in a shell script. */
  #temporaryFolder(): string {
    const base = /^[\w./-]+$/.test(tmpdir()) ? tmpdir() : "/tmp";
    this.#folder ??= mkdtempSync(join(base, "mortise-shell-"));
    return this.#folder;
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** Undefined as soon as one of the signals is aborted. */
function orAborted<T>(promise: Promise<T>, signals: readonly AbortSignal[]): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const stop = () => resolve(undefined);
    if (signals.some((signal) => signal.aborted)) stop();
    for (const signal of signals) signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => {
      for (const signal of signals) signal.removeEventListener("abort", stop);
    });
  });
}

function notRun(workingDir: string): ShellResult {
  const counts = { totalLines: 0, totalBytes: 0, outputLines: 0, outputBytes: 0 };
  return { output: "", cancelled: true, timedOut: false, truncated: false, ...counts, workingDir, notes: [] };
}
