// Providers' caches hold as long as system prompt and tools are the same bytes: from turn to turn, whatever is loaded anew beside them,
// and when the session is opened again.
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import type { ProviderRequest } from "../../../core/extension.ts";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import { says, scriptedModel, scriptedProvider } from "../../support/scripted-provider.ts";

const home = realpathSync(mkdtempSync(join(tmpdir(), "mortise-test-")));
let d: TestDaemon;
afterEach(async () => {
  await d.stop();
  rmSync(home, { recursive: true, force: true });
});

const tool = (name: string) =>
  `defineTool({ name: "${name}", description: "${name}", promptSnippet: "does ${name}", params: z.object({ b: z.string(), a: z.number().optional() }), run: () => "" })`;
const files = {
  "extensions/one.ts": `import { defineTool, z } from "mortise/extension";\nexport default [${tool("zeta")}, ${tool("alpha")}];\n`,
  "extensions/two.ts": `import { definePromptSection } from "mortise/extension";\nexport default definePromptSection({ name: "mine", order: 50, stable: true, render: () => "Mine" });\n`,
  "skills/second/SKILL.md": "---\nname: second\ndescription: Two\n---\n",
  "skills/first/SKILL.md": "---\nname: first\ndescription: One\n---\n",
  "AGENTS.md": "Rules of the user",
  "cwd/AGENTS.md": "Rules of the project",
};
const bytes = (request: ProviderRequest | undefined) => JSON.stringify([request?.systemPrompt, request?.tools]);

it("system prompt and tools are the same bytes through turns, reloads, changes that are taken back, and another start", async () => {
  const provider = scriptedProvider(() => says("ok"));
  const start = async (options: Record<string, unknown>, written: Record<string, string>) => {
    const extensions = { scripted: [[provider.definition]] };
    d = await startDaemon({
      watch: false,
      env: {},
      home,
      options: { model: "offline/echo", ...options },
      files: written,
      extensions,
    });
    d.daemon.conversations.attached.select({ model: scriptedModel });
  };
  const sent = async (text: string) => {
    await d.prompt(text);
    return bytes(provider.requests.at(-1));
  };
  await start({}, files);
  const first = await sent("one");
  expect(first).toMatch(/does zeta.*Mine.*first: One.*Rules of the user.*Rules of the project.*"name":"zeta"/s);
  expect(await sent("two")).toBe(first);
  d.write("extensions/one.ts", `${files["extensions/one.ts"]}// touched\n`);
  await d.reload("one");
  expect(await sent("reloaded")).toBe(first);
  await d.ask("set_extension_enabled", { extensionId: "two", enabled: false });
  expect(await sent("without")).not.toBe(first);
  await d.ask("set_extension_enabled", { extensionId: "two", enabled: true });
  expect(await sent("back")).toBe(first);
  await d.ask("set_host_tools", {
    tools: [{ name: "hosted", description: "h", parameters: { type: "object", properties: {} } }],
  });
  expect(await sent("hosted")).not.toBe(first);
  await d.ask("set_host_tools", { tools: [] });
  expect(await sent("no more")).toBe(first);
  const history = JSON.stringify(provider.requests.at(-1)?.messages);
  await d.stop();
  await start({ continue: true }, {});
  expect(await sent("opened again")).toBe(first);
  expect(JSON.stringify(provider.requests.at(-1)?.messages).startsWith(history.slice(0, -1))).toBe(true);
});
