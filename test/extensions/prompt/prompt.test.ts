import { chmod, mkdir, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { definePromptSection, defineService, defineTool, Skills, Trust, z } from "mortise/extension";
import { afterEach, expect, test, vi } from "vitest";
import type { AgentEnvironment } from "../../../core/agent/environment.ts";
import { PromptCache, renderSystemPrompt } from "../../../core/agent/system-prompt.ts";
import { PromptFileCache } from "../../../extensions/prompt/_files.ts";
import { expandImports } from "../../../extensions/prompt/_imports.ts";
import appendFile from "../../../extensions/prompt/append-file.ts";
import contextFiles from "../../../extensions/prompt/context-files.ts";
import environment from "../../../extensions/prompt/environment.ts";
import promptFiles from "../../../extensions/prompt/prompt-files.ts";
import role from "../../../extensions/prompt/role.ts";
import promptSettings from "../../../extensions/prompt/settings.ts";
import skills from "../../../extensions/prompt/skills.ts";
import systemFile from "../../../extensions/prompt/system-file.ts";
import tools from "../../../extensions/prompt/tools.ts";
import { Bench } from "../settings/_bench.ts";

const benches: Bench[] = [];
afterEach(async () => {
  for (const bench of benches.splice(0)) await bench.close();
});

const sections = [appendFile, contextFiles, environment, promptFiles, role, promptSettings, skills, systemFile, tools];

async function start(files: Record<string, string> = {}, options: Record<string, unknown> = {}, cwd = "project") {
  const bench = await Bench.make(files);
  benches.push(bench);
  await bench.launch(options).load(sections, "builtin", "builtin:prompt");
  const toolSchemas = () => bench.kernel.registry.list("tool").map(({ name }) => ({ name, description: "", parameters: {} }));
  bench.conversation = { cwd: join(bench.root, cwd), toolSchemas };
  return { bench, prompt: () => renderSystemPrompt(bench.ctx, {}) };
}
const filesOf = (blocks: string[]) =>
  [...(blocks[1] ?? "").matchAll(/<file path="([^"]+)">\n([\s\S]*?)\n<\/file>/g)].map(([, path, text]) => [path, text]);

test("instructions and environment are two blocks, with the date but no time of day, and the same bytes each time", async () => {
  const { bench, prompt } = await start();
  const blocks = await prompt();
  expect(blocks).toHaveLength(2);
  expect(blocks[0]).not.toContain(bench.root);
  expect(blocks[1]).toContain(`- Working directory: ${bench.cwd}\n`);
  expect(blocks[1]).toMatch(/- Date: \d{4}-\d\d-\d\d\n/);
  expect(blocks[1]).not.toMatch(/\d:\d\d/);
  expect(await prompt()).toEqual(blocks);
});

test("at midnight the date changes and nothing else, and what is being worked on keeps the one it began with", async () => {
  const { bench } = await start({ "project/AGENTS.md": "Rules" });
  const env = { registry: bench.kernel.registry, launch: {} } as AgentEnvironment;
  const cache = new PromptCache({ env, context: () => bench.ctx });
  vi.useFakeTimers({ toFake: ["Date"], now: new Date(2026, 11, 31, 23, 59, 59) });
  try {
    const before = cache.blocks();
    await before;
    vi.setSystemTime(new Date(2027, 0, 1, 0, 0, 1));
    expect(cache.blocks()).toBe(before);
    cache.invalidate();
    const [old, young] = [await before, await cache.blocks()];
    expect(old[1]).toContain("- Date: 2026-12-31\n");
    expect(young).toEqual(old.map((block) => block.replace("2026-12-31", "2027-01-01")));
    expect(young[0]).toBe(old[0]);
  } finally {
    vi.useRealTimers();
  }
});

test("offered tools describe themselves once, those without words are left out", async () => {
  const { bench, prompt } = await start();
  const tool = (name: string, more: object) =>
    defineTool({ name, description: "", params: z.object({}), run: () => "", ...more });
  await bench.load([
    tool("read", { promptSnippet: "Reads\n files", promptGuidelines: ["Prefer read over cat", "Be careful"] }),
    tool("edit", { promptSnippet: "Edits files", promptGuidelines: ["Be careful"] }),
    tool("quiet", {}),
  ]);
  const [stable] = await prompt();
  expect(stable).toContain(
    "Your tools\n- read: Reads files\n- edit: Edits files\n\nUsing them\n- Prefer read over cat\n- Be careful",
  );
  expect(stable).not.toContain("quiet");
});

test("skills are told only when a tool can read them, hidden ones never", async () => {
  const { bench, prompt } = await start();
  const skill = (name: string, hidden: boolean) => ({
    name,
    description: `For ${name}`,
    file: "",
    directory: "",
    origin: "user" as const,
    hidden,
  });
  const list = [skill("pdf", false), skill("secret", true)];
  await bench.load([defineService(Skills, { create: () => ({ list: () => list, find: () => undefined }) })]);
  expect((await prompt())[1]).not.toContain("skill://");
  await bench.load([defineTool({ name: "read", description: "", params: z.object({}), run: () => "" })]);
  const blocks = await prompt();
  expect(blocks[1]).toContain("- skill://pdf: For pdf");
  expect(blocks.join()).not.toContain("secret");
});

test("context files: the user's, then from the repository's root down to the working directory, one per folder", async () => {
  const { bench, prompt } = await start(
    {
      "AGENTS.md": "outside of the repository",
      "home/AGENTS.md": "user",
      "project/.git/HEAD": "",
      "project/CLAUDE.md": "root claude",
      "project/a/AGENTS.md": "  \n",
      "project/a/GEMINI.md": "a gemini",
      "project/a/b/AGENTS.md": "b agents",
      "project/a/b/CLAUDE.md": "b claude",
    },
    {},
    "project/a/b",
  );
  expect(filesOf(await prompt())).toEqual([
    [join(bench.home, "AGENTS.md"), "user"],
    [join(bench.cwd, "CLAUDE.md"), "root claude"],
    [join(bench.cwd, "a/GEMINI.md"), "a gemini"],
    [join(bench.cwd, "a/b/AGENTS.md"), "b agents"],
  ]);
});

test("outside of a repository only the working directory counts, and the same text stands once", async () => {
  const { bench, prompt } = await start({
    "AGENTS.md": "above",
    "home/AGENTS.md": "same\r\n",
    "project/AGENTS.md": "\uFEFFsame",
  });
  expect(filesOf(await prompt())).toEqual([[join(bench.cwd, "AGENTS.md"), "same"]]);
});

test("a changed, new or removed file is in the next prompt", async () => {
  const { bench, prompt } = await start({ "project/AGENTS.md": "one" });
  expect(filesOf(await prompt()).map(([, text]) => text)).toEqual(["one"]);
  await bench.write("project/AGENTS.md", "two!");
  expect(filesOf(await prompt()).map(([, text]) => text)).toEqual(["two!"]);
  await rm(join(bench.cwd, "AGENTS.md"));
  expect(filesOf(await prompt())).toEqual([]);
});

test("imports are filled in up to five hops, without cycles, outside of code, and missing ones stay text", async () => {
  const { bench, prompt } = await start({
    "project/AGENTS.md": [
      "See @docs/style.md, and (@docs/style.md).",
      "`@docs/style.md` stays, mail a@docs/style.md, @types/node, @missing.md",
      "```",
      "@docs/style.md",
      "```",
      "@docs/cycle.md",
      "@hop1.md",
    ].join("\n"),
    "project/docs/style.md": "use tabs",
    "project/docs/cycle.md": "cycle @cycle.md @../AGENTS.md",
    ...Object.fromEntries(Array.from({ length: 7 }, (_, i) => [`project/hop${i + 1}.md`, `${i + 1} @hop${i + 2}.md`])),
  });
  expect(filesOf(await prompt())).toEqual([
    [
      join(bench.cwd, "AGENTS.md"),
      [
        "See use tabs, and (use tabs).",
        "`@docs/style.md` stays, mail a@docs/style.md, @types/node, @missing.md",
        "```",
        "@docs/style.md",
        "```",
        "cycle @cycle.md @../AGENTS.md",
        "1 2 3 4 5 @hop6.md",
      ].join("\n"),
    ],
  ]);
});

test("files that import each other by powers end at a limit; what is past it stays text", async () => {
  const many = (name: string) => Array.from({ length: 40 }, () => `@${name}`).join("\n");
  const { prompt } = await start({
    "project/AGENTS.md": many("a1.md"),
    ...Object.fromEntries([1, 2, 3, 4].map((n) => [`project/a${n}.md`, many(`a${n + 1}.md`)])),
    "project/a5.md": "leaf",
  });
  const [file] = filesOf(await prompt());
  expect(file?.[1]?.length).toBeLessThan(300_000);
  expect(file?.[1]).toContain("leaf");
  expect(file?.[1]?.split("\n")?.at(-1)).toBe("@a1.md");
});

test("a huge import stays text, and what is imported behind it is filled in", async () => {
  const { prompt } = await start({
    "project/AGENTS.md": "@big.md\n@big.md\n@big.md\n@small.md",
    "project/big.md": "x".repeat(90_000),
    "project/small.md": "small",
  });
  const lines = filesOf(await prompt())[0]?.[1]?.split("\n") ?? [];
  expect(lines.map((line) => (line.length > 100 ? line.length : line))).toEqual([90_000, 90_000, "@big.md", "small"]);
});

test("an untrusted project reaches nothing outside of itself by import or link; a trusted one and the user may", async () => {
  const { bench, prompt } = await start({
    "secret.md": "SECRET",
    "home/AGENTS.md": "mine @../secret.md",
    "project/AGENTS.md": "theirs @../secret.md @inner.md",
  });
  await symlink(join(bench.root, "secret.md"), join(bench.cwd, "inner.md"));
  await symlink(join(bench.root, "secret.md"), join(bench.cwd, "CLAUDE.md"));
  await mkdir(join(bench.cwd, ".mortise"));
  await symlink(join(bench.root, "secret.md"), join(bench.cwd, ".mortise/SYSTEM.md"));
  const texts = async () => filesOf(await prompt()).map(([, text]) => text);
  expect(await texts()).toEqual(["mine SECRET", "theirs @../secret.md @inner.md"]);
  expect((await prompt())[0]).not.toContain("SECRET");
  await bench.load([defineService(Trust, { create: () => ({ isTrusted: () => true, onChange: () => () => {} }) })]);
  expect(await texts()).toEqual(["mine SECRET", "theirs SECRET SECRET"]);
  expect((await prompt())[0]).toBe("SECRET");
});

test("files that are no text, unreadable or folders are passed over, and huge ones are cut with a note", async () => {
  const { bench, prompt } = await start({
    "project/.mortise/AGENTS.md": "bin\0ary",
    "project/AGENTS.md/x": "a folder",
    "project/CLAUDE.md": `first line\n${"long line\n".repeat(20_000)}`,
  });
  if (process.getuid?.() !== 0) {
    await bench.write("project/.claude/CLAUDE.md", "x");
    await chmod(join(bench.cwd, ".claude/CLAUDE.md"), 0);
  }
  const [[path, text] = []] = filesOf(await prompt());
  expect(path).toBe(join(bench.cwd, "CLAUDE.md"));
  expect(text?.length).toBeLessThan(100_200);
  expect(text).toMatch(/^first line\n[\s\S]*\n\[Cut here: .*CLAUDE\.md is longer\. Read it for the rest\.\]$/);
});

const code = [
  "`@x.md`",
  "``a ` @x.md``",
  "`over\n@x.md lines`",
  "```\n@x.md\n```",
  "- item\n    ```js\n    @x.md\n    ```",
  "> ~~~\n> @x.md\n> ~~~",
  "1. ```\n   @x.md\n   ```",
  "````\n```\n@x.md\n```\n````",
  "```txt\n```js\n@x.md\n```",
  "~~~\n```\n@x.md\n~~~",
];

test("an import in code stays text, wherever the code stands, and the one behind it is filled in", async () => {
  const files = { read: async () => ({ realPath: "/p/x.md", text: "FILLED" }) };
  const expand = (text: string) => expandImports({ realPath: "/p/AGENTS.md", text }, { files, allowed: () => true });
  for (const each of code) expect(await expand(`@x.md\n${each}\n\n@x.md`)).toBe(`FILLED\n${each}\n\nFILLED`);
  expect(await expand(`${code.join("\n\n")}\n(@x.md)`)).toBe(`${code.join("\n\n")}\n(FILLED)`);
  // A mark that nothing closes is none, and a span ends with its paragraph.
  expect(await expand("a ` b @x.md\n\n@x.md ` c")).toBe("a ` b FILLED\n\nFILLED ` c");
  expect(await expand("```\n@x.md never closed")).toBe("```\n@x.md never closed");
});

test("whatever bytes a file holds, the prompt is text that services take, and no more of it is read than is told", async () => {
  const { bench, prompt } = await start();
  const file = join(bench.cwd, "AGENTS.md");
  for (const [content, fits] of [
    [Buffer.from("\uFEFFrules of utf-16", "utf16le"), /^rules of utf-16$/],
    [Buffer.from("caf\xe9", "latin1"), /^caf\uFFFD$/],
    ["one\r\ntwo\r\n", /^one\ntwo$/],
    [`a${"😀".repeat(200_000)}`, /😀\n\[Cut here: /],
    ["漢".repeat(200_000), /漢\n\[Cut here: /],
  ] as const) {
    await writeFile(file, content);
    const blocks = await prompt();
    expect(filesOf(blocks)[0]?.[1]).toMatch(fits);
    expect(blocks.every((block) => block.isWellFormed())).toBe(true);
  }
  // Nobody could hold that in one piece.
  await writeFile(file, `${"line of text\n".repeat(40_000)}`);
  await truncate(file, 2 ** 33);
  expect(filesOf(await prompt())[0]?.[1]).toMatch(/line of text\n\[Cut here: /);
  await bench.load([definePromptSection({ name: "half", order: 5, stable: true, render: () => "half \ud83d and \0" })], "user");
  expect((await prompt())[0]).toContain("half \uFFFD and \uFFFD");
});

test("SYSTEM.md replaces the instructions and APPEND_SYSTEM.md comes last; the project's before the user's", async () => {
  const { bench, prompt } = await start({
    "home/SYSTEM.md": "user system $1",
    "home/APPEND_SYSTEM.md": "user append",
    "project/.mortise/APPEND_SYSTEM.md": "project append",
  });
  const blocks = await prompt();
  expect([blocks[0], blocks.at(-1), blocks.length]).toEqual(["user system $1", "project append", 3]);
  await bench.write("project/.mortise/SYSTEM.md", "project system");
  expect((await prompt())[0]).toBe("project system");
  // A section of an extension is part of the instructions, so it is replaced with them; environment sections stay.
  await bench.load([definePromptSection({ name: "x", order: 5, stable: false, render: () => "extension environment" })], "user");
  expect((await prompt())[1]).toContain("extension environment");
});

test("--system-prompt and --append-system-prompt take a text or a file and win over the files", async () => {
  const text = await start({ "home/SYSTEM.md": "file" }, { systemPrompt: "Be a poet", appendSystemPrompt: ["one", "two.txt"] });
  await text.bench.write("project/two.txt", "from a file");
  const blocks = await text.prompt();
  expect([blocks[0], blocks.at(-1)]).toEqual(["Be a poet", "one\n\nfrom a file"]);
  const file = await start({ "project/p.md": "From p" }, { systemPrompt: "p.md" });
  expect((await file.prompt())[0]).toBe("From p");
  const lines = await start({}, { systemPrompt: "line\nline" });
  expect((await lines.prompt())[0]).toBe("line\nline");
});

test("a tilde in an import is the home directory", async () => {
  const seen: string[] = [];
  const files = {
    read: (path: string) => {
      seen.push(path);
      return Promise.resolve(undefined);
    },
  };
  await expandImports({ realPath: "/p/AGENTS.md", text: "@~/notes.md @sub/x.md" }, { files, allowed: () => true });
  expect(seen).toEqual([join(homedir(), "notes.md"), "/p/sub/x.md"]);
});

test("property: text without importable files is unchanged", async () => {
  const files = new PromptFileCache();
  const piece = fc.constantFrom("@", "`", "```", "\n", " ", "a", "@nope.md", "(", ")", ".", "~~~");
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 30 }), async (pieces) => {
      const text = pieces.join("");
      expect(await expandImports({ realPath: "/nowhere/AGENTS.md", text }, { files, allowed: () => true })).toBe(text);
    }),
    { numRuns: process.env["MORTISE_SOAK"] ? 5000 : 100 },
  );
});
