// Opens and closes the shell service several times and prints what is left: descriptors before and after, children, temporary files.
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import bash from "../../../builtin-tools/bash.ts";
import rpcBash from "../../../extensions/shell/bash.ts";
import { type Bench, bench } from "../../builtin-tools/_support.ts";

const descriptors = () => readdirSync("/proc/self/fd").length;
const children = () =>
  execFileSync("ps", ["-o", "args=", "--ppid", String(process.pid)], { encoding: "utf8" })
    .split("\n")
    // Of the loader, and this very look.
    .filter((line) => line !== "" && !/esbuild|^ps /.test(line));
const temporary = () => readdirSync(tmpdir()).filter((name) => /^mortise-(shell|artifacts)-/.test(name));

async function round(work: (b: Bench) => Promise<unknown>): Promise<void> {
  const b = bench({ mode: "rpc" });
  await work(b);
  await b.close();
}

/** The ends of streams come a moment after their closing. */
async function settled(look: () => boolean): Promise<void> {
  for (let tries = 0; tries < 200 && !look(); tries++) await delay(20);
}

await round(async (b) => {
  await b.call(bash, { command: "true" });
  await rpcBash.run(b.ctx, { command: "true" });
});
await settled(() => children().length === 0);
await delay(100);
const before = descriptors();
for (let count = 0; count < 5; count++) {
  await round(async (b) => {
    await b.call(bash, { command: "sleep 907.7 & seq 1 3000" });
    await b.call(bash, { command: "true" });
    await rpcBash.run(b.ctx, { command: "setsid sleep 907.7 >/dev/null 2>&1 & true" });
    await rpcBash.run(b.ctx, { command: "true" });
  });
}
await settled(() => descriptors() <= before && children().length === 0);
console.log(JSON.stringify({ descriptors: [before, descriptors()], children: children(), files: temporary() }));
