// Dialects: ways of writing an extension that are not ours. A unit whose default export is a function is handed to the dialect
// that recognises it; the loader and the kernel know nothing of what that function expects.
import type { Context } from "../kernel/context.ts";
import { type Definition, define, type ExtensionDefinition } from "../kernel/definition.ts";

/** What tells dialects apart. */
export interface DialectHints {
  /** Every bare specifier the unit's files import. */
  readonly specifiers: readonly string[];
  /** Key of `package.json` that named the entry (`pi`, `omp`, …); absent for bare files. */
  readonly manifestKey?: string | undefined;
}

export interface DialectUnit extends DialectHints {
  /** Id of the unit, as shown in errors. */
  readonly unitId: string;
}

/** What `import` of a virtual specifier gives: the exported names. Never has a member `then`, which would hang `import()`. */
export type VirtualModule = Readonly<Record<string, unknown>>;

/** A way of writing extensions, named by its family. */
export interface DialectDefinition extends Definition<"dialect"> {
  readonly summary: string;
  /** True when the unit is written for this dialect. The first dialect in priority order that matches adapts the unit. */
  matches(hints: DialectHints): boolean;
  /** Lower is asked first; the one with the highest answers for units that give no hint. Default 0. */
  readonly priority?: number | undefined;
  /**
   * Modules the dialect supplies instead of files, by specifier. A value that is a function is called at the first import and
   * may return a promise: that keeps heavy modules unloaded until a unit asks for them. `daemon` serves what is called outside
   * any call, e.g. while a module is evaluated.
   */
  virtualModules(daemon: Context): Readonly<Record<string, VirtualModule | (() => VirtualModule | Promise<VirtualModule>)>>;
  /** Turns the unit's default export into an extension. Does not call it: that is the extension's `setup`. */
  adapt(factory: (api: unknown) => unknown, unit: DialectUnit): ExtensionDefinition;
}

export function defineDialect(dialect: Omit<DialectDefinition, "kind">): DialectDefinition {
  return define({ kind: "dialect", ...dialect });
}

declare module "../kernel/definition.ts" {
  interface Kinds {
    dialect: DialectDefinition;
  }
}

/**
 * Picks the dialect of a unit: the first match by priority, else the one that answers for everything else.
 *
 * @throws {Error} when no dialect is loaded.
 */
export function dialectOf(dialects: readonly DialectDefinition[], hints: DialectHints): DialectDefinition {
  const ordered = [...dialects].sort((a, b) => (a.priority ?? 0) - (b.priority ?? 0));
  const found = ordered.find((dialect) => dialect.matches(hints)) ?? ordered.at(-1);
  if (found === undefined) {
    throw new Error("The default export is a function, but no dialect that could run it is loaded: export a definition instead");
  }
  return found;
}

/** All virtual modules of all dialects as loaders by specifier; each module is made once. */
export function virtualModulesOf(
  dialects: readonly DialectDefinition[],
  daemon: Context,
): Map<string, () => VirtualModule | Promise<VirtualModule>> {
  const modules = new Map<string, () => VirtualModule | Promise<VirtualModule>>();
  for (const dialect of dialects) {
    for (const [specifier, value] of Object.entries(dialect.virtualModules(daemon))) {
      if (modules.has(specifier)) continue;
      let made: VirtualModule | Promise<VirtualModule> | undefined;
      modules.set(specifier, () => {
        made ??= typeof value === "function" ? value() : value;
        return made;
      });
    }
  }
  return modules;
}
