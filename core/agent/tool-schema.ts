// From a tool's parameter schema (zod, or JSON Schema as it came) to what the model sees and to a check of arguments.
import type { OutputUnit } from "@cfworker/json-schema";
import { z } from "zod";
import { errorMessage } from "../kernel/errors.ts";
import { issueMessage } from "../kernel/validation.ts";
import type { ToolSchema } from "./provider.ts";
import type { ToolDefinition } from "./tool.ts";

export type JsonSchema = Record<string, unknown>;
type Params = ToolDefinition["params"];

/** One complaint about arguments; `path` is empty for the whole. */
export interface Issue {
  readonly path: string;
  readonly message: string;
}
export type Checked = { ok: true; value: Record<string, unknown> } | { ok: false; issues: readonly Issue[] };

const ANY_OBJECT: JsonSchema = { type: "object", properties: {} };
const converted = new WeakMap<object, JsonSchema>();
const validators = new WeakMap<object, { validate(value: unknown): { valid: boolean; errors: OutputUnit[] } }>();

export function isZod(params: Params): params is z.ZodType<Record<string, unknown>> {
  return typeof (params as { safeParse?: unknown }).safeParse === "function";
}

/** JSON Schema of a tool's parameters; the same object for the same definition. */
export function jsonSchemaOf(params: Params): JsonSchema {
  if (!isZod(params)) return isRecord(params) ? params : ANY_OBJECT;
  let schema = converted.get(params);
  if (schema === undefined) {
    const { $schema: _, ...rest } = z.toJSONSchema(params, { io: "input", unrepresentable: "any" }) as JsonSchema;
    // Providers want the type of the top spelled out.
    schema = rest["type"] === undefined ? { type: "object", ...rest } : rest;
    converted.set(params, schema);
  }
  return schema;
}

/** The tool as the model sees it. */
export function toolSchemaOf(tool: ToolDefinition): ToolSchema {
  return { name: tool.name, description: tool.description, parameters: jsonSchemaOf(tool.params) };
}

/** Checks arguments; zod also applies its defaults and transforms. */
export async function check(params: Params, value: unknown): Promise<Checked> {
  return isZod(params) ? checkZod(params, value) : checkJson(params, value);
}

async function checkZod(schema: z.ZodType, value: unknown): Promise<Checked> {
  const result = await parseZod(schema, value);
  if (!result.success) {
    return {
      ok: false,
      issues: result.error.issues.map((issue) => ({ path: issue.path.map(String).join("."), message: issueMessage(issue) })),
    };
  }
  return isRecord(result.data)
    ? { ok: true, value: result.data }
    : { ok: false, issues: [{ path: "", message: "Expected an object" }] };
}

/** Synchronously where the schema allows it: most do. */
function parseZod(schema: z.ZodType, value: unknown): z.ZodSafeParseResult<unknown> | Promise<z.ZodSafeParseResult<unknown>> {
  try {
    return schema.safeParse(value);
  } catch {
    return schema.safeParseAsync(value);
  }
}

async function checkJson(schema: JsonSchema, value: unknown): Promise<Checked> {
  let errors: OutputUnit[];
  try {
    let validator = validators.get(schema);
    if (validator === undefined) {
      const { Validator } = await import("@cfworker/json-schema");
      validator = new Validator(schema, "2020-12", false);
      validators.set(schema, validator);
    }
    const result = validator.validate(value);
    errors = result.valid ? [] : result.errors;
  } catch (error) {
    return { ok: false, issues: [{ path: "", message: `The tool's own schema cannot be used: ${errorMessage(error)}` }] };
  }
  if (errors.length === 0)
    return isRecord(value) ? { ok: true, value } : { ok: false, issues: [{ path: "", message: "Expected an object" }] };
  // A failing property is reported once more by every object around it; the innermost complaints say what is wrong.
  const leaves = errors.filter(
    (error) => !["properties", "items", "prefixItems", "additionalItems", "$ref", "$dynamicRef"].includes(error.keyword),
  );
  const shown = leaves.length > 0 ? leaves : errors;
  return { ok: false, issues: shown.map((error) => ({ path: dotted(error.instanceLocation), message: error.error })) };
}

/** `#/a/0/b` → `a.0.b` */
function dotted(pointer: string): string {
  return pointer
    .replace(/^#?\/?/, "")
    .replaceAll("/", ".")
    .replaceAll("~1", "/")
    .replaceAll("~0", "~");
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
