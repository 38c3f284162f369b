// What the host contributed over the wire: sets of definitions under one scope of the highest rank.
import type { AnyDefinition, Kind } from "./kernel/definition.ts";
import { type Entry, keyOf, type Registry } from "./kernel/registry.ts";
import { Scope } from "./kernel/scope.ts";
import type { HostContributions } from "./services/host-contributions.ts";

/** Keeps every name the host ever held: it stays the host's to take back (DESIGN §9 "Host URIs"). */
export function createHostContributions(registry: Registry): HostContributions {
  const scope = new Scope({ owner: { id: "host", origin: "host", order: 0 }, generation: 1 });
  scope.state = "active";
  const sets = new Map<string, Entry[]>();
  const held = new Set<string>();
  return {
    replace(set: string, definitions: readonly AnyDefinition[]) {
      const add = definitions.map((definition) => registry.entry(definition, scope));
      for (const definition of definitions) held.add(keyOf(definition.kind, definition.name));
      registry.swap({ remove: sets.get(set) ?? [], add });
      sets.set(set, add);
    },
    owns: (kind: Kind, name: string) => held.has(keyOf(kind, name)),
  };
}
