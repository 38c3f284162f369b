// The slots of one conversation: values that extensions own and the conversation keeps. Persistent ones live in the log, so a
// branch or another session brings its own values along.
import { isDeepStrictEqual } from "node:util";
import type { SessionLog } from "../session/log.ts";
import type { Slot, SlotDefinition } from "./slot.ts";

interface Held {
  definition: SlotDefinition<unknown>;
  value: unknown;
}

export class SlotStore {
  readonly #log: SessionLog;
  readonly #report: (name: string, error: unknown) => void;
  readonly #held = new Map<string, Held>();

  constructor(log: SessionLog, report: (name: string, error: unknown) => void) {
    this.#log = log;
    this.#report = report;
  }

  /** The slot of that name. A new definition (after a reload) takes the value over if it fits the new schema. */
  slot<T>(definition: SlotDefinition<T>): Slot<T> {
    const read = (): T => this.#read(definition);
    const set = (value: T): void => this.#write(definition, value);
    return {
      get: read,
      set,
      update: (change) => {
        const value = change(read());
        set(value);
        return value;
      },
    };
  }

  /** Forgets values that come from the log: it stands at another place now. */
  reload(): void {
    for (const [name, held] of this.#held) if (held.definition.persist) this.#held.delete(name);
  }

  #read<T>(definition: SlotDefinition<T>): T {
    const held = this.#held.get(definition.name);
    if (held !== undefined && held.definition === definition) return held.value as T;
    const logged = (): unknown => this.#log.slotValue(definition.name) ?? definition.derive?.(this.#log);
    const stored = held !== undefined ? held.value : definition.persist ? logged() : undefined;
    const value = stored === undefined ? definition.initial() : this.#fit(definition, stored);
    this.#held.set(definition.name, { definition: definition as SlotDefinition<unknown>, value });
    return value;
  }

  #fit<T>(definition: SlotDefinition<T>, stored: unknown): T {
    const parsed = definition.schema.safeParse(stored);
    if (parsed.success) return parsed.data;
    this.#report(
      definition.name,
      new Error(`The stored value of slot "${definition.name}" no longer fits and is reset: ${parsed.error.issues[0]?.message}`),
    );
    return definition.initial();
  }

  #write<T>(definition: SlotDefinition<T>, value: T): void {
    const parsed = definition.schema.safeParse(value);
    if (!parsed.success)
      throw new TypeError(`Slot "${definition.name}" cannot hold this value: ${parsed.error.issues[0]?.message}`);
    const before = this.#read(definition);
    this.#held.set(definition.name, { definition: definition as SlotDefinition<unknown>, value: parsed.data });
    if (!definition.persist || isDeepStrictEqual(before, parsed.data)) return;
    try {
      this.#log.setSlot(definition.name, parsed.data);
    } catch (error) {
      this.#report(definition.name, error);
    }
  }
}
