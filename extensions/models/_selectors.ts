// From what people write to models: `provider/id`, `id`, either with `:level`, and patterns with `*` in lists.
import type { Model, ThinkingLevel } from "mortise/extension";
import { parseLevel } from "./_levels.ts";

export interface Selected {
  model: Model;
  thinkingLevel?: ThinkingLevel | undefined;
}

/** Pools in order of preference; the first that has an answer gives it. Exact names win over beginnings in all of them. */
export function select(selector: string, pools: readonly (readonly Model[])[], provider?: string): Selected | undefined {
  const text = selector.trim();
  if (text === "") return undefined;
  const within = pools.map((pool) => (provider === undefined ? pool : pool.filter((model) => model.provider === provider)));
  const readings = readingsOf(text);
  // Ids may hold colons and slashes themselves, so the whole text is tried before a level is cut off.
  for (const match of [exactly, sameLetters, beginning]) {
    for (const reading of readings) {
      for (const pool of within) {
        const model = match(reading.name, pool);
        if (model) return reading.level === undefined ? { model } : { model, thinkingLevel: reading.level };
      }
    }
  }
  return undefined;
}

function readingsOf(text: string): { name: string; level: ThinkingLevel | undefined }[] {
  const readings: { name: string; level: ThinkingLevel | undefined }[] = [{ name: text, level: undefined }];
  const colon = text.lastIndexOf(":");
  const level = colon > 0 ? parseLevel(text.slice(colon + 1)) : undefined;
  if (level !== undefined) readings.push({ name: text.slice(0, colon), level });
  return readings;
}

export function fullName(model: Model): string {
  return `${model.provider}/${model.id}`;
}

function exactly(name: string, pool: readonly Model[]): Model | undefined {
  return pool.find((model) => fullName(model) === name) ?? pool.find((model) => model.id === name);
}

function sameLetters(name: string, pool: readonly Model[]): Model | undefined {
  const small = name.toLowerCase();
  return pool.find((model) => fullName(model).toLowerCase() === small) ?? pool.find((model) => model.id.toLowerCase() === small);
}

function beginning(name: string, pool: readonly Model[]): Model | undefined {
  const small = name.toLowerCase();
  const matches = pool.filter(
    (model) => fullName(model).toLowerCase().startsWith(small) || model.id.toLowerCase().startsWith(small),
  );
  return matches.length === 1 ? matches[0] : undefined;
}

/** The models a list names, in the order of the list; entries are selectors or patterns with `*`. */
export function selectAll(entries: readonly string[], pool: readonly Model[]): Selected[] {
  const found: Selected[] = [];
  const seen = new Set<Model>();
  const take = (selected: Selected) => {
    if (seen.has(selected.model)) return;
    seen.add(selected.model);
    found.push(selected);
  };
  for (const entry of entries) {
    if (!entry.includes("*")) {
      const selected = select(entry, [pool]);
      if (selected) take(selected);
      continue;
    }
    for (const { name, level } of readingsOf(entry.trim()).reverse()) {
      const pattern = new RegExp(`^${name.split("*").map(literally).join(".*")}$`, "i");
      const matches = pool.filter((model) => pattern.test(fullName(model)) || pattern.test(model.id));
      for (const model of matches) take(level === undefined ? { model } : { model, thinkingLevel: level });
      if (matches.length > 0) break;
    }
  }
  return found;
}

function literally(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
