import { defineSlashCommand, SlashCommands, type SlashDefinition, SlashEntry } from "mortise/extension";
import { afterEach, expect, test } from "vitest";
import availableCommandsUpdate from "../../../extensions/slash/available-commands-update.ts";
import getAvailableCommands from "../../../extensions/slash/get-available-commands.ts";
import slashCommands from "../../../extensions/slash/slash-commands.ts";
import { Bench } from "../settings/_bench.ts";

const benches: Bench[] = [];
afterEach(async () => {
  for (const bench of benches.splice(0)) await bench.close();
});

const command = (name: string, more: Partial<SlashDefinition> = {}) =>
  defineSlashCommand({ name, description: `Runs ${name}`, run: () => {}, ...more });

async function start() {
  const bench = await Bench.make();
  benches.push(bench);
  await bench.launch().load([slashCommands, availableCommandsUpdate, getAvailableCommands], "builtin", "builtin:slash");
  return bench;
}
const names = (bench: Bench) =>
  bench.ctx
    .use(SlashCommands)
    .listing()
    .map((entry) => entry.name);
const matched = (bench: Bench, text: string) => {
  const match = bench.ctx.use(SlashCommands).match(text);
  return match && [match.owner, match.definition.name, match.name, match.args];
};

test("names end at white space or a colon, and what follows is the arguments", async () => {
  const bench = await start();
  await bench.load([command("model", { aliases: ["models"] })], "builtin", "builtin:m");
  expect(matched(bench, "/model")).toEqual(["builtin:m", "model", "model", ""]);
  expect(matched(bench, "/model  a/b \n c ")).toEqual(["builtin:m", "model", "model", "a/b \n c"]);
  expect(matched(bench, "/models:a/b c")).toEqual(["builtin:m", "model", "models", "a/b c"]);
  expect(matched(bench, "/model\nx")).toEqual(["builtin:m", "model", "model", "x"]);
  for (const text of ["/Model", "/mode", "/", "/ model", "model", " /model", "/usr/bin/env", ""]) {
    expect(matched(bench, text)).toBeUndefined();
  }
});

test("a built-in's name and aliases are its own, also against names with a colon, unless an extension overrides", async () => {
  const bench = await start();
  await bench.load([command("model", { aliases: ["models"] })], "builtin", "builtin:m");
  await bench.load(
    [command("model"), command("models"), command("model:fast"), command("mine", { aliases: ["models", "m"] })],
    "user",
    "ext",
  );
  expect(names(bench)).toEqual(["model", "mine"]);
  expect(bench.ctx.use(SlashCommands).listing()[1]?.aliases).toEqual(["m"]);
  expect(matched(bench, "/model:fast x")).toEqual(["builtin:m", "model", "model", "fast x"]);
  expect(matched(bench, "/models")?.[0]).toBe("builtin:m");
  const unload = await bench.load(
    [command("model", { override: true }), command("models:x", { override: true })],
    "user",
    "over",
  );
  expect(matched(bench, "/model a")?.[0]).toBe("over");
  expect(matched(bench, "/models:x a")).toEqual(["over", "models:x", "models:x", "a"]);
  expect(matched(bench, "/models:y a")).toEqual(["over", "model", "models", "y a"]);
  await unload();
  expect(matched(bench, "/model a")?.[0]).toBe("builtin:m");
});

test("a skill's name is its own as well", async () => {
  const bench = await start();
  await bench.load([command("skill:pdf", { source: "skill" })], "builtin", "builtin:skills");
  const unload = await bench.load([command("skill:pdf"), command("skill:doc")], "user", "ext");
  expect(matched(bench, "/skill:pdf x")?.[0]).toBe("builtin:skills");
  expect(matched(bench, "/skill:doc x")?.[0]).toBe("ext");
  expect(names(bench)).toEqual(["skill:pdf", "skill:doc"]);
  await unload();
  await bench.load([command("skill:pdf", { override: true })], "user", "over");
  expect(matched(bench, "/skill:pdf x")?.[0]).toBe("over");
});

test("an extension's name with a colon is matched whole before its head", async () => {
  const bench = await start();
  await bench.load([command("db:migrate"), command("db")], "user", "ext");
  expect(matched(bench, "/db:migrate now")).toEqual(["ext", "db:migrate", "db:migrate", "now"]);
  expect(matched(bench, "/db:other now")).toEqual(["ext", "db", "db", "other now"]);
});

test("the listing is ordered by source and each entry has its wire shape", async () => {
  const bench = await start();
  await bench.load([command("review", { source: "file", description: "Review it" })], "builtin", "builtin:templates");
  await bench.load([command("skill:pdf", { source: "skill", description: "" })], "builtin", "builtin:skills");
  await bench.load([command("hello", { description: "" }), command("mcp:x", { source: "mcp_prompt" })], "user", "ext");
  await bench.load(
    [command("zeta", { aliases: ["z"], argumentHint: "<id>", subcommands: [{ name: "show", usage: "show <id>" }] })],
    "builtin",
    "builtin:z",
  );
  const listing = bench.ctx.use(SlashCommands).listing();
  expect(listing).toEqual([
    {
      name: "zeta",
      aliases: ["z"],
      description: "Runs zeta",
      input: { hint: "<id>" },
      subcommands: [{ name: "show", usage: "show <id>" }],
      source: "builtin",
    },
    { name: "skill:pdf", description: "Run pdf skill", input: { hint: "arguments" }, source: "skill" },
    { name: "hello", description: "(extension command)", input: { hint: "arguments" }, source: "extension" },
    { name: "mcp:x", description: "Runs mcp:x", input: { hint: "arguments" }, source: "mcp_prompt" },
    { name: "review", description: "Review it", source: "file" },
  ]);
  for (const entry of listing) SlashEntry.parse(entry);
  expect(await getAvailableCommands.run(bench.ctx, {})).toEqual({ commands: listing });
});

test("updates are sent once per swap that changes the listing, and none before the first announcement", async () => {
  const bench = await start();
  const service = bench.ctx.use(SlashCommands);
  await bench.load([command("one")], "user", "a");
  expect(bench.of("available_commands_update")).toEqual([]);
  service.announce(true);
  const unload = await bench.load([command("two"), command("three")], "user", "b");
  expect(bench.of("available_commands_update")).toHaveLength(2);
  // The same metadata from another generation, a shadowed name, and another kind tell nothing.
  const remove = bench.ctx.add(command("four"));
  remove();
  await bench.load([command("one")], "user", "c");
  service.announce();
  expect(bench.of("available_commands_update")).toHaveLength(4);
  await unload();
  expect(bench.of("available_commands_update").at(-1)?.["commands"]).toHaveLength(1);
});
