// The derived part of docs/tools.md: every built-in tool with its parameters, as the model sees them.
import { jsonSchemaOf } from "../core/agent/tool-schema.ts";
import { collect } from "./collect.ts";

const BEGIN = "<!-- begin tools: written by npm run docs -->";
const END = "<!-- end tools -->";

interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

/** The page with its table replaced. @throws {Error} when the page has no place for it */
export function toolsPage(current: string): string {
  const [before, rest] = current.split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined) throw new Error(`docs/tools.md needs the lines "${BEGIN}" and "${END}"`);
  return `${before}${BEGIN}\n${table()}\n${END}${after}`;
}

function table(): string {
  const rows = collect("tool").flatMap(({ definition }) => {
    const schema = jsonSchemaOf(definition.params) as Schema;
    const entries = Object.entries(schema.properties ?? {});
    const tool = `\`${definition.name}\`${definition.readOnly === true ? "" : typeof definition.readOnly === "function" ? " (✎)" : " ✎"}`;
    if (entries.length === 0) return [row(tool, "", "", "")];
    return entries.map(([name, property], index) => {
      const mark = schema.required?.includes(name) === true ? "" : "?";
      return row(index === 0 ? tool : "", `\`${name}${mark}\``, typeOf(property), property.description ?? "");
    });
  });
  return [
    "`?` may be left out; ✎ the tool may change something, (✎) some of its calls do, so `tools.approvalMode` can hold it back.",
    "",
    row("tool", "parameter", "type", "meaning"),
    row("---", "---", "---", "---"),
    ...rows,
  ].join("\n");
}

function typeOf(schema: Schema): string {
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${String(value)}\``).join(", ");
  if (schema.type === "array") return `list of ${schema.items === undefined ? "anything" : typeOf(schema.items)}`;
  if (schema.properties !== undefined) return `{ ${Object.keys(schema.properties).join(", ")} }`;
  return typeof schema.type === "string" ? schema.type : (schema.type?.join(" or ") ?? "any");
}

const row = (...cells: string[]) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`;
