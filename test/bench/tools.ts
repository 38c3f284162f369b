// grep, find and ls on a large tree against ripgrep's own command line in the same run, and the longest time the event loop stood
// still: `npx tsx test/bench/tools.ts`. 20,000 files, 200,000 with MORTISE_SOAK; MORTISE_BENCH_FILES says otherwise.
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { rgPath } from "@vscode/ripgrep";
import find from "../../builtin-tools/find.ts";
import grep from "../../builtin-tools/grep.ts";
import ls from "../../builtin-tools/ls.ts";
import { bench } from "../builtin-tools/_support.ts";

const FILES = Number(process.env["MORTISE_BENCH_FILES"] ?? (process.env["MORTISE_SOAK"] ? 200_000 : 20_000));
const ROUNDS = 5;
/**
 * ripgrep with the same rules for hidden and ignored files and the same order, which makes it work on one thread. Its find gets the
 * pattern as a glob, which lists files only; ours reads all names, because directories match as well.
 */
const RULES = ["--no-config", "--hidden", "--no-require-git", "--sort=path", "--glob=!**/.git"];

const b = bench();
const median = (values: number[]) => [...values].sort((x, y) => x - y)[Math.floor(values.length / 2)] ?? 0;

function makeTree(): void {
  const perFolder = 100;
  for (let folder = 0; folder < FILES / perFolder; folder++) {
    const path = join(b.cwd, `d${folder % 20}`, `e${Math.floor(folder / 20)}`);
    mkdirSync(path, { recursive: true });
    for (let index = 0; index < perFolder; index++) {
      const rare = folder % 500 === 7 && index === 50 ? "needle in the hay\n" : "";
      const name = rare === "" ? `file${index}.${index % 3 === 0 ? "ts" : "txt"}` : "rare.needle";
      writeFileSync(join(path, name), `const value${index} = ${folder};\nreturn value${index};\n${rare}`);
    }
  }
  const flat = join(b.cwd, "flat");
  mkdirSync(flat);
  for (let index = 0; index < FILES / 10; index++) writeFileSync(join(flat, `n${index}`), "");
}

function ripgrep(args: readonly string[]): number {
  const started = performance.now();
  try {
    execFileSync(rgPath, args, { cwd: b.cwd, stdio: ["ignore", "pipe", "ignore"], maxBuffer: 1 << 30 });
  } catch {
    // 1: nothing found.
  }
  return performance.now() - started;
}

async function compare(what: string, run: () => Promise<unknown>, args: readonly string[]): Promise<void> {
  const ours: number[] = [];
  const theirs: number[] = [];
  let blocked = 0;
  for (let round = 0; round <= ROUNDS; round++) {
    const raw = ripgrep(args);
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    const started = performance.now();
    await run();
    const took = performance.now() - started;
    delay.disable();
    // The first round warms the caches of the system.
    if (round === 0) continue;
    ours.push(took);
    theirs.push(raw);
    blocked = Math.max(blocked, delay.max / 1e6);
  }
  const ratio = median(ours) / median(theirs);
  console.log(
    `| ${what} | ${median(ours).toFixed(0)} ms | ${median(theirs).toFixed(0)} ms | ${ratio.toFixed(2)} | ${blocked.toFixed(0)} ms |`,
  );
}

try {
  makeTree();
  console.log(`${FILES} files; aims: 1.3 x, event loop 50 ms\n`);
  console.log("| what | tool | ripgrep | ratio | loop blocked at most |\n| --- | --- | --- | --- | --- |");
  const everywhere = ["const value1 ", "."] as const;
  await compare("grep, rare", () => b.call(grep, { pattern: "needle in" }), [...RULES, "-n", "-e", "needle in", "."]);
  await compare("grep, nothing", () => b.call(grep, { pattern: "nowhere" }), [...RULES, "-n", "-e", "nowhere", "."]);
  await compare("grep, one in a hundred, limit 2000", () => b.call(grep, { pattern: everywhere[0], limit: 2000 }), [
    ...RULES,
    "-n",
    "-e",
    ...everywhere,
  ]);
  await compare("find, rare", () => b.call(find, { pattern: "*.needle" }), [...RULES, "--files", "--glob=*.needle", "."]);
  await compare("find, all, limit 10000", () => b.call(find, { pattern: "**", limit: 10_000 }), [...RULES, "--files", "."]);
  await compare("ls, large folder", () => b.call(ls, { path: "flat", limit: 10_000 }), [
    ...RULES,
    "--files",
    "--max-depth=1",
    "flat",
  ]);
} finally {
  await b.close();
}
