// Setting definitions: a dotted path, a schema with a default, declared next to the code that reads it.
import type { z } from "zod";
import { type Definition, define } from "../kernel/definition.ts";

export interface SettingDefinition<T = unknown> extends Definition<"setting"> {
  readonly schema: z.ZodType<T>;
  readonly default: T;
  readonly summary: string;
  /** Value in RPC modes while no layer configures the path (000_…, "RPC mode host-defaults"). */
  readonly hostDefault?: T | undefined;
  /** Older dotted names read as this one (`task.*` of older files). */
  readonly aliases?: readonly string[] | undefined;
  /** A project's file may set it only when the project is trusted: the value runs, reaches out or lowers a guard. */
  readonly trustedOnly?: boolean | undefined;
}

/** Defines a setting; `name` is the dotted path. Read it with `ctx.setting(definition)`. */
export function defineSetting<T>(setting: Omit<SettingDefinition<T>, "kind">): SettingDefinition<T> {
  return define({ kind: "setting", ...setting });
}

declare module "../kernel/definition.ts" {
  interface Kinds {
    setting: SettingDefinition;
  }
}
