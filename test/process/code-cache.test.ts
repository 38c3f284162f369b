// The bundle without its code cache, with one of its own making, and with one that does not fit (docs/decisions/code-cache.md).
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync, watch, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { BIN, ROOT, startProcess } from "../support/process.ts";

const copies: string[] = [];
afterAll(() => {
  for (const folder of copies) rmSync(folder, { recursive: true, force: true });
});

/** An installation in another place. */
function installed(): { main: string; chunks: string; cache: string } {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "mortise-installed-")));
  copies.push(folder);
  cpSync(dirname(BIN), join(folder, "dist"), { recursive: true });
  cpSync(join(ROOT, "package.json"), join(folder, "package.json"));
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  const chunks = join(folder, "dist/chunks");
  return { main: join(folder, "dist/main.js"), chunks, cache: join(chunks, cacheName(chunks)) };
}

function cacheName(chunks: string): string {
  const [name] = readdirSync(chunks).filter((each) => each.startsWith("cache-"));
  if (name === undefined) throw new Error(`No code cache in ${chunks}: the build makes one`);
  return name;
}

async function turn(main: string): Promise<void> {
  const daemon = startProcess({ command: [process.execPath, main] });
  try {
    await daemon.request("get_state");
    daemon.send({ type: "prompt", message: "hello" });
    await daemon.next("agent_end");
    expect(await daemon.end()).toBe(0);
    expect(daemon.stderr()).toBe("");
  } finally {
    await daemon.dispose();
  }
}

test("the build's cache fits where the installation was moved to", async () => {
  const { main, chunks, cache } = installed();
  const names = readdirSync(cache).map((file) => file.replace(/\.cache$/, ""));
  expect(names.length).toBeGreaterThan(5);
  // In a process without flags: those of the test runner's would have V8 reject them.
  const look = `
    const { readFileSync } = require("node:fs");
    const [chunks, cache, ...names] = process.argv.slice(1);
    const fits = (name) => !new (require("node:vm").Script)(readFileSync(chunks + "/" + name + ".code", "utf8"), {
      filename: "mortise/" + name + ".js", cachedData: readFileSync(cache + "/" + name + ".cache"),
    }).cachedDataRejected;
    console.log(JSON.stringify(names.filter((name) => !fits(name))));
  `;
  const rejected = execFileSync(process.execPath, ["-e", look, chunks, cache, ...names], { encoding: "utf8" });
  expect(JSON.parse(rejected)).toEqual([]);
  await turn(main);
});

test("without a cache all works, and one is made for the next start", async () => {
  const { main, chunks, cache } = installed();
  rmSync(cache, { recursive: true });
  const daemon = startProcess({ command: [process.execPath, main] });
  try {
    await daemon.request("get_state");
    await new Promise<void>((resolve) => {
      // Chunks that are loaded later get theirs later.
      const complete = () => existsSync(cache) && readdirSync(cache).filter((name) => name.endsWith(".cache")).length > 5;
      const watchers = [watch(chunks, () => look())];
      function look(): void {
        if (existsSync(cache) && watchers.length === 1) watchers.push(watch(cache, () => look()));
        if (!complete()) return;
        for (const watcher of watchers) watcher.close();
        resolve();
      }
      look();
    });
    expect(await daemon.end()).toBe(0);
  } finally {
    await daemon.dispose();
  }
  await turn(main);
});

test("a process whose flags were changed leaves no cache that others cannot use", async () => {
  const { main, chunks, cache } = installed();
  rmSync(cache, { recursive: true });
  const flags = 'import { setFlagsFromString } from "node:v8"; setFlagsFromString("--expose-gc"); export default [];';
  const daemon = startProcess({ command: [process.execPath, main], files: { "extensions/flags.mjs": flags } });
  try {
    await daemon.request("get_state");
    // Longer than it waits before it makes one.
    await delay(7_000);
    expect(readdirSync(chunks).filter((name) => name.startsWith("cache-"))).toEqual([]);
    expect(await daemon.end()).toBe(0);
  } finally {
    await daemon.dispose();
  }
});

test("a cache that does not fit is passed over", async () => {
  const { main, cache } = installed();
  for (const [index, name] of readdirSync(cache).entries())
    writeFileSync(join(cache, name), index % 2 === 0 ? "" : "no cache at all");
  await turn(main);
});
