// Fields of `get_state`. Each extension contributes its own.
import type { z } from "zod";
import type { Context } from "../kernel/context.ts";
import { type Definition, define } from "../kernel/definition.ts";

/** One field of the `get_state` response; `name` is the field. */
export interface StateFieldDefinition<T = unknown> extends Definition<"state field"> {
  readonly schema: z.ZodType<T>;
  /** Undefined leaves the field out. An object that is the same as last time is not serialised again, so never change it. */
  read(ctx: Context): T | undefined | Promise<T | undefined>;
}

export function defineStateField<T>(field: Omit<StateFieldDefinition<T>, "kind">): StateFieldDefinition<T> {
  return define({ kind: "state field", ...field });
}

declare module "../kernel/definition.ts" {
  interface Kinds {
    "state field": StateFieldDefinition;
  }
}
