// The protocol reference, its JSON Schema and the client's types, all read from the definitions.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { CommandDefinition, FrameDefinition } from "../core/kernel/definition.ts";
import { collect } from "./collect.ts";
import { type JsonSchema, printType } from "./print-type.ts";
import { root } from "./root.ts";

/** Named schemas met while printing; they become `$defs` and exported types. */
class Names {
  readonly defs = new Map<string, JsonSchema>();

  /** The schema with references to `#/$defs/<id>` for everything that has an id. */
  schema(type: z.ZodType, io: "input" | "output"): JsonSchema {
    const printed = z.toJSONSchema(type, { io, unrepresentable: "any", target: "draft-2020-12" }) as JsonSchema;
    const { $defs, $schema: _schema, ...schema } = printed;
    const own = typeof schema["id"] === "string" ? schema["id"] : undefined;
    for (const [name, def] of Object.entries(($defs as Record<string, JsonSchema> | undefined) ?? {})) {
      if (!this.defs.has(name)) this.defs.set(name, withoutId(def));
    }
    if (own === undefined) return schema;
    if (!this.defs.has(own)) this.defs.set(own, withoutId(schema));
    return { $ref: `#/$defs/${own}` };
  }
}

function withoutId(schema: JsonSchema): JsonSchema {
  const { id: _id, ...rest } = schema;
  return rest;
}

const sorted = <T>(map: Map<string, T>): [string, T][] => [...map].sort(([a], [b]) => (a < b ? -1 : 1));

export function schemaJson(): string {
  const names = new Names();
  const commands: Record<string, unknown> = {};
  for (const { definition } of collect("command")) {
    commands[definition.name] = {
      description: definition.summary,
      params: names.schema(definition.params as z.ZodType, "input"),
      ...(definition.result ? { result: names.schema(definition.result as z.ZodType, "output") } : {}),
    };
  }
  const frames: Record<string, unknown> = {};
  for (const { definition } of collect("event")) {
    frames[definition.name] = { description: definition.summary, fields: names.schema(definition.fields as z.ZodType, "output") };
  }
  const uiMethods: Record<string, unknown> = {};
  for (const { definition } of collect("ui")) {
    uiMethods[definition.name] = { description: definition.summary, params: names.schema(definition.params, "output") };
  }
  const hostRequests: Record<string, unknown> = {};
  for (const { definition } of collect("host request")) {
    hostRequests[definition.name] = {
      description: definition.summary,
      ask: names.schema(definition.ask as z.ZodType, "output"),
      answerType: definition.answerType,
      answer: names.schema(definition.answer as z.ZodType, "input"),
      ...(definition.progressType ? { progressType: definition.progressType } : {}),
      ...(definition.progress ? { progress: names.schema(definition.progress as z.ZodType, "input") } : {}),
      cancelType: definition.cancelType,
    };
  }
  const document = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "mortise protocol",
    description: "Commands, outbound frames, UI methods and host requests. Generated from the definitions.",
    commands,
    frames,
    uiMethods,
    hostRequests,
    $defs: Object.fromEntries(sorted(names.defs)),
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

const HEADER = "// Generated from the definitions by `npm run docs`. Do not edit.\n";

function printDefs(names: Names): string {
  return sorted(names.defs)
    .map(([name, schema]) => `export type ${name} = ${printType(schema)};\n`)
    .join("\n");
}

/** The client's types: named shapes, `CommandMap` and `EventMap`. */
export function clientTypes(): string {
  const names = new Names();
  const commands = collect("command").map(({ definition }) => {
    const params = printType(names.schema(definition.params as z.ZodType, "input"), "    ");
    const result = definition.result ? printType(names.schema(definition.result as z.ZodType, "output"), "    ") : "undefined";
    return `  /** ${definition.summary} */\n  ${definition.name}: {\n    params: ${params};\n    result: ${result};\n  };`;
  });
  const frames = collect("event").map(({ definition }) => {
    const fields = printType(names.schema(definition.fields as z.ZodType, "output"), "  ");
    return `  /** ${definition.summary} */\n  ${definition.name}: ${fields};`;
  });
  return [
    HEADER,
    printDefs(names),
    "/** Command name → what it takes and what its response holds. */",
    `export interface CommandMap {\n${commands.join("\n")}\n}\n`,
    "/** Frame type → its fields without `type`. */",
    `export interface EventMap {\n${frames.join("\n")}\n}\n`,
  ].join("\n");
}

/** Replaces what stands between the markers of the page; prose around them is written by hand. */
export function protocolPage(page: string): string {
  const parts: Record<string, () => string> = {
    commands: commandReference,
    frames: frameReference,
    "ui methods": uiReference,
    "host requests": hostReference,
    coverage: coverageTable,
  };
  let text = page;
  for (const [name, render] of Object.entries(parts)) {
    const begin = `<!-- begin ${name} -->`;
    const end = `<!-- end ${name} -->`;
    const from = text.indexOf(begin);
    const to = text.indexOf(end);
    if (from < 0 || to < from) throw new Error(`docs/protocol.md lacks the markers of "${name}"`);
    text = `${text.slice(0, from + begin.length)}\n\n${render()}\n\n${text.slice(to)}`;
  }
  return text;
}

const json = (value: unknown) => `\`\`\`json\n${JSON.stringify(value)}\n\`\`\``;

function commandReference(): string {
  const groups = new Map<string, CommandDefinition[]>();
  for (const { definition } of collect("command")) {
    groups.set(definition.group, [...(groups.get(definition.group) ?? []), definition as CommandDefinition]);
  }
  return sorted(groups)
    .map(([group, commands]) => `### ${group}\n\n${commands.map(describeCommand).join("\n\n")}`)
    .join("\n\n");
}

function describeCommand(command: CommandDefinition): string {
  const names = new Names();
  const lines = [`#### \`${command.name}\``, "", command.summary];
  const traits = [
    command.concurrency === "concurrent" ? "runs beside other commands" : "",
    command.sealed ? "cannot be overridden" : "",
  ];
  const kept = traits.filter((trait) => trait !== "");
  if (kept.length > 0) lines.push("", `This command ${kept.join(" and ")}.`);
  const fields = fieldTable(names.schema(command.params as z.ZodType, "input"), names);
  lines.push("", fields === "" ? "No parameters." : fields);
  if (command.result)
    lines.push("", `Response \`data\`: \`${inline(printType(names.schema(command.result as z.ZodType, "output")))}\``);
  lines.push("", json({ id: "req_1", type: command.name, ...command.example.params }));
  if (command.example.result !== undefined) {
    lines.push("", json({ id: "req_1", type: "response", command: command.name, success: true, data: command.example.result }));
  }
  if (command.example.failure !== undefined) {
    lines.push(
      "",
      json({ id: "req_1", type: "response", command: command.name, success: false, error: command.example.failure }),
    );
  }
  return lines.join("\n");
}

function inline(type: string): string {
  return type.replace(/\/\*\*.*?\*\/\s*/g, "").replace(/\s+/g, " ");
}

function fieldTable(schema: JsonSchema, names: Names): string {
  const target = typeof schema["$ref"] === "string" ? names.defs.get(schema["$ref"].slice("#/$defs/".length)) : schema;
  const properties = Object.entries((target?.["properties"] as Record<string, JsonSchema> | undefined) ?? {});
  if (properties.length === 0) return "";
  const required = new Set((target?.["required"] as string[] | undefined) ?? []);
  const rows = properties.map(([name, value]) => {
    const type = inline(printType(value)).replaceAll("|", "\\|");
    const description = typeof value["description"] === "string" ? value["description"].replaceAll("|", "\\|") : "";
    return `| \`${name}\`${required.has(name) ? "" : "?"} | \`${type}\` | ${description} |`;
  });
  return `| field | type | |\n|---|---|---|\n${rows.join("\n")}`;
}

function frameReference(): string {
  return collect("event")
    .map(({ definition }) => {
      const names = new Names();
      const frame = definition as FrameDefinition;
      const fields = fieldTable(names.schema(frame.fields as z.ZodType, "output"), names);
      const reach = frame.scope === "conversation" ? "Sent only while its conversation is attached." : "Always sent.";
      return [
        `### \`${frame.name}\``,
        "",
        `${frame.summary} ${reach}`,
        "",
        fields === "" ? "No fields." : fields,
        "",
        json(frame.example),
      ].join("\n");
    })
    .join("\n\n");
}

function uiReference(): string {
  return collect("ui")
    .map(({ definition }) => {
      const names = new Names();
      const kind = definition.mode === "dialog" ? "Waits for an answer." : "No answer.";
      const fields = fieldTable(names.schema(definition.params, "output"), names);
      const example = json({ type: "extension_ui_request", id: "ui_7", method: definition.name, ...definition.example });
      return [`### \`${definition.name}\``, "", `${definition.summary} ${kind}`, "", fields, "", example].join("\n");
    })
    .join("\n\n");
}

function hostReference(): string {
  return collect("host request")
    .map(({ definition }) => {
      const names = new Names();
      const progress = definition.progressType ? `, progress as \`${definition.progressType}\`` : "";
      const intro = `${definition.summary} Answered by \`${definition.answerType}\`${progress}, given up with \`${definition.cancelType}\` (\`targetId\`).`;
      const ask = fieldTable(names.schema(definition.ask as z.ZodType, "output"), names);
      const answer = fieldTable(names.schema(definition.answer as z.ZodType, "input"), names);
      return [`### \`${definition.name}\``, "", intro, "", ask, "", `\`${definition.answerType}\`:`, "", answer].join("\n");
    })
    .join("\n\n");
}

/** Every command, frame and UI method of the two wire documents, with the test files that name it. */
function coverageTable(): string {
  const rows = [
    ...collect("command").map(({ definition }) => ["command", definition.name, definition.source ?? "mortise"] as const),
    ...collect("event").map(({ definition }) => ["frame", definition.name, definition.source ?? "mortise"] as const),
    ...collect("ui").map(({ definition }) => ["ui method", definition.name, definition.source ?? "mortise"] as const),
    ...collect("host request").map(({ definition }) => ["host request", definition.name, "both"] as const),
  ];
  const tests = testFiles();
  const lines = rows.map(([kind, name, source]) => {
    const covering = tests.filter(
      ({ text }) => text.includes(`"${name}"`) || text.includes(`'${name}'`) || text.includes(`${name}:`),
    );
    const shown = covering.slice(0, 3).map(({ path }) => `\`${path}\``);
    const documents = source === "both" ? "000, 002" : source;
    return `| ${kind} | \`${name}\` | ${documents} | ${shown.join(", ")} |`;
  });
  return `| | name | document | tests |\n|---|---|---|---|\n${lines.join("\n")}`;
}

function testFiles(): { path: string; text: string }[] {
  const base = join(root, "test");
  if (!existsSync(base)) return [];
  return readdirSync(base, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".test.ts") || path.endsWith(".jsonl"))
    .sort()
    .map((path) => ({ path: `test/${path}`, text: readFileSync(join(base, path), "utf8") }));
}
