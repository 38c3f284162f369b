// What can be contributed from an isolated process, and what of each contribution is data that the daemon needs beforehand.
import { jsonSchemaOf } from "./agent/tool-schema.ts";
import type { AnyDefinition } from "./kernel/definition.ts";
import type { Entry } from "./kernel/registry.ts";
import type { Registration } from "./loader/isolate/frame.ts";
import "./agent/tool.ts";
import "./services/slash.ts";

/** Fields that are copied as they are. A kind that is missing here is refused. */
const FIELDS: Partial<Record<AnyDefinition["kind"], readonly string[]>> = {
  tool: ["label", "description", "concurrency", "interruptible", "hidden", "promptSnippet", "promptGuidelines"],
  "slash command": ["description", "aliases", "argumentHint", "subcommands", "source", "concurrency", "override"],
  hook: ["priority", "attachedOnly"],
  "prompt section": ["order", "stable", "replaces", "append"],
  "uri scheme": ["description", "immutable"],
  setting: ["summary", "default", "hostDefault", "aliases", "trustedOnly"],
};

/** Members that would have to be answered at once, without a way to the other process. */
const SYNCHRONOUS: Partial<Record<AnyDefinition["kind"], readonly string[]>> = {
  tool: ["prepareArguments", "available", "concurrency"],
};

/** @throws {Error} for a contribution that cannot be isolated. */
export function registrationsOf(entries: readonly Entry[]): Registration[] {
  const counts = new Map<string, number>();
  return entries.map(({ definition }) => {
    const key = `${definition.kind}:${definition.name}`;
    const nth = counts.get(key) ?? 0;
    counts.set(key, nth + 1);
    return { kind: definition.kind, name: definition.name, nth, fields: fieldsOf(definition) };
  });
}

function fieldsOf(definition: AnyDefinition): Record<string, unknown> {
  const { kind, name } = definition;
  const names = FIELDS[kind];
  if (names === undefined) {
    const kinds = Object.keys(FIELDS).join(", ");
    throw new Error(
      `The ${kind} "${name}" cannot be contributed from isolation, only ${kinds}: take the extension out of \`isolate\``,
    );
  }
  const all = definition as unknown as Record<string, unknown>;
  const sync = SYNCHRONOUS[kind]?.find((member) => typeof all[member] === "function");
  if (sync !== undefined) {
    throw new Error(
      `The ${kind} "${name}" has a function \`${sync}\`, which cannot be called in isolation: take the extension out of \`isolate\``,
    );
  }
  const fields = Object.fromEntries(names.map((member) => [member, all[member]]));
  if (definition.kind === "tool") fields["params"] = jsonSchemaOf(definition.params);
  if (definition.kind === "uri scheme") fields["writable"] = definition.write !== undefined;
  return fields;
}
