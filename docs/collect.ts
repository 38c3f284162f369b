// Every built-in definition with the file it stands in, read from the committed catalogue without starting a daemon.

import { agentFrames } from "../core/agent/events.ts";
import { coreFrames } from "../core/frames.ts";
import { type AnyDefinition, isDefinition, isExtension, type Kind, type Kinds } from "../core/kernel/definition.ts";
import { builtins } from "../core/loader/builtins.generated.ts";

export interface Collected<K extends Kind = Kind> {
  readonly definition: Kinds[K];
  /** `builtin:models`, or `core`. */
  readonly unit: string;
}

/** Definitions of a kind by name. */
export function collect<K extends Kind>(kind: K): Collected<K>[] {
  const found: Collected[] = [];
  for (const frame of [...coreFrames, ...agentFrames]) found.push({ definition: frame as AnyDefinition, unit: "core" });
  for (const unit of builtins) for (const exported of unit.definitions()) walk(exported, unit.id, found);
  const ofKind = found.filter((each) => each.definition.kind === kind) as unknown as Collected<K>[];
  return ofKind.sort((a, b) => (a.definition.name < b.definition.name ? -1 : 1));
}

function walk(value: unknown, unit: string, found: Collected[]): void {
  if (Array.isArray(value)) for (const each of value) walk(each, unit, found);
  else if (isExtension(value)) for (const each of value.contributes) walk(each, unit, found);
  else if (isDefinition(value)) found.push({ definition: value, unit });
}
