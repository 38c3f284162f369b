// Which rules a conversation was told, and when.
import { type ConversationHandle, defineSlot, type SessionLog, z } from "mortise/extension";

/** Names, kept with the session. */
export const Told = defineSlot({
  name: "ttsr",
  persist: true,
  schema: z.array(z.string()),
  initial: (): string[] => [],
});

/** Completed turns of this process, and at which of them a rule was told; one told before the process counts from 0. */
export const Turns = defineSlot({
  name: "ttsr turns",
  schema: z.object({ count: z.number(), told: z.record(z.string(), z.number()) }),
  initial: (): { count: number; told: Record<string, number> } => ({ count: 0, told: {} }),
});

/** What sessions of other programs say of rules that were told. */
export class ForeignRecords {
  readonly #known = new WeakMap<SessionLog, ReadonlySet<string>>();

  names(log: SessionLog): ReadonlySet<string> {
    const known = this.#known.get(log);
    if (known !== undefined) return known;
    const names = new Set<string>();
    for (const entry of log.path()) {
      if (entry.type !== "ttsr_injection") continue;
      const listed = z.array(z.string()).safeParse(entry["injectedRules"]);
      for (const name of listed.data ?? []) names.add(name);
    }
    this.#known.set(log, names);
    return names;
  }
}

/** Rules that may be told now. */
export function mayTell(
  conversation: ConversationHandle,
  foreign: ForeignRecords,
  repeat: { mode: "once" | "after-gap"; gap: number },
): (name: string) => boolean {
  const told = new Set([...conversation.slot(Told).get(), ...foreign.names(conversation.log)]);
  const turns = conversation.slot(Turns).get();
  return (name) => {
    if (!told.has(name)) return true;
    return repeat.mode === "after-gap" && turns.count - (turns.told[name] ?? 0) >= repeat.gap;
  };
}

export function recordTold(conversation: ConversationHandle, names: readonly string[]): void {
  const told = conversation.slot(Told);
  told.set([...new Set([...told.get(), ...names])]);
  conversation.slot(Turns).update(({ count, told: at }) => ({
    count,
    told: { ...at, ...Object.fromEntries(names.map((name) => [name, count])) },
  }));
}
