import { chmod, lstat, readFile, rename, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import {
  AgentAgents,
  AgentIsolationMode,
  AgentMaxConcurrency,
  AskTimeout,
  defineService,
  defineSetting,
  MemoryBackend,
  Settings,
  SteeringMode,
  TodoReminders,
  TodoRemindersMax,
  ToolsApprovalMode,
  Trust,
  z,
} from "mortise/extension";
import { afterEach, expect, test } from "vitest";
import { expand, merge, readPath } from "../../../extensions/settings/_data.ts";
import knownSettings from "../../../extensions/settings/known-settings.ts";
import settingsUnit from "../../../extensions/settings/settings.ts";
import { Bench, nextChange } from "./_bench.ts";

const benches: Bench[] = [];
afterEach(async () => {
  for (const bench of benches.splice(0)) await bench.close();
});

async function start(files: Record<string, string> = {}, options: Record<string, unknown> = {}) {
  const bench = await Bench.make(files);
  benches.push(bench);
  await bench.launch(options).load([settingsUnit, knownSettings]);
  return { bench, settings: bench.ctx.use(Settings) };
}

test("defaults answer when nothing is configured, and host defaults where there is one", async () => {
  const { settings } = await start();
  expect(settings.get(TodoReminders)).toBe(true);
  expect(settings.origin("todo.reminders")).toEqual({ layer: "default", file: undefined });
  expect(settings.get(AgentMaxConcurrency)).toBe(32);
  expect(settings.origin("agent.maxConcurrency").layer).toBe("host");
  expect(settings.fatal).toBeUndefined();
});

test("layers answer from high to low: runtime, overlays in order, project, user", async () => {
  const { bench, settings } = await start(
    {
      "home/config.yml": "steeringMode: all\nagent:\n  maxConcurrency: 1\n  batch: false\ntodo: {reminders: {max: 1}}\n",
      "project/.mortise/config.yml": "agent:\n  maxConcurrency: 2\nasync.maxJobs: 2\n",
      "project/one.yml": "agent.maxConcurrency: 3\nasync: {maxJobs: 3}\n",
      "project/two.yml": "async:\n  maxJobs: 4\n",
    },
    { config: ["one.yml", "two.yml"] },
  );
  expect(settings.get(SteeringMode)).toBe("all");
  expect(settings.getPath("agent.batch")).toBe(false);
  expect(settings.get(AgentMaxConcurrency)).toBe(3);
  expect(settings.origin("agent.maxConcurrency")).toEqual({ layer: "overlay", file: join(bench.cwd, "one.yml") });
  expect(settings.getPath("async.maxJobs")).toBe(4);
  settings.setRuntime("async.maxJobs", 5);
  expect(settings.getPath("async.maxJobs")).toBe(5);
  expect(settings.origin("async.maxJobs")).toEqual({ layer: "runtime", file: undefined });
  settings.setRuntime("async.maxJobs", undefined);
  expect(settings.getPath("async.maxJobs")).toBe(4);
});

test("item 10: host defaults never override a file, and a project may switch todo reminders off", async () => {
  const { settings } = await start({
    "home/config.yml": "memory: {backend: local}\n",
    "project/.mortise/config.yml": "todo:\n  reminders: false\n",
  });
  expect(settings.get(MemoryBackend)).toBe("local");
  expect(settings.get(TodoReminders)).toBe(false);
});

test("item 9: a runtime value changes no file", async () => {
  const text = "# mine\nsteeringMode: all # keep\n";
  const { bench, settings } = await start({ "home/config.yml": text });
  settings.setRuntime("steeringMode", "one-at-a-time");
  expect(settings.get(SteeringMode)).toBe("one-at-a-time");
  expect(await readFile(join(bench.home, "config.yml"), "utf8")).toBe(text);
});

test("nested and dotted spellings are the same setting, objects merge and lists replace", async () => {
  const { settings } = await start({
    "home/config.yml": "agent:\n  agents:\n    scout.v1: {model: a/b, note: 1}\n    planner: {enabled: true}\nlist: [1, 2]\n",
    "project/.mortise/config.yml": '"agent.agents":\n  scout.v1: {enabled: false}\nlist: [3]\n',
  });
  expect(settings.get(AgentAgents)).toEqual({
    "scout.v1": { model: "a/b", note: 1, enabled: false },
    planner: { enabled: true },
  });
  expect(settings.getPath("list")).toEqual([3]);
  expect(settings.all()["list"]).toEqual([3]);
});

test("a setting and one below it live side by side", async () => {
  const { settings } = await start({
    "home/config.yml": "todo.reminders: false\n",
    "project/.mortise/config.yml": "todo:\n  reminders:\n    max: 7\n",
  });
  expect(settings.get(TodoReminders)).toBe(false);
  expect(settings.get(TodoRemindersMax)).toBe(7);
});

test("older names answer until the new one is set in the same file", async () => {
  const { settings } = await start({
    "home/config.yml":
      "queueMode: all\ntask:\n  isolation: {enabled: true}\n  maxConcurrency: 5\n  disabledAgents: [x]\n  agentModelOverrides: {y: p/m}\nagent.maxConcurrency: 6\nask: {timeout: 30000}\nmemories: {enabled: true}\n",
  });
  expect(settings.get(SteeringMode)).toBe("all");
  expect(settings.get(AgentIsolationMode)).toBe("auto");
  expect(settings.get(AgentMaxConcurrency)).toBe(6);
  expect(settings.get(AgentAgents)).toEqual({ x: { enabled: false }, y: { model: "p/m" } });
  expect(settings.get(AskTimeout)).toBe(30);
  expect(settings.get(MemoryBackend)).toBe("local");
});

test("a misfit is told once without its value, and the next lower layer answers", async () => {
  const { bench, settings } = await start({
    "home/config.yml": "agent.maxConcurrency: 4\n",
    "project/.mortise/config.yml": "agent:\n  maxConcurrency: sk-live-CANARY1\n",
  });
  expect(settings.get(AgentMaxConcurrency)).toBe(4);
  expect(settings.get(AgentMaxConcurrency)).toBe(4);
  settings.setRuntime("x", 1);
  expect(settings.get(AgentMaxConcurrency)).toBe(4);
  const notices = bench.of("notice");
  expect(notices).toHaveLength(1);
  expect(notices[0]).toMatchObject({ level: "warning", source: "settings" });
  expect(notices[0]?.["message"]).toMatch(/^Setting "agent\.maxConcurrency" in .*config\.yml is ignored: /);
  expect(JSON.stringify([bench.frames, bench.logged])).not.toContain("CANARY");
});

test("values given to extensions cannot be changed by them", async () => {
  const { settings } = await start({ "home/config.yml": "agent: {agents: {a: {model: m}}}\n" });
  expect(() => Object.assign(settings.get(AgentAgents)["a"] ?? {}, { model: "other" })).toThrow(TypeError);
  expect(settings.get(AgentAgents)["a"]?.model).toBe("m");
});

test("a project that is not trusted cannot lower a guard or name programs; trust lets it", async () => {
  const { bench, settings } = await start({
    "project/.mortise/config.yml":
      "tools: {approvalMode: ask}\nextensions: [./evil.ts]\nmcp.servers: {a: {command: x}}\ntodo: {reminders: false}\n",
  });
  expect(settings.get(ToolsApprovalMode)).toBe("yolo");
  expect(settings.getPath("extensions")).toBeUndefined();
  expect(settings.getPath("mcp.servers")).toBeUndefined();
  expect(settings.get(TodoReminders)).toBe(false);
  expect(bench.of("notice").map((frame) => frame["message"])).toEqual([
    `Ignored in ${join(bench.cwd, ".mortise/config.yml")} until the project is trusted: extensions, mcp.servers, tools.approvalMode`,
  ]);

  let trusted = false;
  const listeners = new Set<() => void>();
  await bench.load([
    defineService(Trust, {
      create: () => ({
        isTrusted: () => trusted,
        onChange: (listener) => {
          listeners.add(listener);
          return () => listeners.delete(listener);
        },
      }),
    }),
  ]);
  expect(settings.get(ToolsApprovalMode)).toBe("yolo");
  const change = nextChange(settings);
  trusted = true;
  for (const listener of listeners) listener();
  expect(await change).toEqual(expect.arrayContaining(["tools.approvalMode", "extensions"]));
  expect(settings.get(ToolsApprovalMode)).toBe("ask");
  expect(settings.getPath("extensions")).toEqual(["./evil.ts"]);
});

test("a definition may keep a setting from untrusted projects", async () => {
  const { bench, settings } = await start({ "project/.mortise/config.yml": "deploy: {target: prod}\n" });
  const Target = defineSetting({
    name: "deploy.target",
    schema: z.string(),
    default: "none",
    summary: "Where to deploy",
    trustedOnly: true,
  });
  await bench.load([Target], "user");
  expect(settings.get(Target)).toBe("none");
});

test("a changed file is live, and listeners hear which values changed", async () => {
  const { bench, settings } = await start({ "home/config.yml": "steeringMode: all\n" });
  const first = nextChange(settings);
  await bench.write("home/config.yml", "steeringMode: one-at-a-time\nother: 1\n");
  expect([...(await first)].sort()).toEqual(["other", "steeringMode"]);
  expect(settings.get(SteeringMode)).toBe("one-at-a-time");

  // An atomic save, and a project folder that appears later.
  const second = nextChange(settings);
  await bench.write("home/config.yml.new", "steeringMode: all\nother: 1\n");
  await rename(join(bench.home, "config.yml.new"), join(bench.home, "config.yml"));
  expect(await second).toEqual(["steeringMode"]);
  const third = nextChange(settings);
  await bench.write("project/.mortise/config.yml", "followUpMode: all\n");
  expect(await third).toEqual(["followUpMode"]);
});

test("a linked file is watched at both ends", async () => {
  const bench = await Bench.make({ "dotfiles/mortise.yml": "steeringMode: all\n" });
  benches.push(bench);
  await symlink(join(bench.root, "dotfiles/mortise.yml"), join(bench.home, "config.yml"));
  await bench.launch().load([settingsUnit, knownSettings]);
  const settings = bench.ctx.use(Settings);
  const change = nextChange(settings);
  await bench.write("dotfiles/mortise.yml", "steeringMode: one-at-a-time\n");
  await change;
  expect(settings.get(SteeringMode)).toBe("one-at-a-time");
  await settings.write("user", "steeringMode", "all");
  expect((await lstat(join(bench.home, "config.yml"))).isSymbolicLink()).toBe(true);
  expect(await readFile(join(bench.root, "dotfiles/mortise.yml"), "utf8")).toBe("steeringMode: all\n");
});

test("item 49: a file that breaks keeps its last good content, is told once and is never overwritten", async () => {
  const { bench, settings } = await start({ "home/config.yml": "steeringMode: all\n" });
  const broken = "steeringMode: [one\ntoken: sk-live-CANARY1\n";
  const file = await bench.write("home/config.yml", broken);
  const notice = await bench.frame("notice");
  expect(notice).toMatchObject({ level: "error" });
  expect(notice["message"]).toContain(`Cannot use settings file "${file}": it is not valid YAML`);
  expect(JSON.stringify([bench.frames, bench.logged])).not.toContain("CANARY");
  expect(settings.get(SteeringMode)).toBe("all");
  await expect(settings.write("user", "steeringMode", "one-at-a-time")).rejects.toThrow(/Correct the file first/);
  expect(await readFile(file, "utf8")).toBe(broken);
  expect(bench.of("notice")).toHaveLength(1);

  const cured = nextChange(settings);
  await bench.write("home/config.yml", "steeringMode: one-at-a-time\n");
  await cured;
  const again = bench.frames.length;
  await bench.write("home/config.yml", broken);
  await bench.frame("notice", () => true, again);
});

test("an overlay that is missing, broken or no mapping is fatal, with one readable line", async () => {
  for (const [text, reason] of [
    [undefined, "it does not exist"],
    ["a: [1", "it is not valid YAML"],
    ["- a\n- b\n", 'expected settings as "name: value", found a list'],
    ["just words", 'expected settings as "name: value", found a string'],
  ] as const) {
    const { bench, settings } = await start(text === undefined ? {} : { "project/over.yml": text }, { config: ["over.yml"] });
    expect(settings.fatal?.file).toBe(join(bench.cwd, "over.yml"));
    expect(settings.fatal?.message).toContain(reason);
    expect(settings.fatal?.message).not.toContain("\n");
    expect(settings.get(SteeringMode)).toBe("one-at-a-time");
    expect(bench.of("notice")).toEqual([]);
  }
});

test("write keeps comments and unknown keys, goes where the key stands, and makes the file private", async () => {
  const { bench, settings } = await start({
    "home/config.yml": "# top\nfuture: {x: 1} # unknown\nagent:\n  batch: true # why\n  isolation.mode: none\n# end\n",
  });
  const file = join(bench.home, "config.yml");
  await chmod(file, 0o644);
  await settings.write("user", "agent.batch", false);
  await settings.write("user", "agent.isolation.mode", "auto");
  await settings.write("user", "task.maxConcurrency", 3);
  await settings.write("user", "new.deep.key", { a: [1] });
  expect(await readFile(file, "utf8")).toBe(
    "# top\nfuture: {x: 1} # unknown\nagent:\n  batch: false # why\n  isolation.mode: auto\n  maxConcurrency: 3\nnew:\n  deep:\n    key:\n      a:\n        - 1\n\n# end\n",
  );
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(settings.get(AgentMaxConcurrency)).toBe(3);
  await settings.write("user", "agent.batch", undefined);
  expect(settings.getPath("agent.batch")).toBe(true);
  expect(settings.origin("agent.batch").layer).toBe("host");
});

test("write refuses misfits, odd paths and a path through a value, and changes nothing", async () => {
  const text = "plain: 1\n";
  const { bench, settings } = await start({ "home/config.yml": text });
  await expect(settings.write("user", "steeringMode", "sometimes")).rejects.toMatchObject({ code: "invalid_params" });
  await expect(settings.write("user", "a..b", 1)).rejects.toThrow(/expected a dotted name/);
  await expect(settings.write("user", "__proto__.x", 1)).rejects.toThrow(/expected a dotted name/);
  await expect(settings.write("user", "plain.inner", 1)).rejects.toThrow('"plain" already has a value that is no mapping');
  expect(() => settings.setRuntime("steeringMode", 1)).toThrow(/Cannot set "steeringMode"/);
  expect(await readFile(join(bench.home, "config.yml"), "utf8")).toBe(text);
});

test("concurrent writes of two daemons and an edit in between are all kept", async () => {
  const one = await start({ "home/config.yml": "" });
  const other = new Bench(one.bench.root);
  benches.unshift(other);
  await other.launch().load([settingsUnit, knownSettings]);
  const second = other.ctx.use(Settings);
  const writes = Array.from({ length: 8 }, (_, index) =>
    (index % 2 === 0 ? one.settings : second).write("user", `many.k${index}`, index),
  );
  await Promise.all(writes);
  await writeFile(join(one.bench.home, "config.yml"), `${await readFile(join(one.bench.home, "config.yml"), "utf8")}hand: 1\n`);
  await one.settings.write("user", "last", true);
  expect(one.settings.getPath("many")).toEqual(Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`k${i}`, i])));
  expect(one.settings.getPath("hand")).toBe(1);
});

test("unloading leaves no watcher and no listener", async () => {
  const bench = await Bench.make();
  benches.push(bench);
  const unload = await bench.launch().load([settingsUnit, knownSettings]);
  bench.ctx.use(Settings);
  await unload();
  const before = bench.frames.length;
  await bench.write("home/config.yml", "steeringMode: [\n");
  await new Promise((resolve) => setTimeout(resolve, 120));
  expect(bench.frames.length).toBe(before);
  expect(bench.ctx.tryUse(Settings)).toBeUndefined();
});

const runs = process.env["MORTISE_SOAK"] ? 20_000 : 300;
const key = fc.stringMatching(/^[a-c]{1,2}$/);
const scalar = fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.array(fc.integer(), { maxLength: 2 }));
const tree = fc.letrec((tie) => ({
  node: fc.oneof({ maxDepth: 3 }, scalar, fc.dictionary(key, tie("node"), { maxKeys: 3 })),
})).node;
const mapping = fc.dictionary(key, tree, { maxKeys: 4 });

test("property: a value is read back under every spelling of its path", () => {
  fc.assert(
    fc.property(
      fc.array(key, { minLength: 1, maxLength: 5 }),
      fc.array(fc.boolean(), { maxLength: 5 }),
      scalar,
      (path, joins, value) => {
        const keys: string[] = [];
        path.forEach((segment, index) => {
          const last = keys.length - 1;
          if (index > 0 && joins[index] === true) keys[last] = `${keys[last]}.${segment}`;
          else keys.push(segment);
        });
        const data = keys.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
        expect(readPath(data as Record<string, unknown>, path.join("."))).toEqual(value);
      },
    ),
    { numRuns: runs },
  );
});

test("property: merging keeps the inputs, is idempotent and lets the upper layer win", () => {
  fc.assert(
    fc.property(mapping, mapping, (under, over) => {
      const before = JSON.stringify([under, over]);
      const merged = merge(under, over);
      expect(JSON.stringify([under, over])).toBe(before);
      expect(merge(merged, over)).toEqual(merged);
      for (const [name, value] of Object.entries(over)) {
        if (typeof value !== "object" || Array.isArray(value)) expect((merged as Record<string, unknown>)[name]).toEqual(value);
      }
      expect(expand(under)).toEqual(under);
    }),
    { numRuns: runs },
  );
});
