// Takes guards out, one at a time, in a copy of the checkout, and shows that the test of each item notices: `node test/mutation/check.mjs`.
// A guard whose text is not found any more, or whose test passes without it, ends the check with status 1.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** @type {{ item: string, guard: string, file: string, from: string, to: string, test: string, name?: string }[]} */
const GUARDS = [
  {
    item: "20",
    guard: "only calls that have not started are skipped",
    file: "core/agent/queue.ts",
    from: 'return this.interruptMode === "immediate" && this.steering.length > 0;',
    to: "return false;",
    test: "test/core/agent/queue.test.ts",
    name: "items 20 and 22",
  },
  {
    item: "22",
    guard: "looking for steering consumes nothing",
    file: "core/agent/queue.ts",
    from: 'return this.interruptMode === "immediate" && this.steering.length > 0;',
    to: 'return this.interruptMode === "immediate" && this.takeSteering().length > 0;',
    test: "test/core/agent/queue.test.ts",
    name: "items 20 and 22",
  },
  {
    item: "24",
    guard: "a call without result gets a placeholder",
    file: "core/session/repair.ts",
    from: 'if (answer.role === "toolResult") answers.push(',
    to: 'if (result !== undefined && answer.role === "toolResult") answers.push(',
    test: "test/core/session/repair.test.ts",
  },
  {
    item: "25",
    guard: "an empty result says so",
    file: "core/session/repair.ts",
    from: 'blocks.length > 0 ? blocks : [{ type: "text", text: EMPTY_RESULT_TEXT }]',
    to: "blocks",
    test: "test/core/session/repair.test.ts",
  },
  {
    item: "26",
    guard: "calls are run whatever the stop reason says",
    file: "core/agent/loop.ts",
    from: 'const calls = answer.message.content.filter((block) => block.type === "toolCall");',
    to: 'const calls = answer.message.content.filter((block) => block.type === "toolCall" && answer.message.stopReason === "toolUse");',
    test: "test/core/agent/tools.test.ts",
    name: "item 26",
  },
  {
    item: "27",
    guard: "reasoning that fills the output limit ends after a bounded number",
    file: "core/agent/loop.ts",
    from: "const MAX_THINKING_ONLY = 3;",
    to: "const MAX_THINKING_ONLY = 40;",
    test: "test/core/agent/failures.test.ts",
    name: "item 27",
  },
  {
    item: "28",
    guard: "an exclusive tool waits for those before it",
    file: "core/agent/tool-calls.ts",
    from: "if (exclusive) await Promise.all(running);",
    to: "",
    test: "test/core/agent/tools.test.ts",
    name: "item 28",
  },
  {
    item: "31",
    guard: "a wait above the cap fails at once",
    file: "extensions/retry/_policy.ts",
    from: "if (limits.maxDelayMs > 0 && hint > limits.maxDelayMs) {",
    to: "if (hint < 0) {",
    test: "test/items/items-17-to-33-agent.test.ts",
    name: "item 31",
  },
  {
    item: "32",
    guard: "an answer with a complete call is never retried",
    file: "core/agent/loop.ts",
    from: "await retry(run, answer, error, calls.length === 0, counts)",
    to: "await retry(run, answer, error, true, counts)",
    test: "test/core/agent/failures.test.ts",
    name: "item 32",
  },
  {
    item: "33",
    guard: "a chain that is still open at the end of the run is ended",
    file: "extensions/retry/hooks.ts",
    from: 'endChain(ctx, false, status === "completed" ? text : "Retry cancelled");',
    to: "void [endChain, status, text];",
    test: "test/cases/case-09-retry-wait.test.ts",
    name: "A: abort_retry",
  },
  {
    item: "36",
    guard: "room is made a bounded number of times",
    file: "core/agent/loop.ts",
    from: "const MAX_OVERFLOWS = 3;",
    to: "const MAX_OVERFLOWS = 30;",
    test: "test/core/agent/failures.test.ts",
    name: "item 36",
  },
  {
    item: "27 (secrets)",
    guard: "results of tools are masked",
    file: "extensions/models/models.ts",
    from: "contributes: [...Object.values(settings), maskResults],",
    to: "contributes: [...Object.values(settings)],",
    test: "test/cases/case-27-secrets.test.ts",
  },
];

const copy = realpathSync(mkdtempSync(join(tmpdir(), "mortise-mutation-")));
const rows = [];
try {
  const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "-z"], {
    cwd: root,
    encoding: "utf8",
  });
  for (const file of files.split("\0")) {
    if (file !== "" && existsSync(join(root, file))) cpSync(join(root, file), join(copy, file), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  for (const guard of GUARDS) rows.push(check(guard));
} finally {
  rmSync(copy, { recursive: true, force: true });
}
console.log("| item | guard | without it |\n|---|---|---|");
for (const { item, guard, outcome } of rows) console.log(`| ${item} | ${guard} | ${outcome} |`);
if (rows.some(({ outcome }) => !outcome.startsWith("its test fails"))) process.exitCode = 1;

function check({ item, guard, file, from, to, test, name }) {
  const path = join(copy, file);
  const text = readFileSync(path, "utf8");
  if (!text.includes(from)) return { item, guard, outcome: `NOT FOUND in ${file}` };
  writeFileSync(path, text.replace(from, to));
  try {
    const args = ["vitest", "run", test, "--testTimeout=20000", ...(name === undefined ? [] : ["-t", name])];
    const run = spawnSync("npx", args, { cwd: copy, encoding: "utf8", timeout: 180_000 });
    const failed = /Tests\s+.*?(\d+) failed/.exec(strip(run.stdout))?.[1];
    const outcome = failed === undefined ? `ITS TEST DOES NOT FAIL (${test})` : `its test fails (${test}: ${failed})`;
    process.stderr.write(`${item}: ${outcome}\n`);
    return { item, guard, outcome };
  } finally {
    writeFileSync(path, text);
  }
}

function strip(text) {
  return text.replace(/\u001b\[[0-9;]*m/g, "");
}
