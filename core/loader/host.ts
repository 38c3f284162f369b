// What the loader needs from the kernel, and the words it shares with its users.
import type { Context, Logger } from "../kernel/context.ts";
import type { ExtensionDefinition } from "../kernel/definition.ts";
import type { ExtensionPhase } from "../kernel/errors.ts";
import type { Registry } from "../kernel/registry.ts";
import type { Origin, Scope } from "../kernel/scope.ts";

/** A failure that belongs to an extension; becomes an `extension_error` frame. */
export interface ErrorReport {
  owner: string;
  event: string;
  error: unknown;
  phase: ExtensionPhase;
  generation: number;
}

/** The kernel, seen from the loader. */
export interface LoaderHost {
  readonly registry: Registry;
  readonly log: Logger;
  createContext(scope: Scope): Context;
  /** Runs `fn` so that errors of its late continuations are attributed to the scope's owner. */
  runAs<T>(scope: Scope, fn: () => T): T;
  reportError(report: ErrorReport): void;
}

/** A built-in unit of the committed catalogue. */
export interface BuiltinUnit {
  /** `builtin:models`. */
  readonly id: string;
  readonly name: string;
  /** Folder or file the unit is read from with `--dev`. */
  readonly sources?: string | undefined;
  /** The default exports of its modules. */
  definitions(): unknown[];
}

/** Where units come from. `folder`: every child may be a unit. `unit`: the path itself is one. */
export interface Root {
  readonly path: string;
  readonly origin: Origin;
  readonly kind: "folder" | "unit";
  /** Real paths under the root that are not units of it, e.g. the built-ins in the checkout's `extensions/`. */
  readonly exclude?: readonly string[] | undefined;
}

export type UnitState =
  | "discovered"
  | "evaluating"
  | "staging"
  | "active"
  | "draining"
  | "disposed"
  | "failed"
  | "waiting"
  | "disabled"
  | "quarantined";

/** Milliseconds of the last load, by step. `transpile` and `resolve` are part of `evaluate`; units that go live together share `swap`. */
export interface LoadTimings {
  resolve: number;
  transpile: number;
  evaluate: number;
  setup: number;
  swap: number;
}

/** A unit as `--print-extensions` and the management commands show it. */
export interface UnitInfo {
  readonly id: string;
  /** The path it was found under, or the built-in's name. */
  readonly path: string;
  readonly origin: Origin;
  readonly state: UnitState;
  /** Number of the active generation; 0 when there is none. */
  readonly generation: number;
  /** Number of an old generation that still finishes calls. */
  readonly draining?: number | undefined;
  /** A newer content waits for a consent. */
  readonly held: boolean;
  /** Files whose change reloads the unit. */
  readonly files: readonly string[];
  readonly timings: LoadTimings;
  readonly error?: string | undefined;
  /** `kind:name` of what is registered. */
  readonly contributes: readonly string[];
  /** `kind:name` and the owner that answers instead, or that this unit hides. */
  readonly shadows: ReadonlyArray<{ key: string; owner: string }>;
  readonly shadowedBy: ReadonlyArray<{ key: string; owner: string }>;
}

/** What one load of one unit came to. */
export interface ReloadReport {
  readonly id: string;
  readonly outcome: "loaded" | "unchanged" | "failed" | "removed" | "skipped" | "waiting";
  readonly generation: number;
  readonly error?: unknown;
  readonly timings?: LoadTimings | undefined;
}

/** Turns a pi-style factory into a definition. */
export type AdaptFactory = (
  // biome-ignore lint/complexity/noBannedTypes: any function may be a factory; the dialect decides how to call it
  factory: Function,
  info: { unitId: string; specifiers: string[]; manifestKey?: string | undefined },
) => ExtensionDefinition;
