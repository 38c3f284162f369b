// The parent's side of the transform worker, and the cache of its results. Invariant: a result is found by everything that
// shapes it, so a cached one is always right.
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, stat, unlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { MessageChannel, receiveMessageOnPort, Worker } from "node:worker_threads";
import { z } from "zod";

const TransformResult = z.object({
  code: z.string(),
  imports: z.array(z.object({ specifier: z.string(), names: z.array(z.string()), line: z.number().optional() })),
  requires: z.array(z.string()),
  /** Every module named by an import or export statement, type-only ones included. */
  sources: z.array(z.string()),
});
/** A module as a function body, with the names it needs from others. */
export type TransformResult = z.infer<typeof TransformResult>;

const Failure = z.object({
  error: z.object({ message: z.string(), line: z.number().optional(), column: z.number().optional() }),
});
const Resolution = z.object({ url: z.string().nullable() });

export interface TransformRequest {
  filename: string;
  source: string;
  /** False for modules reached by `require`: their imports become `require` calls. */
  async: boolean;
}

/** Grows when transform-worker.mjs produces other code for the same source. */
const FORMAT = 3;
/** Results kept in memory per file: the one in use and the one before. */
const KEPT_PER_FILE = 2;
const KEPT_FILES = 1000;
const KEPT_ON_DISK = 4000;
/** A worker costs 40 MiB; the next save after a pause this long pays its start again. */
const IDLE_MS = 5 * 60_000;
/** How long a synchronous `require` waits for the worker. */
const SYNC_LIMIT_MS = 10_000;

interface Pending {
  resolve(message: unknown): void;
  reject(error: Error): void;
}

/** A module that cannot be parsed, or linked. `message` starts with file:line:column, and the stack names that place alone. */
export class ParseError extends SyntaxError {
  readonly file: string;
  readonly line: number | undefined;
  readonly column: number | undefined;
  constructor(file: string, message: string, line?: number, column?: number) {
    // Babel counts columns from 0, everybody else from 1.
    const place = [file, line, column === undefined ? undefined : column + 1].filter((part) => part !== undefined).join(":");
    super(`${place}: ${message.replace(/[.\s]+$/, "")}`);
    this.stack = `${this.name}: ${this.message}\n    at ${place}`;
    this.file = file;
    this.line = line;
    this.column = column === undefined ? undefined : column + 1;
  }
}

const STOPPED = "The loader was stopped";

export class Transformer {
  readonly #cacheDir: string | undefined;
  readonly #workerUrl: URL;
  readonly #memory = new Map<string, Map<string, TransformResult>>();
  readonly #pending = new Map<number, Pending>();
  readonly #running = new Map<string, Promise<TransformResult>>();
  readonly #writes = new Set<Promise<void>>();
  #worker: Worker | undefined;
  #stopped = false;
  #idle: NodeJS.Timeout | undefined;
  #nextId = 1;
  #written = 0;
  #salt: string | undefined;

  constructor(options: { cacheDir?: string | undefined; workerUrl?: URL | undefined } = {}) {
    this.#cacheDir = options.cacheDir === undefined ? undefined : join(options.cacheDir, "modules");
    this.#workerUrl = options.workerUrl ?? new URL("./transform-worker.mjs", import.meta.url);
  }

  /** @throws {ParseError} */
  async transform(request: TransformRequest): Promise<TransformResult> {
    const key = this.#key(request);
    const cached = this.#remembered(request.filename, key);
    if (cached !== undefined) return cached;
    let running = this.#running.get(key);
    if (running === undefined) {
      running = this.#produce(request, key).finally(() => this.#running.delete(key));
      this.#running.set(key, running);
    }
    return running;
  }

  /** Blocks until the worker has answered; for `require` of a file nobody announced. @throws {ParseError} */
  transformSync(request: TransformRequest): TransformResult {
    const key = this.#key(request);
    const cached = this.#remembered(request.filename, key);
    if (cached !== undefined) return cached;
    const { port1, port2 } = new MessageChannel();
    const wake = new Int32Array(new SharedArrayBuffer(4));
    this.#ensureWorker().postMessage({ ...request, id: 0, wake, port: port2 }, [port2]);
    try {
      if (Atomics.wait(wake, 0, 0, SYNC_LIMIT_MS) === "timed-out") {
        throw new Error(`Cannot transform ${request.filename}: no answer within ${SYNC_LIMIT_MS} ms`);
      }
      const result = readAnswer(request.filename, receiveMessageOnPort(port1)?.message);
      this.#remember(request.filename, key, result);
      return result;
    } finally {
      port1.close();
      this.#restWhenIdle();
    }
  }

  /** Where `import specifier` leads from the module at `parent` (a file URL); undefined when nowhere. */
  async resolve(specifier: string, parent: string): Promise<string | undefined> {
    const answer = Resolution.safeParse(await this.#ask({ kind: "resolve", specifier, parent }));
    return answer.success ? (answer.data.url ?? undefined) : undefined;
  }

  /** Starts the worker before it is needed. */
  async warm(): Promise<void> {
    await this.#ask({ filename: "warm.ts", source: "export default 1", async: true });
  }

  /** Resolves when nothing of it runs any more and nothing is written to the cache. */
  async stop(): Promise<void> {
    clearTimeout(this.#idle);
    this.#stopped = true;
    const worker = this.#worker;
    this.#worker = undefined;
    this.#fail(new Error(STOPPED));
    await worker?.terminate();
    await Promise.all(this.#writes);
  }

  async #produce(request: TransformRequest, key: string): Promise<TransformResult> {
    const stored = await this.#read(key);
    if (stored !== undefined) {
      this.#remember(request.filename, key, stored);
      return stored;
    }
    const result = readAnswer(request.filename, await this.#ask({ ...request }));
    this.#remember(request.filename, key, result);
    const write = this.#write(key, result).finally(() => this.#writes.delete(write));
    this.#writes.add(write);
    return result;
  }

  #ask(message: Record<string, unknown>): Promise<unknown> {
    const worker = this.#ensureWorker();
    const id = this.#nextId++;
    return new Promise<unknown>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      // A referenced worker keeps the process alive exactly while somebody waits for it.
      worker.ref();
      worker.postMessage({ ...message, id });
    });
  }

  /** @throws {Error} after `stop`. */
  #ensureWorker(): Worker {
    if (this.#stopped) throw new Error(STOPPED);
    clearTimeout(this.#idle);
    if (this.#worker !== undefined) return this.#worker;
    // Options of the parent (tsx, vitest, --inspect) mean nothing to plain JavaScript and cost its start.
    const worker = new Worker(this.#workerUrl, { execArgv: [], stdout: true, stderr: true });
    worker.unref();
    worker.stdout.on("data", (chunk: Buffer) => process.stderr.write(chunk));
    worker.stderr.on("data", (chunk: Buffer) => process.stderr.write(chunk));
    worker.on("message", (message: { id: number }) => {
      const pending = this.#pending.get(message.id);
      this.#pending.delete(message.id);
      if (this.#pending.size === 0) this.#restWhenIdle();
      pending?.resolve(message);
    });
    const lost = (error: unknown) => {
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      this.#fail(new Error("The transform worker ended", { cause: error }));
    };
    worker.on("error", lost);
    worker.on("exit", lost);
    this.#worker = worker;
    return worker;
  }

  #restWhenIdle(): void {
    this.#worker?.unref();
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => {
      const worker = this.#worker;
      this.#worker = undefined;
      void worker?.terminate();
    }, IDLE_MS);
    this.#idle.unref();
  }

  #fail(error: Error): void {
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { reject } of pending) reject(error);
  }

  #key(request: TransformRequest): string {
    this.#salt ??= `${FORMAT} ${jitiVersion()}`;
    return createHash("sha256")
      .update(`${this.#salt}\0${request.async}\0${request.filename}\0`)
      .update(request.source)
      .digest("hex");
  }

  #remembered(filename: string, key: string): TransformResult | undefined {
    return this.#memory.get(filename)?.get(key);
  }

  #remember(filename: string, key: string, result: TransformResult): void {
    const results = this.#memory.get(filename) ?? new Map<string, TransformResult>();
    this.#memory.delete(filename);
    this.#memory.set(filename, results);
    results.set(key, result);
    dropOldest(results, KEPT_PER_FILE);
    dropOldest(this.#memory, KEPT_FILES);
  }

  async #read(key: string): Promise<TransformResult | undefined> {
    if (this.#cacheDir === undefined) return undefined;
    try {
      const text = await readFile(join(this.#cacheDir, `${key}.json`), "utf8");
      return TransformResult.safeParse(JSON.parse(text)).data;
    } catch {
      // Absent or damaged: the module is transformed again.
      return undefined;
    }
  }

  /** A cache that cannot be written costs time, nothing else. */
  async #write(key: string, result: TransformResult): Promise<void> {
    if (this.#cacheDir === undefined) return;
    const path = join(this.#cacheDir, `${key}.json`);
    const temporary = `${path}.${process.pid}.tmp`;
    try {
      if (this.#written === 0) await mkdir(this.#cacheDir, { recursive: true, mode: 0o700 });
      await writeFile(temporary, JSON.stringify(result), { mode: 0o600 });
      await rename(temporary, path);
      if (this.#written++ % 500 === 0) await prune(this.#cacheDir);
    } catch {
      await unlink(temporary).catch(() => {});
    }
  }
}

function readAnswer(filename: string, message: unknown): TransformResult {
  const failure = Failure.safeParse(message);
  if (failure.success) {
    const { message: text, line, column } = failure.data.error;
    throw new ParseError(filename, text, line, column);
  }
  return TransformResult.parse(message);
}

function dropOldest<V>(map: Map<string, V>, kept: number): void {
  for (const key of map.keys()) {
    if (map.size <= kept) return;
    map.delete(key);
  }
}

function jitiVersion(): string {
  try {
    const manifest: unknown = createRequire(import.meta.url)("jiti/package.json");
    return z.object({ version: z.string() }).parse(manifest).version;
  } catch {
    return "unknown";
  }
}

async function prune(directory: string): Promise<void> {
  const names = await readdir(directory);
  if (names.length <= KEPT_ON_DISK) return;
  const aged = await Promise.all(
    names.map(async (name) => ({ path: join(directory, name), time: (await stat(join(directory, name))).mtimeMs })),
  );
  aged.sort((a, b) => a.time - b.time);
  for (const { path } of aged.slice(0, names.length - KEPT_ON_DISK / 2)) await unlink(path).catch(() => {});
}
