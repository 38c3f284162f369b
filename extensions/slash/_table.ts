// Which slash command answers which name. A pure view over the registry's contributions.
// Rules (protocol-facts §1.13, DESIGN §5 "Names"): a built-in's name and aliases are its own unless an extension says
// `override`; an extension's command whose name, or the part before its colon, is a built-in's is hidden, and so is one with the
// name of a skill; names beat aliases.
import type { Context, SlashDefinition, SlashEntry, SlashMatch } from "mortise/extension";

type Source = SlashEntry["source"];

/** Listing order. */
const ORDER: Record<Source, number> = { builtin: 0, skill: 1, extension: 2, custom: 3, mcp_prompt: 3, file: 4 };

interface Row {
  readonly definition: SlashDefinition;
  readonly owner: string;
  readonly source: Source;
  readonly aliases: string[];
  /** What the definition asks for; an override takes over the aliases of the built-in it replaces. */
  wanted: readonly string[];
}

export class SlashTable {
  /** In listing order. */
  readonly #rows: readonly Row[];
  readonly #byName = new Map<string, Row>();
  readonly #byAlias = new Map<string, Row>();
  #listing: readonly SlashEntry[] | undefined;

  constructor(registry: Context["registry"]) {
    const everything: Row[] = registry.all("slash command").map(({ definition, scope }) => ({
      definition,
      owner: scope.owner.id,
      source: sourceOf(definition, scope.owner.origin === "builtin"),
      aliases: [],
      wanted: definition.aliases ?? [],
    }));
    // `builtin:…` means the daemon's own, whether there is such a command or not.
    const claimed = new Set(["builtin"]);
    for (const { definition, source } of everything) {
      if (source === "builtin") for (const name of [definition.name, ...(definition.aliases ?? [])]) claimed.add(name);
    }
    const skills = new Set(everything.filter(({ source }) => source === "skill").map(({ definition }) => definition.name));
    const allowed = ({ source, definition: { name, override } }: Row) => {
      if (source === "builtin" || override === true) return true;
      return !claimed.has(beforeColon(name)) && (source === "skill" || !skills.has(name));
    };
    for (const { name } of registry.list("slash command")) {
      const byRank = registry.stack("slash command", name).map((entry) => entry.definition);
      const rows = byRank.map((definition) => everything.find((row) => row.definition === definition));
      const winner = rows.find((row) => row !== undefined && allowed(row));
      if (winner === undefined) continue;
      const replaced = winner.source === "builtin" ? undefined : rows.find((row) => row?.source === "builtin");
      if (replaced !== undefined) winner.wanted = [...winner.wanted, ...replaced.wanted];
      this.#byName.set(name, winner);
    }
    this.#rows = [...this.#byName.values()].sort((a, b) => ORDER[a.source] - ORDER[b.source]);
    for (const row of this.#rows) {
      for (const alias of row.wanted) {
        if (this.#byName.has(alias) || this.#byAlias.has(alias)) continue;
        if (row.source !== "builtin" && claimed.has(beforeColon(alias)) && row.definition.override !== true) continue;
        this.#byAlias.set(alias, row);
        row.aliases.push(alias);
      }
    }
  }

  /** `/name args` and `/name:args`; the whole first word wins over its part before a colon, except against a built-in. */
  match(text: string): SlashMatch | undefined {
    const parts = /^\/([^\s]+)(?:\s+([\s\S]*))?$/.exec(text);
    const word = parts?.[1];
    if (word === undefined) return undefined;
    const rest = (parts?.[2] ?? "").trim();
    const head = beforeColon(word);
    const whole = this.#find(word);
    const short = head === word ? undefined : this.#find(head);
    const colonArgs = `${word.slice(head.length + 1)} ${rest}`.trim();
    if (whole !== undefined && (short?.source !== "builtin" || whole.definition.override === true)) {
      return { definition: whole.definition, owner: whole.owner, name: word, args: rest };
    }
    return short && { definition: short.definition, owner: short.owner, name: head, args: colonArgs };
  }

  listing(): readonly SlashEntry[] {
    this.#listing ??= this.#rows.map(entryOf);
    return this.#listing;
  }

  #find(name: string): Row | undefined {
    return this.#byName.get(name) ?? this.#byAlias.get(name);
  }
}

function sourceOf(definition: SlashDefinition, isBuiltin: boolean): Source {
  return definition.source ?? (isBuiltin ? "builtin" : "extension");
}

function beforeColon(name: string): string {
  const colon = name.indexOf(":");
  return colon < 0 ? name : name.slice(0, colon);
}

function entryOf({ definition, source, aliases }: Row): SlashEntry {
  const description = definition.description || fallbackDescription(definition.name, source);
  const hint = definition.argumentHint ?? (source === "builtin" || source === "file" ? undefined : "arguments");
  return {
    name: definition.name,
    ...(aliases.length > 0 ? { aliases: [...aliases] } : {}),
    ...(description === undefined ? {} : { description }),
    ...(hint === undefined ? {} : { input: { hint } }),
    ...(definition.subcommands === undefined ? {} : { subcommands: definition.subcommands.map((each) => ({ ...each })) }),
    source,
  };
}

function fallbackDescription(name: string, source: Source): string | undefined {
  if (source === "skill") return `Run ${name.replace(/^skill:/, "")} skill`;
  return source === "extension" ? "(extension command)" : undefined;
}
