import { describe, expect, it } from "vitest";
import { prepareArguments } from "../../../core/agent/tool-arguments.ts";
import { jsonSchemaOf } from "../../../core/agent/tool-schema.ts";
import { defineTool, type ToolDefinition, z } from "../../../core/extension.ts";

const json = (properties: Record<string, unknown>, required: string[] = []): ToolDefinition =>
  defineTool({
    name: "t",
    description: "",
    params: { type: "object", properties, required, additionalProperties: false },
    run: () => "",
  });
const zod = (params: z.ZodType<Record<string, unknown>>): ToolDefinition =>
  defineTool({ name: "t", description: "", params, run: () => "" });

async function argsOf(tool: ToolDefinition, args: Record<string, unknown>) {
  const prepared = await prepareArguments(tool, args);
  return prepared.ok ? prepared.args : prepared.text;
}

const both: [string, (properties: { zod: z.ZodType<Record<string, unknown>>; json: ToolDefinition }) => ToolDefinition][] = [
  ["zod", (p) => zod(p.zod)],
  ["JSON Schema", (p) => p.json],
];

describe.each(both)("arguments by %s", (_name, pick) => {
  const tool = pick({
    zod: z.object({
      path: z.string(),
      n: z.number().optional(),
      on: z.boolean().optional(),
      tags: z.array(z.string()).optional(),
      opts: z.object({ deep: z.number() }).optional(),
      mode: z.string().default("fast"),
    }),
    json: json(
      {
        path: { type: "string" },
        n: { type: "number" },
        on: { type: "boolean" },
        tags: { type: "array", items: { type: "string" } },
        opts: { type: "object", properties: { deep: { type: "number" } }, required: ["deep"] },
        mode: { type: "string", default: "fast" },
      },
      ["path"],
    ),
  });

  it.each([
    ["fits as it is", { path: "a b " }, { path: "a b ", mode: "fast" }],
    ["numbers as text", { path: "a", n: "5" }, { path: "a", n: 5, mode: "fast" }],
    ["booleans as text", { path: "a", on: "True" }, { path: "a", on: true, mode: "fast" }],
    ["objects as JSON text", { path: "a", opts: '{"deep":"2"}' }, { path: "a", opts: { deep: 2 }, mode: "fast" }],
    ["arrays as JSON text", { path: "a", tags: '["x"]' }, { path: "a", tags: ["x"], mode: "fast" }],
    ["one item for an array", { path: "a", tags: "x" }, { path: "a", tags: ["x"], mode: "fast" }],
    ["null for an optional field", { path: "a", n: null, opts: "null" }, { path: "a", mode: "fast" }],
    ["an empty text for an optional number", { path: "a", n: "" }, { path: "a", mode: "fast" }],
    ["quoted keys and blanks around a path", { '"path"': " a ", n: "1" }, { path: "a", n: 1, mode: "fast" }],
  ])("repairs: %s", async (_case, given, wanted) => {
    expect(await argsOf(tool, given as Record<string, unknown>)).toEqual(wanted);
  });

  it("says which path is wrong, and what was received", async () => {
    const text = await argsOf(tool, { path: 1, opts: { deep: "x" } });
    expect(text).toMatch(/^Invalid arguments for tool "t":/);
    expect(text).toContain("opts.deep");
    expect(text).toContain('"deep": "x"');
    expect(await argsOf(tool, {})).toContain("path");
  });
});

describe("tool schemas", () => {
  it("show JSON Schema without zod in it, and the same object again (item 17)", () => {
    const tool = zod(z.object({ a: z.string().describe("An a"), b: z.number().default(2) }));
    const schema = jsonSchemaOf(tool.params);
    expect(schema).toMatchObject({ type: "object", properties: { a: { type: "string", description: "An a" } }, required: ["a"] });
    expect(JSON.parse(JSON.stringify(schema))).toEqual(schema);
    expect(jsonSchemaOf(tool.params)).toBe(schema);
  });

  it("lets a tool shape raw arguments, and reports when that throws", async () => {
    const tool = defineTool<Record<string, unknown>>({
      name: "t",
      description: "",
      params: z.object({ a: z.string() }),
      prepareArguments: (raw) => {
        if (typeof raw !== "object" || raw === null || !("old" in raw)) throw new Error("No old name");
        return { a: raw.old };
      },
      run: () => "",
    });
    expect(await argsOf(tool, { old: "x" })).toEqual({ a: "x" });
    expect(await argsOf(tool, {})).toContain("No old name");
  });

  it("reports a schema that cannot be used as an error of the tool, not of the daemon", async () => {
    const tool = defineTool<Record<string, unknown>>({
      name: "t",
      description: "",
      params: { type: "object", properties: { a: { $ref: "#/nowhere" } } },
      run: () => "",
    });
    expect(await argsOf(tool, { a: 1 })).toContain("schema cannot be used");
  });
});
