// A kernel in memory around the real registry and scopes, and folders that go away after the test.
import { AsyncLocalStorage } from "node:async_hooks";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { z } from "zod";
import * as door from "../../../core/extension.ts";
import type { Context, Logger } from "../../../core/kernel/context.ts";
import { Registry } from "../../../core/kernel/registry.ts";
import { Scope } from "../../../core/kernel/scope.ts";
import { Evaluation } from "../../../core/loader/evaluate.ts";
import { createOwnedGlobals } from "../../../core/loader/globals.ts";
import type { BuiltinUnit, ErrorReport, LoaderHost } from "../../../core/loader/host.ts";
import { Loader } from "../../../core/loader/loader.ts";
import type { LoaderOptions } from "../../../core/loader/loader-options.ts";
import { Transformer } from "../../../core/loader/transform.ts";
import { VirtualModules } from "../../../core/loader/virtual-modules.ts";
import { afterFile } from "../../support/clean-up.ts";

export interface TestHost extends LoaderHost {
  readonly reports: ErrorReport[];
  readonly lines: string[];
  /** Resolves with the first report that `wanted` accepts, past ones included. */
  reported(wanted: (report: ErrorReport) => boolean): Promise<ErrorReport>;
  current(): Scope | undefined;
}

export function testHost(): TestHost {
  const attribution = new AsyncLocalStorage<Scope>();
  const reports: ErrorReport[] = [];
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  const write = (message: string) => void lines.push(message);
  const log: Logger = { debug: () => {}, info: write, warn: write, error: write };
  const registry = new Registry();
  return {
    registry,
    log,
    reports,
    lines,
    current: () => attribution.getStore(),
    createContext: (scope) => ({ owner: scope.owner.id, scope, signal: scope.signal, registry, log }) as unknown as Context,
    runAs: (scope, fn) => attribution.run(scope, fn),
    reportError: (report) => {
      reports.push(report);
      for (const check of [...waiting]) check();
    },
    reported: (wanted) =>
      new Promise((resolve) => {
        const check = () => {
          const found = reports.find(wanted);
          if (found === undefined) return;
          waiting.delete(check);
          resolve(found);
        };
        waiting.add(check);
        check();
      }),
  };
}

/** Tool and extension modules see the same names a daemon hands in. */
export function virtualModules(): Record<string, unknown> {
  return { "mortise/extension": door, zod: { ...z, z, default: z } };
}

/** A tool that gives this answer. */
export const answering = (name: string, answer: string) =>
  door.defineTool({ name, description: "d", params: z.object({}), run: () => answer });

export const builtin = (name: string, ...definitions: unknown[]): BuiltinUnit => ({
  id: `builtin:${name}`,
  name,
  definitions: () => definitions,
});

/** A new folder with these files in it; removed after the test file. */
export async function folderWith(files: Record<string, string> = {}): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "mortise-loader-")));
  afterFile(() => rm(folder, { recursive: true, force: true }));
  await write(folder, files);
  return folder;
}

export async function write(folder: string, files: Record<string, string>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
}

export function newTransformer(cacheDir?: string, workerUrl?: URL): Transformer {
  const transformer = new Transformer({ cacheDir, workerUrl });
  afterFile(() => transformer.stop());
  return transformer;
}

let shared: Transformer | undefined;
function sharedTransformer(): Transformer {
  if (shared !== undefined) return shared;
  afterFile(() => {
    shared = undefined;
  });
  shared = newTransformer();
  return shared;
}

let generation = 0;

/** Evaluates one entry with globals of its own. */
export async function evaluate(folder: string, entry: string, host: TestHost = testHost(), virtual = virtualModules()) {
  const transformer = sharedTransformer();
  const scope = new Scope({ owner: { id: join(folder, entry), origin: "user", order: 0 }, generation: ++generation });
  const evaluation = new Evaluation({
    root: folder,
    transformer,
    virtualModules: new VirtualModules(virtual),
    globals: createOwnedGlobals(scope, host),
    assertLive: (action) => scope.assertLive(action),
  });
  const exports = await host.runAs(scope, () => evaluation.run(join(folder, entry)));
  return { exports, evaluation, scope, host };
}

// ── Whole loaders ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const loaders: Loader[] = [];

/** Stops what a test started; call it in `afterEach`. */
export async function stopLoaders(): Promise<void> {
  for (const loader of loaders.splice(0)) await loader.stop();
}

export interface Started {
  loader: Loader;
  host: TestHost;
  /** What the tool answers now; the call holds its generation. */
  call(tool: string): Promise<unknown>;
  /** Resolves when the tool answers `expected`; rejects after the limit. */
  answers(tool: string, expected: unknown, limitMs?: number): Promise<number>;
  /** Resolves when `check` holds after some change of the registry. */
  until(check: () => boolean, limitMs?: number): Promise<void>;
}

/** A started loader over a folder. */
export async function start(folder: string | undefined, options: Partial<LoaderOptions> = {}): Promise<Started> {
  const host = testHost();
  const loader = new Loader(host, {
    builtins: [],
    roots: folder === undefined ? [] : [{ path: folder, origin: "user", kind: "folder" }],
    virtualModules: () => Promise.resolve(virtualModules()),
    // A busy machine is no reason to start without a unit.
    patienceMs: 30_000,
    ...options,
  });
  loaders.push(loader);
  await loader.start();
  return { loader, host, ...callers(host) };
}

function callers(host: TestHost): Pick<Started, "call" | "answers" | "until"> {
  const call = async (name: string) => {
    const entry = host.registry.get("tool", name);
    if (entry === undefined) throw new Error(`Unknown tool ${name}`);
    const release = entry.scope.lease("run");
    try {
      return await host.runAs(entry.scope, () => entry.definition.run({ signal: entry.scope.signal } as never, {} as never));
    } finally {
      release();
    }
  };
  const until = (check: () => boolean, limitMs = 5000) =>
    new Promise<void>((resolve, reject) => {
      const settle = (error?: Error) => {
        clearTimeout(timer);
        unsubscribe();
        if (error) reject(error);
        else resolve();
      };
      const look = () => {
        if (check()) settle();
      };
      const timer = setTimeout(() => settle(new Error("The registry did not come to the expected state in time")), limitMs);
      const unsubscribe = host.registry.onChange(look);
      look();
    });
  const answers = async (name: string, expected: unknown, limitMs = 5000) => {
    const started = performance.now();
    let last: unknown;
    while (performance.now() - started < limitMs) {
      const seen = host.registry.version;
      last = await call(name).catch((error: unknown) => error);
      if (last === expected) return performance.now() - started;
      await until(() => host.registry.version !== seen, limitMs - (performance.now() - started)).catch(() => {});
    }
    throw new Error(`Tool ${name} was expected to answer ${String(expected)}, it answers ${String(last)}`);
  };
  return { call, answers, until };
}

/** A module whose tool answers with a constant. */
export function toolFile(name: string, answer: unknown, more = ""): string {
  return `import { defineTool, z } from "mortise/extension";\n${more}\nexport default defineTool({ name: "${name}", description: "d", params: z.object({}), run: () => ${JSON.stringify(answer)} as string });\n`;
}

/** Waits for what no event tells. */
export async function until(check: () => boolean, limitMs = 10_000): Promise<void> {
  for (const start = performance.now(); !check(); ) {
    if (performance.now() - start > limitMs) throw new Error(`Waited in vain for ${check}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
