// A slot is typed per-conversation state of one extension. The conversation stores it; a persistent one is written to the
// session log as a `custom` entry, so branch and switch_session restore it.
import type { z } from "zod";
import { type Definition, define } from "../kernel/definition.ts";
import type { SessionLog } from "../session/log.ts";

export interface SlotDefinition<T = unknown> extends Definition<"slot"> {
  readonly schema: z.ZodType<T>;
  initial(): T;
  /** Written to the log as `custom` entries with `customType: "slot:<name>"`. */
  readonly persist: boolean;
  /** The value that another program left in the log, when the slot itself has none there; it must fit the schema. */
  derive?(log: SessionLog): unknown;
}

export function defineSlot<T>(slot: {
  name: string;
  schema: z.ZodType<T>;
  initial(): T;
  persist?: boolean;
  derive?(log: SessionLog): unknown;
}): SlotDefinition<T> {
  return define({ kind: "slot", ...slot, persist: slot.persist ?? false });
}

/** A slot of one conversation. `set` on a persistent slot appends an entry once the session has a file. */
export interface Slot<T> {
  get(): T;
  set(value: T): void;
  update(change: (value: T) => T): T;
}

declare module "../kernel/definition.ts" {
  interface Kinds {
    slot: SlotDefinition;
  }
}
