// JSON Schema → TypeScript, for the client's types. Covers what our schemas print; anything else becomes `unknown`.

export type JsonSchema = Record<string, unknown>;

/** The TypeScript type of a schema; references become names. */
export function printType(schema: unknown, indent = ""): string {
  if (typeof schema !== "object" || schema === null) return "unknown";
  const node = schema as JsonSchema;
  if (typeof node["$ref"] === "string") return refName(node["$ref"]);
  if ("const" in node) return JSON.stringify(node["const"]);
  if (Array.isArray(node["enum"])) return node["enum"].map((value) => JSON.stringify(value)).join(" | ");
  const union = node["anyOf"] ?? node["oneOf"];
  if (Array.isArray(union)) return [...new Set(union.map((each) => printType(each, indent)))].join(" | ");
  if (Array.isArray(node["type"])) return node["type"].map((type) => printType({ ...node, type }, indent)).join(" | ");
  switch (node["type"]) {
    case "string":
      return "string";
    case "number":
    case "integer":
      return "number";
    case "boolean":
      return "boolean";
    case "null":
      return "null";
    case "array":
      return `Array<${printType(node["items"], indent)}>`;
    case "object":
      return printObject(node, indent);
    default:
      return "unknown";
  }
}

function printObject(node: JsonSchema, indent: string): string {
  const properties = Object.entries((node["properties"] as JsonSchema | undefined) ?? {});
  const required = new Set((node["required"] as string[] | undefined) ?? []);
  const rest = node["additionalProperties"];
  if (properties.length === 0) {
    if (rest === false || rest === undefined) return rest === undefined ? "Record<string, unknown>" : "Record<string, never>";
    return `Record<string, ${rest === true ? "unknown" : printType(rest, indent)}>`;
  }
  const inner = `${indent}  `;
  const lines = properties.flatMap(([name, value]) => {
    const description = (value as JsonSchema)["description"];
    const comment = typeof description === "string" ? [`${inner}/** ${description.replaceAll("*/", "* /")} */`] : [];
    const key = /^[a-zA-Z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
    return [...comment, `${inner}${key}${required.has(name) ? "" : "?"}: ${printType(value, inner)};`];
  });
  if (typeof rest === "object" && rest !== null && Object.keys(rest).length === 0)
    lines.push(`${inner}[field: string]: unknown;`);
  return `{\n${lines.join("\n")}\n${indent}}`;
}

/** `#/$defs/Model` → `Model`. */
function refName(ref: string): string {
  return ref.slice(ref.lastIndexOf("/") + 1);
}
