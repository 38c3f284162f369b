// Arguments of a tool call: lenient repairs, validation, and the text the model gets when they do not fit
// (agent-semantics §2.4).
import { errorMessage } from "../kernel/errors.ts";
import type { ToolDefinition } from "./tool.ts";
import { check, type Issue, isRecord, type JsonSchema, jsonSchemaOf } from "./tool-schema.ts";

const MAX_SHOWN_STRING = 256;
const MAX_SHOWN_RAW = 512;
const MAX_SHOWN_ISSUES = 20;
const MAX_DEPTH = 20;

export type Prepared = { ok: true; args: Record<string, unknown> } | { ok: false; text: string };

/** Validates arguments, repairing what models commonly get wrong when they do not fit as they are. */
export async function prepareArguments(tool: ToolDefinition, raw: Record<string, unknown>): Promise<Prepared> {
  let value: unknown = raw;
  if (tool.prepareArguments !== undefined) {
    try {
      value = tool.prepareArguments(raw);
    } catch (error) {
      return { ok: false, text: invalidText(tool.name, [{ path: "", message: errorMessage(error) }], raw) };
    }
  }
  const schema = jsonSchemaOf(tool.params);
  const first = await check(tool.params, withDefaults(schema, value));
  if (first.ok) return { ok: true, args: first.value };
  const repaired = withDefaults(schema, repair(schema, value, true, 0));
  const second = await check(tool.params, repaired);
  if (second.ok) return { ok: true, args: second.value };
  return { ok: false, text: invalidText(tool.name, second.issues, raw) };
}

function invalidText(name: string, issues: readonly Issue[], received: unknown): string {
  const lines = issues
    .slice(0, MAX_SHOWN_ISSUES)
    .map((issue) => `- ${issue.path === "" ? "(arguments)" : issue.path}: ${issue.message}`);
  if (issues.length > MAX_SHOWN_ISSUES) lines.push(`- and ${issues.length - MAX_SHOWN_ISSUES} more`);
  return `Invalid arguments for tool "${name}":\n${lines.join("\n")}\n\nReceived:\n${shown(received)}\n\nCorrect the arguments and call the tool again.`;
}

/** For arguments that arrived whole and are no JSON object. */
export function unparsableText(name: string, raw: string): string {
  return `The arguments for tool "${name}" are no JSON object. Received:\n${cut(raw, MAX_SHOWN_RAW)}\n\nCall the tool again with one JSON object.`;
}

/** For arguments that the output limit cut off. */
export function truncatedText(name: string): string {
  return `The call of "${name}" was not executed: the output limit cut its arguments off. Split the work into several smaller calls and try again.`;
}

function shown(value: unknown): string {
  const json = JSON.stringify(
    value,
    (_key, field: unknown) => (typeof field === "string" ? cut(field, MAX_SHOWN_STRING) : field),
    2,
  );
  return json ?? String(value);
}

function cut(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit)}… (${text.length - limit} more characters)`;
}

/** Fills in missing properties that have a default, in nested objects as well. The input is not changed. */
function withDefaults(schema: JsonSchema, value: unknown): unknown {
  const properties = schema["properties"];
  if (!isRecord(value) || !isRecord(properties)) return value;
  let filled = value;
  for (const [key, property] of Object.entries(properties)) {
    if (!isRecord(property)) continue;
    const own = Object.hasOwn(value, key);
    const next = own ? withDefaults(property, value[key]) : structuredClone(property["default"]);
    if (next === undefined || (own && next === value[key])) continue;
    if (filled === value) filled = { ...value };
    filled[key] = next;
  }
  return filled;
}

/** The value as the schema most likely means it. Only changes what does not fit; `required` is false for optional fields. */
function repair(schema: JsonSchema, value: unknown, required: boolean, depth: number, name = ""): unknown {
  if (depth > MAX_DEPTH) return value;
  const types = typesOf(schema);
  if (types.length === 0) return value;
  if (!required && !types.includes("null") && (value === null || value === "null")) return undefined;
  if (!required && value === "" && !types.includes("string")) return undefined;
  if (typeof value === "string") return repairString(schema, types, value, depth, name);
  if (isRecord(value) && types.includes("object")) return repairObject(schema, value, depth);
  if (Array.isArray(value) && types.includes("array")) {
    const items = schema["items"];
    return isRecord(items) ? value.map((item) => repair(items, item, true, depth + 1, name)) : value;
  }
  if (types.includes("array") && !types.includes("object") && !Array.isArray(value) && value !== undefined && value !== null)
    return [value];
  if ((typeof value === "number" || typeof value === "boolean") && types.length === 1 && types[0] === "string")
    return String(value);
  return value;
}

function repairString(schema: JsonSchema, types: readonly string[], value: string, depth: number, name: string): unknown {
  if (types.includes("string")) return isLocator(name) ? value.trim() : value;
  const text = value.trim();
  if ((types.includes("number") || types.includes("integer")) && text !== "" && Number.isFinite(Number(text)))
    return Number(text);
  if (types.includes("boolean") && /^(true|false)$/i.test(text)) return text.toLowerCase() === "true";
  if (types.includes("object") || types.includes("array")) {
    try {
      const parsed: unknown = JSON.parse(text);
      if (typeof parsed === "object" && parsed !== null) return repair(schema, parsed, true, depth + 1, name);
    } catch {
      // Not JSON: the check reports what was expected.
    }
    if (types.includes("array") && isRecord(schema["items"]) && typesOf(schema["items"]).includes("string")) return [value];
  }
  return value;
}

function repairObject(schema: JsonSchema, value: Record<string, unknown>, depth: number): Record<string, unknown> {
  const properties = isRecord(schema["properties"]) ? schema["properties"] : {};
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const repaired: Record<string, unknown> = {};
  for (const [rawKey, field] of Object.entries(value)) {
    const bare = rawKey.replace(/^["'`]+|["'`]+$/g, "").trim();
    const key = !Object.hasOwn(properties, rawKey) && Object.hasOwn(properties, bare) ? bare : rawKey;
    const property = properties[key];
    const next = isRecord(property) ? repair(property, field, required.includes(key), depth + 1, key) : field;
    if (next !== undefined)
      Object.defineProperty(repaired, key, { value: next, enumerable: true, writable: true, configurable: true });
  }
  return repaired;
}

/** Fields where blanks around the value are never meant. */
function isLocator(name: string): boolean {
  return /(^|_|[a-z])(path|file|dir|directory|url|uri|cwd)$/i.test(name);
}

function typesOf(schema: JsonSchema): string[] {
  const type = schema["type"];
  if (typeof type === "string") return [type];
  if (Array.isArray(type)) return type.filter((each) => typeof each === "string");
  const choices = schema["anyOf"] ?? schema["oneOf"];
  return Array.isArray(choices) ? [...new Set(choices.filter(isRecord).flatMap(typesOf))] : [];
}
