// Contributions the host made over the wire (tools, URI schemes). They belong to no extension, rank above all of them and
// survive every reload. Implemented by the composition root.
import type { AnyDefinition, Kind } from "../kernel/definition.ts";
import { createToken } from "../kernel/services.ts";

export interface HostContributions {
  /** Replaces a set as a whole, in one swap. */
  replace(set: string, definitions: readonly AnyDefinition[]): void;
  /** True when the name is, or was in this process, the host's own. */
  owns(kind: Kind, name: string): boolean;
}

export const HostContributions = createToken<HostContributions>("host contributions");
