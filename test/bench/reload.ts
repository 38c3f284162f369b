// What extensions cost: starting with many, saving one, reloading one thousands of times. By itself: `npx tsx test/bench/reload.ts`,
// with MORTISE_SOAK=1 for the 5,000 reloads of the issue; within the table of `npm run bench`.
import { execFile } from "node:child_process";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { z } from "zod";
import { type Box, Host, type Line, makeBox, median, now, quantile } from "./_driver.ts";

export type Add = (what: string, figure: string, aim: string) => void;

const ms = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} ms`;
const sleep = (time: number) => new Promise((resolve) => setTimeout(resolve, time));
const OFFLINE = ["--model", "offline/echo", "--no-session"];
const root = fileURLToPath(new URL("../../", import.meta.url));

// ── Starting ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

const small = (index: number) => `import { defineTool, z } from "mortise/extension";
export default defineTool({ name: "tool_${index}", description: "Tool ${index}", params: z.object({ text: z.string() }), run: (_ctx, { text }) => text });
`;
const WARM_STARTS = 7;

/** Spawn to the answer of the first `get_state`, with none, 10, 50 and 200 extensions: transformed for the first time, and from the cache. */
export async function extensions(add: Add): Promise<void> {
  const boxes = [0, 10, 50, 200].map((count) => {
    const files = Object.fromEntries(Array.from({ length: count }, (_, index) => [`extensions/e${index}.ts`, small(index)]));
    return { count, box: makeBox(files), cold: 0, warm: [] as number[] };
  });
  const timeOf = async (box: Box) => {
    const host = new Host(box, OFFLINE);
    await host.ask("get_state");
    const took = now() - host.startedAt;
    await host.end();
    return took;
  };
  for (const each of boxes) each.cold = await timeOf(each.box);
  // In turn, so that what else the machine does hits all of them.
  for (let round = 0; round < WARM_STARTS; round++) for (const each of boxes) each.warm.push(await timeOf(each.box));
  const none = median(boxes[0]?.warm ?? []);
  for (const { count, box, cold, warm } of boxes) {
    const each = count === 0 ? "" : `: ${((median(warm) - none) / count).toFixed(2)} ms each`;
    add(
      `start with ${count} extensions`,
      `cold ${ms(cold)}, warm ${ms(median(warm))}${each}`,
      count === 50 ? "<= 2 ms each, warm" : "",
    );
    box.remove();
  }
}

// ── The extension that is reloaded ─────────────────────────────────────────────────────────────────────────────────────────

/** The same three files for every loader: an entry, a helper and an ESM helper, each of which knows the version. */
const filesOf = (version: number, ending: "ts" | "mjs") => ({
  [`index.${ending}`]: `import { defineExtension, defineHook, defineSlashCommand, defineTool, toolObserve, z } from "mortise/extension";
import { helper } from "./helper.${ending}";
import { version } from "./version.mjs";
const data = Array.from({ length: 20000 }, (_, index) => ({ index }));
const answer = () => [${version}, helper, version].join() + ":" + data.length;
export default defineExtension({
  name: "ver",
  contributes: [
    defineTool({ name: "ver", description: "Version", params: z.object({ text: z.string().optional() }), run: answer }),
    defineSlashCommand({ name: "ver", description: "Version", run: (ctx) => ctx.output("version " + answer()) }),
    defineHook(toolObserve, () => { void data.length; }),
  ],
  setup(scope) {
    setInterval(() => data.length, 1000);
    process.on("SIGUSR2", () => data.length);
    scope.own(() => data.length);
  },
});
`,
  [`helper.${ending}`]: `export const helper${ending === "ts" ? ": number" : ""} = ${version};\n`,
  "version.mjs": `export const version = ${version};\n`,
});
const unitFiles = (folder: string) =>
  Object.fromEntries(Object.entries(filesOf(0, "ts")).map(([name, text]) => [`${folder}/${name}`, text]));
const answerOf = (version: number) => `version ${version},${version},${version}:20000`;

/** Answers with what the daemon holds after a collection, and with the longest delay of its event loop since it was asked last. */
const PROBE = `import { readdirSync, readFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { defineExtension, defineSlashCommand } from "mortise/extension";
setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc");
const delay = monitorEventLoopDelay({ resolution: 1 });
const held = defineSlashCommand({ name: "held", description: "Held", run: async (ctx) => {
  for (let round = 0; round < 4; round++) { gc(); await new Promise((resolve) => setTimeout(resolve, 1)); }
  const resources = process.getActiveResourcesInfo();
  const timers = resources.filter((name) => name === "Timeout").length;
  const files = readdirSync("/proc/self/fd");
  const watches = (file) => { try { return readFileSync("/proc/self/fdinfo/" + file, "utf8").split("\\ninotify").length - 1; } catch { return 0; } };
  const watchers = files.reduce((sum, file) => sum + watches(file), 0);
  ctx.output("held " + JSON.stringify({ heap: process.memoryUsage().heapUsed, timers, watchers, listeners: process.listenerCount("SIGUSR2"), files: files.length }));
} });
const delayed = defineSlashCommand({ name: "delayed", description: "Delay", run: (ctx) => {
  ctx.output("delayed " + delay.max / 1e6);
  delay.reset();
} });
export default defineExtension({ name: "probe", contributes: [held, delayed], setup(scope) { delay.enable(); scope.own(() => delay.disable()); } });
`;

const Held = z.object({
  heap: z.number(),
  timers: z.number(),
  watchers: z.number(),
  listeners: z.number(),
  /** Open file descriptors. */
  files: z.number(),
});
type Held = z.infer<typeof Held>;
const Listing = z.object({
  data: z.object({ extensions: z.array(z.object({ name: z.string(), timings: z.record(z.string(), z.number()) })) }),
});

async function slash(host: Host, command: string): Promise<string> {
  const output = host.line('"command_output"');
  host.send({ type: "prompt", message: `/${command}` });
  return z.object({ text: z.string() }).parse(JSON.parse(await output)).text;
}

async function held(host: Host): Promise<Held> {
  // What retires is disposed a moment after its successor is live.
  await sleep(1000);
  return Held.parse(JSON.parse((await slash(host, "held")).slice("held ".length)));
}

const delayed = async (host: Host) => Number((await slash(host, "delayed")).slice("delayed ".length));

/** Evaluation, set-up and swap of the unit's last load. */
async function timings(host: Host): Promise<Record<string, number>> {
  const { extensions } = Listing.parse(await host.ask("get_extensions")).data;
  return extensions.find(({ name }) => name === "ver")?.timings ?? {};
}

async function begin(box: Box): Promise<Host> {
  const host = new Host(box, OFFLINE);
  await host.ask("get_state");
  // Watches are set a moment after the start.
  await sleep(1500);
  return host;
}

// ── Saving ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Milliseconds from the write to the first answer of the new version. */
async function save(host: Host, box: Box, version: number): Promise<number> {
  const began = now();
  box.write("extensions/ver/version.mjs", filesOf(version, "ts")["version.mjs"] ?? "");
  while (!(await slash(host, "ver")).includes(`,${version}:`)) await new Promise((resolve) => setImmediate(resolve));
  return now() - began;
}

const SAVES = 60;
const FIRST_RELOADS = 5;

/** Save → answer, its parts, and how long the event loop is held meanwhile; the first reload of a process counted by itself. */
export async function saves(add: Add): Promise<void> {
  const box = makeBox({ "extensions/probe.ts": PROBE, ...unitFiles("extensions/ver") });
  const first: { took: number[]; delay: number[] } = { took: [], delay: [] };
  let version = 0;
  for (let round = 0; round <= FIRST_RELOADS; round++) {
    const host = await begin(box);
    await delayed(host);
    const took = await save(host, box, ++version);
    await sleep(100);
    const delay = await delayed(host);
    await host.end();
    // The first start fills the cache.
    if (round > 0) {
      first.took.push(took);
      first.delay.push(delay);
    }
  }
  const host = await begin(box);
  const took: number[] = [];
  const parts: Record<string, number[]> = { evaluate: [], setup: [], swap: [] };
  const delays: number[] = [];
  await save(host, box, ++version);
  await delayed(host);
  for (let index = 0; index < SAVES; index++) {
    // Saves of a person are further apart than the 60 ms within which they count as one.
    await sleep(150);
    took.push(await save(host, box, ++version));
    delays.push(await delayed(host));
    const last = await timings(host);
    for (const [part, values] of Object.entries(parts)) values.push(last[part] ?? Number.NaN);
  }
  await host.end();
  box.remove();
  const part = (name: string) => `${median(parts[name] ?? []).toFixed(2)} ms`;
  add("save → new version answers", `${ms(median(took))} p50, ${ms(quantile(took, 0.99))} p99`, "<= 60 ms p50");
  add("… evaluate, set up, swap", `${part("evaluate")}, ${part("setup")}, ${part("swap")} p50`, "<= 15 ms together");
  add("… first reload of a process", `${ms(median(first.took))} p50, ${ms(Math.max(...first.took))} worst`, "");
  add("event-loop delay during a reload", `${ms(median(delays))} p50, ${ms(Math.max(...delays))} worst of ${SAVES}`, "<= 20 ms");
  add(
    "… the first of a process",
    `${ms(median(first.delay))} p50, ${ms(Math.max(...first.delay))} worst of ${FIRST_RELOADS}`,
    "<= 20 ms",
  );
}

// ── Thousands of reloads ───────────────────────────────────────────────────────────────────────────────────────────────────

const Kept = z.object({
  before: Held,
  after: Held,
  p50: z.number(),
  /** Reloads after which all three files were the new version's. */
  fresh: z.number(),
  /** The last answer: which version of the entry, the helper and the ESM helper ran. */
  seen: z.string(),
});
type Kept = z.infer<typeof Kept>;

/** No version is as high. */
const MARK = 987_654_321;

async function mortise(count: number): Promise<Kept> {
  const box = makeBox({ "extensions/probe.ts": PROBE, ...unitFiles("extensions/ver") });
  const host = await begin(box);
  const reload = async (version: number): Promise<Line> => {
    for (const [name, text] of Object.entries(filesOf(version, "ts"))) box.write(`extensions/ver/${name}`, text);
    return host.ask("reload_extensions", { extensionId: "ver" });
  };
  let version = 0;
  // Caches and compiled code reach their size.
  while (version < 200) await reload(++version);
  const before = await held(host);
  const times: number[] = [];
  let fresh = 0;
  let seen = "";
  for (let index = 0; index < count; index++) {
    const began = now();
    await reload(++version);
    times.push(now() - began);
    seen = await slash(host, "ver");
    if (seen === answerOf(version)) fresh++;
  }
  const after = await held(host);
  await host.end();
  box.remove();
  return { before, after, p50: median(times), fresh, seen };
}

/** The same files through the loaders others build on; theirs has no daemon around it. */
async function peer(kind: "jiti" | "node", count: number): Promise<Kept> {
  const box = makeBox({ "unit/node_modules/.keep": "" });
  symlinkSync(root, join(box.home, "unit/node_modules/mortise"));
  const script = fileURLToPath(new URL("_loaders.mjs", import.meta.url));
  try {
    // The text of a version is made here and there alike: a mark stands for its number.
    const files = Object.entries(filesOf(MARK, kind === "jiti" ? "ts" : "mjs"));
    const given = JSON.stringify({ kind, folder: join(box.home, "unit"), count, mark: String(MARK), files });
    const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", script, given]);
    return Kept.parse(JSON.parse(stdout));
  } finally {
    box.remove();
  }
}

/** Node's own loader keeps nearly a megabyte each time, so that more would end it. */
const PEER_RELOADS = 1000;

/** Heap, timers, watchers and files that `count` reloads of three files leave, beside the loaders of others. */
export async function kept(add: Add, count = process.env["MORTISE_SOAK"] === undefined ? 1000 : 5000): Promise<void> {
  const fewer = Math.min(count, PEER_RELOADS);
  const loaders: [string, number, () => Promise<Kept>][] = [
    ["mortise", count, () => mortise(count)],
    ["jiti 2.7, a new instance each", fewer, () => peer("jiti", fewer)],
    ["Node's `import(file?v=n)`", fewer, () => peer("node", fewer)],
  ];
  for (const [who, times, run] of loaders) {
    const { before, after, p50, fresh, seen } = await run();
    const heap = `${((after.heap - before.heap) / times / 1024).toFixed(1)} kB each`;
    const moved = (["timers", "watchers", "listeners", "files"] as const).map(
      (what) => `${what} ${before[what]} → ${after[what]}`,
    );
    const edits = fresh === times ? "every edit seen" : `${times - fresh} stale: "${seen}" at the end`;
    const what = `${times.toLocaleString("en")} reloads of three files, ${who}`;
    add(what, `${heap}, ${moved.join(", ")}; ${ms(p50)} p50; ${edits}`, who === "mortise" ? "<= 10 kB, flat" : "");
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const wanted = process.argv.slice(2);
  const add: Add = (what, figure, aim) => console.log(`| ${what} | ${figure} | ${aim} |`);
  for (const [name, run] of Object.entries({ extensions, saves, kept }))
    if (wanted.length === 0 || wanted.includes(name)) await run(add);
}
