// Parameters of tools as the families write them: typebox (any version), zod 4, arktype or plain JSON Schema.
import { z } from "mortise/extension";

/** What `defineTool` takes. */
export type Params = z.ZodType<Record<string, unknown>> | Record<string, unknown>;

/**
 * Turns a tool's `parameters` into what our tools take. Absent parameters are an object without properties.
 *
 * @throws {Error} when they are no schema of an object; names the tool and what to use.
 */
export function toParams(parameters: unknown, tool: string): Params {
  if (parameters === undefined || parameters === null) return { type: "object", properties: {} };
  if (isZod4(parameters)) return parameters;
  if (hasJsonSchema(parameters)) return objectSchema(parameters.toJsonSchema(), tool);
  if (typeof parameters === "object" && "_def" in parameters && "safeParse" in parameters) {
    throw new Error(`Parameters of tool "${tool}" are a zod 3 schema: import zod 4, or give typebox or JSON Schema`);
  }
  return objectSchema(parameters, tool);
}

/** The plain JSON Schema of a tool's parameters, for listings. */
export function toJsonSchema(params: unknown): Record<string, unknown> {
  if (isZod4(params)) return { ...z.toJSONSchema(params, { io: "input", unrepresentable: "any" }) };
  return isObject(params) ? plain(params) : {};
}

export function isZod4(value: unknown): value is z.ZodType<Record<string, unknown>> {
  return isObject(value) && "_zod" in value && "safeParse" in value;
}

function hasJsonSchema(value: unknown): value is { toJsonSchema(): unknown } {
  return (
    ((typeof value === "object" && value !== null) || typeof value === "function") &&
    "toJsonSchema" in value &&
    typeof value.toJsonSchema === "function"
  );
}

function objectSchema(value: unknown, tool: string): Record<string, unknown> {
  if (!isObject(value) || Array.isArray(value)) {
    throw new Error(`Parameters of tool "${tool}" must be a typebox, zod or JSON Schema object, found ${typeof value}`);
  }
  const schema = plain(value);
  const combines = ["anyOf", "oneOf", "allOf", "$ref"].some((key) => key in schema);
  if (schema["type"] === undefined && !combines) {
    return { ...schema, type: "object", properties: schema["properties"] ?? {} };
  }
  if (schema["type"] !== undefined && schema["type"] !== "object") {
    throw new Error(`Parameters of tool "${tool}" must describe an object, found type ${JSON.stringify(schema["type"])}`);
  }
  return schema;
}

/** Typebox marks its values with symbols and hidden members; what is left in JSON is the schema. */
function plain(value: object): Record<string, unknown> {
  const copy: unknown = JSON.parse(JSON.stringify(value));
  return isObject(copy) ? copy : {};
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
