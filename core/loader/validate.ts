// What a unit exports and adds is checked before anything of it is live.
import { z } from "zod";
import type { AnyDefinition, ExtensionDefinition } from "../kernel/definition.ts";
import { isDefinition, isExtension } from "../kernel/definition.ts";
import { ExtensionError, errorMessage } from "../kernel/errors.ts";
import type { AdaptFactory } from "./host.ts";

/** A unit's default exports, sorted out. */
export interface UnitContents {
  readonly contributes: AnyDefinition[];
  readonly setups: ExtensionDefinition[];
}

/** Kinds with many answers: one name may appear more than once. */
const LIST_KINDS = new Set<string>(["hook"]);

const NAMES: Record<string, { pattern: RegExp; rule: string }> = {
  tool: { pattern: /^[A-Za-z0-9_-]{1,64}$/, rule: "1 to 64 letters, digits, _ and -" },
  command: { pattern: /^[a-z][a-z0-9_]*$/, rule: "lower case letters, digits and _" },
  "command override": { pattern: /^[a-z][a-z0-9_]*$/, rule: "lower case letters, digits and _" },
  "slash command": { pattern: /^[^\s/][^\s]*$/, rule: "no white space and no / at the start" },
};
/** What a definition of a kind must be able to do. */
const FUNCTIONS: Record<string, string> = {
  tool: "run",
  command: "run",
  "command override": "run",
  "slash command": "run",
  hook: "run",
  "prompt section": "render",
  "state field": "read",
  "uri scheme": "read",
  provider: "stream",
  service: "create",
};

/** Members that others list and send, whatever the kind: one of another type would break the lists of all. */
const Texts = z.array(z.string()).optional();
const Listed = z.object({
  description: z.string().optional(),
  label: z.string().optional(),
  summary: z.string().optional(),
  group: z.string().optional(),
  argumentHint: z.string().optional(),
  promptSnippet: z.string().optional(),
  promptGuidelines: Texts,
  aliases: Texts,
  subcommands: z
    .array(z.object({ name: z.string(), description: z.string().optional(), usage: z.string().optional() }))
    .optional(),
});
/** Agents have another `models`. */
const Listing = Listed.extend({ models: z.array(z.looseObject({ provider: z.string(), id: z.string() })).optional() });
const ANY_NAME = { pattern: /^[^\p{Cc}]+$/u, rule: "at least one printable character" };

export interface ReadInfo {
  unitId: string;
  /** The module, for the error text. */
  path: string;
  specifiers: string[];
  manifestKey?: string | undefined;
  adaptFactory?: AdaptFactory | undefined;
}

/**
 * Reads a module's default export into `contents`.
 *
 * @throws {ExtensionError} when it is nothing a unit may export: an entry without contributions is a failed load, never an empty
 * unit.
 */
export function readDefault(value: unknown, info: ReadInfo, contents: UnitContents): void {
  if (Array.isArray(value) && value.length > 0) {
    for (const one of value) readOne(one, info, contents);
    return;
  }
  if (typeof value === "function" && info.adaptFactory !== undefined) {
    const { unitId, specifiers, manifestKey } = info;
    readOne(info.adaptFactory(value, { unitId, specifiers, manifestKey }), info, contents);
    return;
  }
  readOne(value, info, contents);
}

function readOne(value: unknown, info: ReadInfo, contents: UnitContents): void {
  if (isExtension(value)) {
    for (const definition of value.contributes) readContribution(definition, info, contents);
    contents.setups.push(value);
  } else {
    readContribution(value, info, contents);
  }
}

function readContribution(value: unknown, info: ReadInfo, contents: UnitContents): void {
  if (isDefinition(value) && !isExtension(value)) {
    contents.contributes.push(value);
    return;
  }
  const found = value === undefined ? "nothing" : Array.isArray(value) ? "an empty list" : describe(value);
  throw new ExtensionError(
    info.unitId,
    "load",
    `${info.path} must export a definition (defineTool, …), a list of them, defineExtension({…}) or a function as default; found ${found}`,
  );
}

function describe(value: unknown): string {
  if (value === null) return "null";
  if (typeof value !== "object") return `a ${typeof value}`;
  return `an object with ${Object.keys(value).slice(0, 5).join(", ") || "no keys"}`;
}

/**
 * Checks names and schemas of everything a unit brings.
 *
 * @throws {ExtensionError} for a name outside its kind's grammar, a name taken twice within the unit, a member of a wrong type, or
 * a tool schema that has no JSON Schema.
 */
export function validate(unitId: string, definitions: Iterable<AnyDefinition>, options: { schemas: boolean }): void {
  const seen = new Set<string>();
  for (const definition of definitions) {
    const { kind, name } = definition;
    const { pattern, rule } = NAMES[kind] ?? ANY_NAME;
    if (typeof name !== "string" || !pattern.test(name)) {
      throw new ExtensionError(unitId, "validate", `The name ${JSON.stringify(name)} is not allowed for a ${kind}: ${rule}`);
    }
    const key = `${kind}:${name}`;
    if (seen.has(key) && !LIST_KINDS.has(kind)) {
      throw new ExtensionError(unitId, "validate", `The ${kind} "${name}" is defined twice in this unit; remove one`);
    }
    seen.add(key);
    if (!options.schemas) continue;
    checkMembers(unitId, definition);
    if (kind === "tool") checkToolSchema(unitId, definition);
  }
}

/** Authors of plain JavaScript have no compiler that says so. */
function checkMembers(unitId: string, definition: AnyDefinition): void {
  const { kind, name } = definition;
  const member = FUNCTIONS[kind];
  if (member !== undefined && typeof (definition as unknown as Record<string, unknown>)[member] !== "function") {
    throw new ExtensionError(unitId, "validate", `The ${kind} "${name}" needs a function "${member}"`);
  }
  const [issue] = (kind === "provider" ? Listing : Listed).safeParse(definition).error?.issues ?? [];
  if (issue === undefined) return;
  throw new ExtensionError(unitId, "validate", `The ${kind} "${name}" has a wrong "${issue.path.join(".")}": ${issue.message}`);
}

function checkToolSchema(unitId: string, definition: AnyDefinition): void {
  const params: unknown = "params" in definition ? definition.params : undefined;
  const fail = (reason: string): never => {
    throw new ExtensionError(
      unitId,
      "validate",
      `The parameters of tool "${definition.name}" cannot be sent to a model: ${reason}`,
    );
  };
  if (typeof params !== "object" || params === null)
    return fail(`expected a zod object or a JSON Schema, found ${typeof params}`);
  if (!("_zod" in params)) {
    // Older copies of zod mark their schemas with `_def` only.
    if ("_def" in params) return fail("they come from another version of zod; import z from mortise/extension");
    if ("type" in params && params.type !== undefined && params.type !== "object") return fail("a tool takes an object");
    return;
  }
  let schema: Record<string, unknown>;
  try {
    schema = z.toJSONSchema(params as z.ZodType, { io: "input" }) as Record<string, unknown>;
  } catch (error) {
    return fail(errorMessage(error));
  }
  const isUnion = "anyOf" in schema || "oneOf" in schema || "allOf" in schema || "$ref" in schema;
  if (schema["type"] !== "object" && !isUnion) return fail(`a tool takes an object, found ${String(schema["type"])}`);
}
