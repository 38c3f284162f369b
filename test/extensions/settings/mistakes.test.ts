// What people do to a configuration file by hand while a daemon runs: each sort of mistake is told, costs no value that was good,
// is written over by nothing, and the next good save is live.
import { execFileSync, spawn } from "node:child_process";
import { mkdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { defineSetting, Settings, SteeringMode, z } from "mortise/extension";
import { afterEach, expect, test } from "vitest";
import knownSettings from "../../../extensions/settings/known-settings.ts";
import settingsUnit from "../../../extensions/settings/settings.ts";
import { Bench, nextChange } from "./_bench.ts";

const benches: Bench[] = [];
afterEach(async () => {
  for (const bench of benches.splice(0)) await bench.close();
});

const Probe = defineSetting({ name: "probe.value", schema: z.number(), default: 0, summary: "For this test" });

async function start(files: Record<string, string> = {}, options: Record<string, unknown> = {}) {
  const bench = await Bench.make(files);
  benches.push(bench);
  await bench.launch(options).load([settingsUnit, knownSettings, [Probe]]);
  return { bench, settings: bench.ctx.use(Settings), file: join(bench.home, "config.yml") };
}

/** Each line holds the one before nine times over. */
const powers = ["x", "*a", "*b", "*c", "*d"]
  .map((inner, at) => `${"abcde"[at]}: &${"abcde"[at]} [${Array(9).fill(inner).join(",")}]`)
  .join("\n");

/** In one step, as most editors save: a part of it is never read. */
async function save(file: string, content: string | Buffer): Promise<void> {
  await writeFile(`${file}.new`, content);
  await rename(`${file}.new`, file);
}

const unusable: readonly (readonly [string, string | Buffer, RegExp])[] = [
  ["tabs", "probe:\n\tvalue: 9\n", /Tabs are not allowed/],
  ["a key twice", "probe: { value: 9 }\nprobe: { value: 8 }\n", /"probe" stands there twice, again in line 2/],
  ["a list", "- probe\n", /found a list/],
  ["words", "probe\n", /found a string/],
  ["an unknown alias", "probe: *none\n", /Unresolved alias/],
  ["a list that contains itself", "x: &x [*x]\nprobe: { value: 9 }\n", /an alias contains itself/],
  ["a mapping that contains itself", "x: &x { y: { z: *x } }\nprobe: { value: 9 }\n", /an alias contains itself/],
  ["aliases by powers", `${powers}\nprobe: { value: 9 }\n`, /Excessive alias count/],
  ["two documents", "probe: { value: 9 }\n---\nprobe: { value: 8 }\n", /more than one document, the second from line 2 on/],
  ["endless nesting", `x: ${"[".repeat(8000)}\n`, /not valid YAML/],
  ["a huge file", `probe: { value: 9 }\n${"#".repeat(200_000)}\n`, /it has 200021 bytes, and the limit is 200000/],
  ["no text", Buffer.from([0x00, 0x01, 0x02, 0x00]), /found a string/],
];

test("a file that cannot be used keeps its last good values, is told in one line, stays as it is, and the next good one is live", async () => {
  const { bench, settings, file } = await start({ "home/config.yml": "probe: { value: 1 }\n" });
  for (const [index, [what, content, reason]] of unusable.entries()) {
    const good = index + 2;
    const after = bench.frames.length;
    await save(file, content);
    const { level, message } = await bench.frame("notice", () => true, after);
    expect(level, what).toBe("error");
    expect(message, what).toMatch(reason);
    expect(message, what).not.toContain("\n");
    expect(settings.get(Probe), what).toBe(index === 0 ? 1 : good - 1);
    await expect(settings.write("user", "probe.value", 5), what).rejects.toThrow(reason);
    expect((await readFile(file)).equals(Buffer.from(content)), what).toBe(true);
    const cured = nextChange(settings);
    await save(file, `probe: { value: ${good} }\n`);
    expect(await cured, what).toEqual(["probe.value"]);
    expect(settings.get(Probe), what).toBe(good);
  }
});

test("a large file with many keys is read, and costs what its length does", async () => {
  const keys = Array.from({ length: 4000 }, (_, index) => `k${index}: v\n`).join("");
  const { settings } = await start({ "home/config.yml": `${keys}probe: { value: 4 }\n` });
  expect(settings.get(Probe)).toBe(4);
});

test("the same holds for a folder and a circle of links in its place", async () => {
  const { bench, settings, file } = await start({ "home/config.yml": "probe: { value: 1 }\n" });
  for (const [make, reason] of [
    [() => mkdir(file), /EISDIR/],
    [() => symlink(file, file), /ELOOP/],
  ] as const) {
    const after = bench.frames.length;
    await rm(file);
    await make();
    expect((await bench.frame("notice", () => true, after))["message"]).toMatch(reason);
    await expect(settings.write("user", "probe.value", 5)).rejects.toThrow(reason);
    await rm(file, { recursive: true });
    await save(file, "probe: { value: 2 }\n");
    await expect.poll(() => settings.get(Probe)).toBe(2);
  }
});

test("a plain value where settings are expected below is told, once, until it is corrected", async () => {
  const { bench, settings, file } = await start({
    "home/config.yml": "compaction: off\nagent: 3\nfuture: 1\ntodo.reminders: false\n",
  });
  settings.get(SteeringMode);
  const told = () => bench.of("notice").map((frame) => String(frame["message"]));
  expect(told()).toEqual([
    expect.stringMatching(/^"agent" in .*config\.yml is ignored: expected settings below it, such as agent\.\w/),
    expect.stringMatching(/^"compaction" in .*config\.yml is ignored: expected settings below it, such as compaction\.enabled$/),
  ]);
  const changed = nextChange(settings);
  await save(file, "compaction: { enabled: false }\nagent: 3\n");
  await changed;
  expect(told()).toHaveLength(2);
  const after = bench.frames.length;
  await save(file, "compaction: off\nagent: 3\n");
  expect((await bench.frame("notice", () => true, after))["message"]).toContain('"compaction" in');
});

test("writing keeps what is no business of ours: big numbers, line ends, a byte order mark, anchors, padding, odd keys", async () => {
  const { settings, file } = await start();
  const cases: readonly (readonly [string, string])[] = [
    ["id: 12345678901234567890 # why\nprobe: { value: 1 }\n", "id: 12345678901234567890 # why\nprobe: { value: 5 }\n"],
    ["# c\r\nprobe:\r\n  value: 1 # d\r\n", "# c\r\nprobe:\r\n  value: 5 # d\r\n"],
    ["\uFEFFprobe:\n  value: 1\n", "\uFEFFprobe:\n  value: 5\n"],
    ["base: &b { value: 1 }\nprobe:\n  <<: *b\n", "base: &b { value: 1 }\nprobe:\n  <<: *b\n  value: 5\n"],
    ["probe: {value: 1}\n", "probe: {value: 5}\n"],
    ["__proto__: { x: 1 }\n1: one\nprobe.value: 1\n", "__proto__: { x: 1 }\n1: one\nprobe.value: 5\n"],
    ["---\nprobe:\n  value: 1\n...\n", "---\nprobe:\n  value: 5\n...\n"],
  ];
  for (const [before, expected] of cases) {
    await save(file, before);
    await settings.write("user", "probe.value", 5);
    expect(await readFile(file, "utf8")).toBe(expected);
    expect(settings.get(Probe)).toBe(5);
  }
  const latin = Buffer.from("name: Jos\xe9\nprobe: { value: 1 }\n", "latin1");
  await save(file, latin);
  await expect(settings.write("user", "probe.value", 5)).rejects.toThrow(/not UTF-8 text/);
  expect((await readFile(file)).equals(latin)).toBe(true);
});

test("what can be read once only, such as the shell's <(command), keeps its values", async () => {
  const bench = await Bench.make({ "home/config.yml": "probe: { value: 1 }\n" });
  benches.push(bench);
  const pipe = join(bench.root, "pipe");
  execFileSync("mkfifo", [pipe]);
  const writer = spawn("sh", ["-c", `echo 'probe: { value: 7 }' > '${pipe}'`], { stdio: "ignore" });
  const written = new Promise((resolve) => writer.once("close", resolve));
  await bench.launch({ config: [pipe] }).load([settingsUnit, knownSettings, [Probe]]);
  const settings = bench.ctx.use(Settings);
  await written;
  expect(settings.get(Probe)).toBe(7);
  const changed = nextChange(settings);
  await bench.write("home/config.yml", "steeringMode: all\n");
  expect(await changed).toEqual(["steeringMode"]);
  expect(settings.get(Probe)).toBe(7);
  expect(settings.origin("probe.value")).toEqual({ layer: "overlay", file: pipe });
});
