// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of templates
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { parseFrontmatter, SlashCommands, type SlashContext } from "mortise/extension";
import { afterEach, expect, test } from "vitest";
import slashCommands from "../../../extensions/slash/slash-commands.ts";
import { fillTemplate, splitArguments } from "../../../extensions/templates/_arguments.ts";
import templates from "../../../extensions/templates/templates.ts";
import { Bench } from "../settings/_bench.ts";

const benches: Bench[] = [];
afterEach(async () => {
  for (const bench of benches.splice(0)) await bench.close();
});

async function start(files: Record<string, string> = {}) {
  const bench = await Bench.make(files);
  benches.push(bench);
  const unload = await bench.launch().load([slashCommands, templates], "builtin", "builtin:templates");
  bench.ctx.use(SlashCommands).announce(true);
  return { bench, unload, slash: bench.ctx.use(SlashCommands) };
}
async function run(bench: Bench, text: string) {
  const match = bench.ctx.use(SlashCommands).match(text);
  if (match === undefined) return undefined;
  const ctx = Object.assign(Object.create(bench.ctx), { output: () => {} }) as SlashContext;
  const outcome = await match.definition.run(ctx, match.args);
  return outcome?.prompt;
}
const update = (bench: Bench, fits: (names: string[]) => boolean, after: number) =>
  bench.frame(
    "available_commands_update",
    (frame) => fits((frame["commands"] as { name: string }[]).map((each) => each.name)),
    after,
  );

test("files become slash commands; project beats user, commands beat prompts, hidden and odd names are left out", async () => {
  const { bench, slash } = await start({
    "home/prompts/review.md": "---\ndescription: Review a file\nargument-hint: <file>\n---\n\nReview $1 with care.\n",
    "home/commands/both.md": "user command",
    "project/.mortise/prompts/both.md": "project prompt",
    "project/.mortise/prompts/own.md": `# ${"x".repeat(70)}\nmore`,
    "home/prompts/own.md": "user",
    "home/prompts/.hidden.md": "no",
    "home/prompts/has blank.md": "no",
    "home/prompts/notes.txt": "no",
    "home/prompts/deep/inner.md": "no",
  });
  expect(slash.listing()).toEqual([
    { name: "both", description: "user command", source: "file" },
    { name: "own", description: `${"x".repeat(60)}…`, source: "file" },
    { name: "review", description: "Review a file", input: { hint: "<file>" }, source: "file" },
  ]);
  expect(await run(bench, "/review a.ts")).toBe("Review a.ts with care.\n");
  expect(await run(bench, "/both")).toBe("user command");
  expect(bench.logged.join("\n")).toContain("has a blank");
});

test("a broken head is read line by line and the file still works", async () => {
  const { bench, slash } = await start({ "home/prompts/x.md": "---\ndescription: Do: it\nlist: [1\n---\nGo" });
  expect(slash.listing()).toEqual([{ name: "x", description: "Do: it", source: "file" }]);
  expect(await run(bench, "/x")).toBe("Go");
  expect(bench.logged.join("\n")).toContain("read line by line");
});

test("semantics 62: edits, new files, new folders and removals go live with one update each", async () => {
  const { bench } = await start({ "home/prompts/a.md": "one" });
  expect(await run(bench, "/a")).toBe("one");
  let after = bench.frames.length;
  await bench.write("home/prompts/b.md", "two $@");
  await update(bench, (names) => names.includes("b"), after);
  expect(bench.frames.length).toBe(after + 1);
  expect(await run(bench, "/b x  y")).toBe("two x y");

  after = bench.frames.length;
  await bench.write("project/.mortise/commands/c.md", "three");
  await update(bench, (names) => names.includes("c"), after);

  after = bench.frames.length;
  await bench.write("home/prompts/.a.swp", "four");
  await rename(join(bench.home, "prompts/.a.swp"), join(bench.home, "prompts/a.md"));
  await update(bench, (names) => names.length === 3, after);
  expect(await run(bench, "/a")).toBe("four");

  after = bench.frames.length;
  await rm(join(bench.home, "prompts"), { recursive: true });
  await update(bench, (names) => names.join() === "c", after);
  after = bench.frames.length;
  await bench.write("home/prompts/again.md", "five");
  await update(bench, (names) => names.includes("again"), after);
});

test("a file that vanished under its command, or is empty, is one clear error", async () => {
  const { bench, slash } = await start({ "home/prompts/a.md": "one", "home/prompts/empty.md": "---\nx: 1\n---\n" });
  const match = slash.match("/a");
  await rm(join(bench.home, "prompts/a.md"));
  await expect(match?.definition.run(Object.create(bench.ctx), "")).rejects.toThrow(/^Cannot read prompt file/);
  await expect(run(bench, "/empty")).rejects.toThrow(/is empty: write the prompt into it/);
});

test("unloading takes the commands away and stops watching", async () => {
  const { bench, unload } = await start({ "home/prompts/a.md": "one" });
  await unload();
  expect(bench.kernel.registry.list("slash command")).toEqual([]);
});

test("arguments are split at blanks, grouped by quotes, and an open quote runs to the end", () => {
  expect(splitArguments("")).toEqual([]);
  expect(splitArguments(" a  'b c' \"d'e\" f\"g\"h '' \\x \"open end ")).toEqual([
    "a",
    "b c",
    "d'e",
    "fgh",
    "",
    "\\x",
    "open end ",
  ]);
});

test("placeholders are filled in one pass", () => {
  expect(fillTemplate("$1|$2|$3|$@|$ARGUMENTS|${@:2}|${@:1:1}|$@[2]|$@[1:2]", "a 'b c'")).toBe(
    "a|b c||a b c|a b c|b c|a|b c|a b c",
  );
  expect(fillTemplate("$1 $2", "'$2 $@' $1")).toBe("$2 $@ $1");
  expect(fillTemplate("$10 $0 $x ${HOME} $ARGUMENTSX", "a")).toBe(" $0 $x ${HOME} $ARGUMENTSX");
  expect(fillTemplate("${@:0} ${@:9} ${@:1:0}", "a b")).toBe("a b  ");
  expect(fillTemplate("Just text\n", "more 'of it'")).toBe("Just text\n\nmore 'of it'");
  expect(fillTemplate("Just text\n", "")).toBe("Just text\n");
});

test("heads: YAML, plain lines, none, and one without an end", async () => {
  const head = (text: string) => parseFrontmatter(text);
  expect(await head("---\na: b c\nd: true\n---\n\n  text\n")).toEqual({
    data: { a: "b c", d: true },
    body: "  text\n",
    warning: undefined,
  });
  expect(await head('\uFEFF---\r\na: "x: y"\r\nl:\r\n  - 1\r\n---\r\ntext')).toEqual({
    data: { a: "x: y", l: [1] },
    body: "text",
    warning: undefined,
  });
  expect(await head("---\n---\ntext")).toEqual({ data: {}, body: "text", warning: undefined });
  expect(await head("---\na: b\ntext")).toEqual({ data: {}, body: "---\na: b\ntext", warning: undefined });
  expect(await head("text\n---\na: b\n---\n")).toMatchObject({ data: {} });
  const broken = await head("---\na: [1\nsecret: 'x'\n---\ntext");
  expect(broken).toMatchObject({ data: { a: "[1", secret: "x" }, body: "text", warning: expect.stringMatching(/line \d/) });
});

test("property: heads that are read without a YAML parser mean the same in YAML", async () => {
  const word = fc.stringMatching(/^[A-Za-z(/][ \w,.'"[\]{}&*!|>%@`?()~^-]{0,12}$/);
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(fc.stringMatching(/^[A-Za-z][\w-]{0,5}$/), word, { minKeys: 1, maxKeys: 4 }),
      async (pairs) => {
        const block = Object.entries(pairs).map(([key, value]) => `${key}: ${value}\n`);
        const { data, warning } = await parseFrontmatter(`---\n${block.join("")}---\n`);
        const { parse } = await import("yaml");
        expect(warning).toBeUndefined();
        expect(data).toEqual(parse(block.join("")));
      },
    ),
    { numRuns: process.env["MORTISE_SOAK"] ? 20_000 : 300 },
  );
});

test("property: arguments come through unchanged whatever they contain", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.string().map((text) => text.replaceAll('"', "")),
        { maxLength: 6 },
      ),
      (args) => {
        const typed = args.map((arg) => `"${arg}"`).join(" ");
        expect(splitArguments(typed)).toEqual(args);
        expect(fillTemplate("<$1><${@:2}>", typed)).toBe(`<${args[0] ?? ""}><${args.slice(1).join(" ")}>`);
      },
    ),
    { numRuns: process.env["MORTISE_SOAK"] ? 20_000 : 300 },
  );
});
