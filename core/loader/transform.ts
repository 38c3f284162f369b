// The parent's side of the transform worker, and the cache of its results. Invariant: a result is found by everything that
// shapes it, so a cached one is always right.
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, stat, unlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { z } from "zod";
import { TransformThread } from "./transform-thread.ts";

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
  readonly #thread: TransformThread;
  readonly #memory = new Map<string, Map<string, TransformResult>>();
  /** Ends the wait of each question to the thread. */
  readonly #waiting = new Set<(error: Error) => void>();
  readonly #running = new Map<string, Promise<TransformResult>>();
  readonly #writes = new Set<Promise<void>>();
  #stopped = false;
  #written = 0;
  #salt: string | undefined;

  constructor(options: { cacheDir?: string | undefined; workerUrl?: URL | undefined } = {}) {
    this.#cacheDir = options.cacheDir === undefined ? undefined : join(options.cacheDir, "modules");
    this.#thread = TransformThread.of(options.workerUrl ?? new URL("./transform-worker.mjs", import.meta.url));
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
    if (this.#stopped) throw new Error(STOPPED);
    const result = readAnswer(request.filename, this.#thread.askSync({ ...request }));
    this.#remember(request.filename, key, result);
    return result;
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
    this.#stopped = true;
    for (const reject of this.#waiting) reject(new Error(STOPPED));
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

  /** Rejects at once when the loader stops: the thread is shared and goes on. */
  #ask(message: Record<string, unknown>): Promise<unknown> {
    return new Promise<unknown>((resolve, reject) => {
      if (this.#stopped) return reject(new Error(STOPPED));
      this.#waiting.add(reject);
      this.#thread
        .ask(message)
        .then(resolve, reject)
        .finally(() => this.#waiting.delete(reject));
    });
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
