import { describe, expect, it } from "vitest";
import { dialectOf, virtualModulesOf } from "../../../core/services/dialects.ts";
import omp from "../../../extensions/dialects/omp.ts";
import pi from "../../../extensions/dialects/pi.ts";
import veyyon from "../../../extensions/dialects/veyyon.ts";

const dialects = [pi, omp, veyyon];
// Modules are listed and made without any call to the daemon.
const daemon = {} as Parameters<typeof virtualModulesOf>[1];

describe("which dialect a unit is written in", () => {
  it.each([
    [["@mariozechner/pi-coding-agent"], undefined, "pi"],
    [["@earendil-works/pi-tui", "node:fs"], undefined, "pi"],
    [["@oh-my-pi/pi-coding-agent/hooks"], "pi", "omp"],
    [["@veyyon/coding-agent"], undefined, "veyyon"],
    [["@mariozechner/pi-ai"], "omp", "pi"],
    [["node:fs"], "omp", "omp"],
    [[], "veyyon", "veyyon"],
    [["@oh-my-pirates/x"], undefined, "pi"],
    [[], undefined, "pi"],
  ] as const)("%j with manifest key %s is %s", (specifiers, manifestKey, family) => {
    expect(dialectOf(dialects, { specifiers, manifestKey }).name).toBe(family);
  });

  it("without a dialect the error says what to do", () => {
    expect(() => dialectOf([], { specifiers: [] })).toThrow(/export a definition instead/);
  });
});

describe("virtual modules", () => {
  const modules = virtualModulesOf(dialects, daemon);

  it("every specifier of the four families is there", () => {
    for (const scope of ["@earendil-works", "@mariozechner", "@oh-my-pi"]) {
      for (const name of ["pi-coding-agent", "pi-ai", "pi-ai/compat", "pi-ai/models", "pi-ai/oauth", "pi-tui", "pi-agent-core"]) {
        expect([...modules.keys()]).toContain(`${scope}/${name}`);
      }
    }
    for (const name of ["@veyyon/coding-agent", "@veyyon/ai", "@oh-my-pi/pi-coding-agent/hooks", "typebox", "typebox/value"]) {
      expect([...modules.keys()]).toContain(name);
    }
  });

  it("every module can be made, is made once, and has no member `then`", async () => {
    for (const [specifier, load] of modules) {
      const made = await load();
      expect(Object.keys(made).length, specifier).toBeGreaterThan(3);
      expect("then" in made, specifier).toBe(false);
      expect(await load()).toBe(made);
    }
  });

  it("the names that extensions import as values are exported", async () => {
    const agent = await modules.get("@mariozechner/pi-coding-agent")?.();
    for (const name of [
      "defineTool",
      "isToolCallEventType",
      "isBashToolResult",
      "isReadToolResult",
      "CONFIG_DIR_NAME",
      "getAgentDir",
      "VERSION",
      "withFileMutationQueue",
      "truncateHead",
      "truncateTail",
      "formatSize",
      "DEFAULT_MAX_LINES",
      "DEFAULT_MAX_BYTES",
      "parseFrontmatter",
      "createBashTool",
      "createReadToolDefinition",
      "createLocalBashOperations",
      "convertToLlm",
      "serializeConversation",
      "CustomEditor",
      "DynamicBorder",
      "BorderedLoader",
    ]) {
      expect(agent?.[name], name).toBeDefined();
    }
    const ai = await modules.get("@oh-my-pi/pi-ai")?.();
    for (const name of ["Type", "StringEnum", "uuidv7", "complete", "getModel"]) expect(ai?.[name], name).toBeDefined();
    const tui = await modules.get("@veyyon/tui")?.();
    for (const name of [
      "Text",
      "Box",
      "Container",
      "Spacer",
      "Markdown",
      "SelectList",
      "SettingsList",
      "Input",
      "Editor",
      "Key",
    ]) {
      expect(tui?.[name], name).toBeDefined();
    }
  });

  it("parts of the SDK link and refuse by name when they are used", async () => {
    const agent = await modules.get("@mariozechner/pi-coding-agent")?.();
    const create = agent?.["createAgentSession"] as () => unknown;
    const Manager = agent?.["SessionManager"] as { create(): unknown; new (): unknown };
    expect(() => create()).toThrow("createAgentSession is not available in mortise");
    expect(() => new Manager()).toThrow("SessionManager is not available in mortise");
    expect(() => Manager.create()).not.toThrow("is not a function");
  });

  it("StringEnum and typebox describe the same enum", async () => {
    const ai = await modules.get("@earendil-works/pi-ai")?.();
    const stringEnum = ai?.["StringEnum"] as (values: string[], options?: object) => unknown;
    expect(JSON.parse(JSON.stringify(stringEnum(["a", "b"], { description: "d" })))).toEqual({
      type: "string",
      enum: ["a", "b"],
      description: "d",
    });
  });

  it("front matter is split from the body", async () => {
    const agent = await modules.get("@mariozechner/pi-coding-agent")?.();
    const parse = agent?.["parseFrontmatter"] as (text: string) => unknown;
    expect(parse("---\nname: x\ntags: [a, b]\n---\nBody\n")).toEqual({
      frontmatter: { name: "x", tags: ["a", "b"] },
      body: "Body\n",
    });
    expect(parse("---\n---\nBody")).toEqual({ frontmatter: {}, body: "Body" });
    expect(parse("No head")).toEqual({ frontmatter: {}, body: "No head" });
  });
});
