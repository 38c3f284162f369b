// One of the loaders others build on, reloading an extension again and again: `node --expose-gc _loaders.mjs JSON`, told what to do
// by reload.ts. Timers and listeners are taken away by this script after every reload, which no loader of theirs does; what is
// left is what the loader itself keeps. Prints one line of JSON.
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createJiti } from "jiti";

const { kind, folder, count, mark, files } = JSON.parse(process.argv[2]);
const entry = join(folder, files[0][0]);
const undos = [];
const { setInterval: every } = globalThis;
globalThis.setInterval = (...args) => {
  const timer = every(...args);
  undos.push(() => clearInterval(timer));
  return timer;
};
const { on } = process;
process.on = function add(event, listener) {
  undos.push(() => process.off(event, listener));
  return on.call(this, event, listener);
};

// As people use them: a new jiti without its module cache each time; an address that Node has not seen.
const load =
  kind === "jiti"
    ? () => createJiti(import.meta.url, { moduleCache: false }).import(entry, { default: true })
    : (version) => import(`${entry}?v=${version}`).then((module) => module.default);

async function reload(version) {
  for (const [name, text] of files) writeFileSync(join(folder, name), text.replaceAll(mark, version));
  const extension = await load(version);
  for (const undo of undos.splice(0)) undo();
  extension.setup({ own() {} });
  return extension;
}

async function counts() {
  await sleep(300);
  for (let round = 0; round < 4; round++) {
    globalThis.gc();
    await sleep(1);
  }
  const timers = process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const listeners = process.listenerCount("SIGUSR2");
  return { heap: process.memoryUsage().heapUsed, timers, watchers: 0, listeners, files: readdirSync("/proc/self/fd").length };
}

const WARM_UP = 50;
for (let version = 1; version <= WARM_UP; version++) await reload(version);
const before = await counts();
const times = [];
let fresh = 0;
let seen = "";
for (let version = WARM_UP + 1; version <= WARM_UP + count; version++) {
  const began = performance.now();
  const extension = await reload(version);
  times.push(performance.now() - began);
  seen = extension.contributes[0].run();
  if (seen === `${version},${version},${version}:20000`) fresh++;
}
const after = await counts();
times.sort((a, b) => a - b);
process.stdout.write(`${JSON.stringify({ before, after, p50: times[times.length >> 1], fresh, seen })}\n`, () => process.exit(0));
