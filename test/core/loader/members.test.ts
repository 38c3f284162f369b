// Definitions written without a compiler: what is of a wrong type fails the load of its unit and nothing of anybody else's.
import { expect, test } from "vitest";
import { startDaemon } from "../../../core/testing.ts";

const unit = (text: string) => `import * as m from "mortise/extension"; export default ${text};`;
const tool = (more: string) => `m.defineTool({ name: "x", description: "d", params: m.z.object({}), run: () => "", ${more} })`;
const slash = (more: string) => `m.defineSlashCommand({ name: "x", description: "d", run() {}, ${more} })`;

const wrong: Record<string, [text: string, error: RegExp]> = {
  "tool-description": [tool("description: 5n"), /The tool "x" has a wrong "description": .*expected string/],
  "tool-label": [tool("label: {}"), /wrong "label"/],
  "tool-guidelines": [tool('promptGuidelines: "one"'), /wrong "promptGuidelines"/],
  "tool-run": [tool("run: undefined"), /The tool "x" needs a function "run"/],
  "slash-description": [slash("description: { toJSON() { throw new Error() } }"), /wrong "description"/],
  "slash-aliases": [slash("aliases: 5"), /wrong "aliases"/],
  "slash-hint": [slash("argumentHint: () => 1"), /wrong "argumentHint"/],
  "slash-subcommands": [slash('subcommands: [{ name: "a" }, {}]'), /wrong "subcommands.1.name"/],
  "slash-run": [slash("run: 1"), /The slash command "x" needs a function "run"/],
  hook: ["m.defineHook(m.toolDecide, undefined)", /The hook "toolDecide" needs a function "run"/],
  section: ['m.definePromptSection({ name: "x" })', /needs a function "render"/],
  field: ['m.defineStateField({ name: "x" })', /needs a function "read"/],
  provider: ['m.defineProvider({ name: "x" })', /needs a function "stream"/],
  "provider-models": ['m.defineProvider({ name: "x", stream() {}, models: () => [] })', /wrong "models"/],
  scheme: ['m.defineUriScheme({ name: "x" })', /needs a function "read"/],
  service: ['m.defineService(m.createToken("x"), {})', /needs a function "create"/],
  command: ['m.defineCommand({ name: "x", summary: 5 })', /needs a function "run"/],
};

test("each fails with its reason; the daemon starts, lists and answers", async () => {
  const files = Object.entries(wrong).map(([name, [text]]) => [`extensions/${name}.ts`, unit(text)]);
  const daemon = await startDaemon({
    files: { ...Object.fromEntries(files), "extensions/right.ts": unit(slash('name: "right", aliases: ["ok"]')) },
  });
  try {
    await daemon.daemon.loader.settled();
    const { extensions } = (await daemon.ask("get_extensions")) as {
      extensions: { name: string; state: string; error?: string }[];
    };
    for (const [name, [, error]] of Object.entries(wrong)) {
      const found = extensions.find((each) => each.name === name);
      expect(found?.error, name).toMatch(error);
      expect(found?.state, name).toBe("failed");
    }
    expect(JSON.stringify(await daemon.ask("get_available_commands"))).toContain('"right"');
    await daemon.ask("get_available_models");
    const frames = await daemon.prompt("call ls {}");
    expect(frames.find((frame) => frame.type === "tool_execution_end")).toMatchObject({ isError: false });
    expect(await daemon.ask("get_state")).toMatchObject({ isStreaming: false });
  } finally {
    await daemon.stop();
  }
});
