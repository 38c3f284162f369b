// What the composition root hands to the loader.
import type { Isolate } from "./generation.ts";
import type { AdaptFactory, BuiltinUnit, Root } from "./host.ts";

export interface LoaderOptions {
  builtins: readonly BuiltinUnit[];
  /** In order; within a rank the units of an earlier root answer first. */
  roots: readonly Root[];
  /** Specifier → namespace, or a function that gives it at the first import. Asked once, before the first evaluation. */
  virtualModules(): Promise<Record<string, unknown>>;
  adaptFactory?: AdaptFactory | undefined;
  /** Decides whether a unit runs in a process of its own. */
  isolate?: Isolate | undefined;
  /** For transformed modules; `$MORTISE_HOME/cache`. None is kept when absent. */
  cacheDir?: string | undefined;
  /** The transform worker, when it does not lie beside this module (in a bundle). */
  workerUrl?: URL | undefined;
  /** Reads built-ins from their sources and watches them. */
  dev?: boolean | undefined;
  /** What relative `sources` of built-ins are relative to. */
  sourceRoot?: string | undefined;
  watch?: boolean | undefined;
  /** True for hook points whose handlers must block when their unit is quarantined (DESIGN §5 "Hooks"). */
  isGate?: ((hookPoint: string) => boolean) | undefined;
  /** False for a file of a project's unit that must not be read now; its unit stays as it is until `retryHeld`. */
  mayRead?: ((realPath: string) => boolean) | undefined;
  /** How long `start` waits for a slow unit before the others go live without it. */
  patienceMs?: number | undefined;
  loadLimitMs?: number | undefined;
  setupLimitMs?: number | undefined;
  /** How long calls other than runs may hold an old generation. */
  drainLimitMs?: number | undefined;
}
