// What tells the families apart. One table, so that no other file asks which family it serves.

export type Family = "pi" | "omp" | "veyyon";

export interface Traits {
  readonly family: Family;
  /** npm scopes whose import marks a unit as written for the family. */
  readonly packages: readonly string[];
  /** Key of `package.json` that lists the entries. */
  readonly manifestKey: string;
  /** Whether events and `getSystemPrompt()` carry the system prompt as blocks instead of one text. */
  readonly promptBlocks: boolean;
  /** Whether the factory's own return value may be a tool or a list of tools (the older `tools/` folders). */
  readonly returnsTools: boolean;
  /** Whether `pi.zod`, `pi.typebox`, `pi.logger` and `pi.pi` are there, and typebox is therefore loaded before the factory runs. */
  readonly injectsLibraries: boolean;
  /** The version of the family's interface that is followed; what `VERSION` says. */
  readonly apiVersion: string;
}

export const PI: Traits = {
  family: "pi",
  packages: ["@earendil-works", "@mariozechner"],
  manifestKey: "pi",
  promptBlocks: false,
  returnsTools: false,
  injectsLibraries: false,
  apiVersion: "1.6.0",
};

export const OMP: Traits = {
  family: "omp",
  packages: ["@oh-my-pi"],
  manifestKey: "omp",
  promptBlocks: true,
  returnsTools: true,
  injectsLibraries: true,
  apiVersion: "18.3.4",
};

export const VEYYON: Traits = {
  family: "veyyon",
  packages: ["@veyyon"],
  manifestKey: "veyyon",
  promptBlocks: true,
  returnsTools: true,
  injectsLibraries: true,
  apiVersion: "18.0.0",
};

/** True when a specifier is one of the packages or a path below one. */
export function belongsTo(specifier: string, packages: readonly string[]): boolean {
  return packages.some((name) => specifier === name || specifier.startsWith(`${name}/`));
}
