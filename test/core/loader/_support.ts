// A kernel in memory around the real registry and scopes, and folders that go away after the test.
import { AsyncLocalStorage } from "node:async_hooks";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll } from "vitest";
import { z } from "zod";
import * as door from "../../../core/extension.ts";
import type { Context, Logger } from "../../../core/kernel/context.ts";
import { Registry } from "../../../core/kernel/registry.ts";
import { Scope } from "../../../core/kernel/scope.ts";
import { Evaluation } from "../../../core/loader/evaluate.ts";
import { createOwnedGlobals } from "../../../core/loader/globals.ts";
import type { ErrorReport, LoaderHost } from "../../../core/loader/host.ts";
import { Transformer } from "../../../core/loader/transform.ts";

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

const folders: string[] = [];
const transformers: Transformer[] = [];

afterAll(async () => {
  for (const transformer of transformers.splice(0)) await transformer.stop();
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

/** A new folder with these files in it; removed after the test file. */
export async function folderWith(files: Record<string, string> = {}): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "mortise-loader-")));
  folders.push(folder);
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
  transformers.push(transformer);
  return transformer;
}

let shared: Transformer | undefined;
let generation = 0;

/** Evaluates one entry with globals of its own. */
export async function evaluate(folder: string, entry: string, host: TestHost = testHost(), virtual = virtualModules()) {
  shared ??= newTransformer();
  const scope = new Scope({ owner: { id: join(folder, entry), origin: "user", order: 0 }, generation: ++generation });
  const evaluation = new Evaluation({
    root: folder,
    transformer: shared,
    virtualModules: new Map(Object.entries(virtual)),
    globals: createOwnedGlobals(scope, host),
    assertLive: (action) => scope.assertLive(action),
  });
  const exports = await host.runAs(scope, () => evaluation.run(join(folder, entry)));
  return { exports, evaluation, scope, host };
}
