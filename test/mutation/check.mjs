// Takes guards out, one at a time, in a copy of the checkout, and shows that the test of each item notices: `node test/mutation/check.mjs`,
// with items as arguments for some of them only.
// A guard whose text is not found any more, whose test fails with it, or whose test passes without it, ends the check with status 1.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** @type {{ item: string, guard: string, file: string, from: string, to: string, test: string, name?: string }[]} */
const GUARDS = [
  {
    item: "15",
    guard: "images of queued messages are kept",
    file: "core/agent/intake.ts",
    from: "return [...blocks, ...images];",
    to: "return [...blocks];",
    test: "test/anthropic/conversation.test.ts",
    name: "item 15",
  },
  {
    item: "16",
    guard: "a handoff is refused while a turn runs",
    file: "extensions/handoff/handoff.ts",
    from: 'if (conversation.isStreaming) throw new CommandError("Cannot hand off while a response is in progress", "busy");',
    to: "",
    test: "test/extensions/handoff/handoff.test.ts",
    name: "item 16",
  },
  {
    item: "18",
    guard: "missing usage counts as none",
    file: "core/session/convert.ts",
    from: 'usage: hasFullUsage(raw["usage"]) ? message.usage : usageOf(raw["usage"]),',
    to: "",
    test: "test/items/items-17-to-33-agent.test.ts",
    name: "item 18",
  },
  {
    item: "19",
    guard: "a model that is being discovered is waited for",
    file: "extensions/models/set-model.ts",
    from: "return asked.then(() => {",
    to: "return Promise.resolve().then(() => {",
    test: "test/extensions/models/commands.test.ts",
    name: "item 19",
  },
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
    item: "21",
    guard: "queues are not read once the run is aborted",
    file: "core/agent/loop.ts",
    from: 'if (status !== "completed" || signal.aborted) return [];',
    to: "",
    test: "test/core/agent/queue.test.ts",
    name: "items 21 and 23",
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
    item: "23",
    guard: "an abort reaches the run",
    file: "core/agent/work.ts",
    from: "this.controller.abort(abortError(reason));",
    to: "void [abortError, reason];",
    test: "test/items/items-17-to-33-agent.test.ts",
    name: "item 23",
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
    item: "29",
    guard: "a run goes on after the wait of a retry",
    file: "core/agent/loop.ts",
    from: '  if (!again) return { kind: "end", status: "error", errorMessage: text };',
    to: '  if (!again || again) return { kind: "end", status: "error", errorMessage: text };',
    test: "test/core/agent/failures.test.ts",
    name: "item 29",
  },
  {
    item: "30",
    guard: "only an overflow makes room",
    file: "core/agent/loop.ts",
    from: 'error.kind === "overflow"',
    to: 'error.kind !== "fatal"',
    test: "test/extensions/compaction/automatic.test.ts",
    name: "item 30",
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
    item: "34",
    guard: "the wait of a retry can be given up",
    file: "core/agent/work.ts",
    from: "this.#giveUp = giveUp;",
    to: "",
    test: "test/cases/case-09-retry-wait.test.ts",
    name: "A: abort_retry",
  },
  {
    item: "35",
    guard: "counts from before a compaction are ignored",
    file: "core/session/tokens.ts",
    from: '} else if (message.role === "assistant" && message.timestamp > this.#compactedAt) {',
    to: '} else if (message.role === "assistant") {',
    test: "test/extensions/compaction/compact.test.ts",
    name: "item 35",
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
    item: "37",
    guard: "no cut parts a call from its result",
    file: "extensions/compaction/_cut.ts",
    from: 'if (index > held && item.message.role !== "toolResult") cuts.push(index);',
    to: "cuts.push(index);",
    test: "test/extensions/compaction/property.test.ts",
    name: "wherever they are made",
  },
  {
    item: "38",
    guard: "what came during a compaction is delivered afterwards",
    file: "core/agent/conversation.ts",
    from: "if (!this.#intake.release((raw, options) => this.submit(raw, options), this.isStreaming)) this.#wake();",
    to: "",
    test: "test/extensions/compaction/compact.test.ts",
    name: "items 38",
  },
  {
    item: "39",
    guard: "a summariser that fails is told, not thrown",
    file: "extensions/compaction/_auto.ts",
    from: "    failure = error;\n",
    to: "    throw error;\n",
    test: "test/extensions/compaction/automatic.test.ts",
    name: "tells of a summariser that fails",
  },
  {
    item: "40",
    guard: "an attempt that did not help is not made again while nothing changes",
    file: "extensions/compaction/_auto.ts",
    from: "if (blocked === undefined || blocked.model !== nameOf(model)) return false;",
    to: "if (blocked !== undefined || model !== undefined) return false;",
    test: "test/extensions/compaction/automatic.test.ts",
  },
  {
    item: "41",
    guard: "a compaction by hand ends the turn first",
    file: "extensions/compaction/compact.ts",
    from: 'conversation.abort("Interrupted by compaction", { resume: false, park: false })',
    to: "undefined",
    test: "test/extensions/compaction/compact.test.ts",
    name: "items 38 and",
  },
  {
    item: "42",
    guard: "a file without a session header is refused",
    file: "core/session/read.ts",
    from: "if (this.header !== undefined) return this.header;",
    to: 'return this.header ?? { type: "session", version: 3, id: "x", timestamp: "", cwd: "/" };',
    test: "test/items/items-42-to-50-sessions.test.ts",
    name: "item 42",
  },
  {
    item: "43",
    guard: "a branch goes into a file of its own",
    file: "core/session/log.ts",
    from: "cwd: this.cwd, sessionsDir: undefined, parentSession: this.file ?? this.id, now: this.#now, id, file: beside",
    to: "cwd: this.cwd, sessionsDir: undefined, parentSession: this.file ?? this.id, now: this.#now, id, file: this.file",
    test: "test/items/items-42-to-50-sessions.test.ts",
    name: "item 43",
  },
  {
    item: "44",
    guard: "what is set already is not recorded",
    file: "core/session/log.ts",
    from: 'if ((this.thinkingLevel ?? "off") !== thinkingLevel) this.append',
    to: "this.append",
    test: "test/core/session/log.test.ts",
    name: "item 44",
  },
  {
    item: "46",
    guard: "malformed entries are refused before anything is kept",
    file: "core/session/log.ts",
    from: "    checkDraft(draft);\n",
    to: "",
    test: "test/core/session/log.test.ts",
    name: "item 46",
  },
  {
    item: "47",
    guard: "no file without a message",
    file: "core/session/log.ts",
    from: "if (line !== undefined && this.#writer?.wanted) this.#writer.append(line);",
    to: "if (line !== undefined) this.#writer?.append(line);",
    test: "test/items/items-42-to-50-sessions.test.ts",
    name: "item 47",
  },
  {
    item: "48",
    guard: "what was lost shows in the exit code",
    file: "core/process.ts",
    from: "process.exit(code === 0 && daemon.conversations.incomplete.length > 0 ? 1 : code);",
    to: "process.exit(code);",
    test: "test/items/items-42-to-50-sessions.test.ts",
    name: "item 48",
  },
  {
    item: "49",
    guard: "a broken file is not written over",
    file: "extensions/settings/_file.ts",
    from: "} catch (error) {\n      throw new CommandError(",
    to: '} catch (error) {\n      document = await parse(file, "");\n      new CommandError(',
    test: "test/extensions/settings/settings.test.ts",
    name: "item 49",
  },
  {
    item: "case 27",
    guard: "results of tools are masked",
    file: "extensions/models/models.ts",
    from: "contributes: [...Object.values(settings), maskResults, maskProgress],",
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
    if (file !== "" && file !== "node_modules" && existsSync(join(root, file)))
      cpSync(join(root, file), join(copy, file), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  const wanted = process.argv.slice(2);
  for (const guard of GUARDS) if (wanted.length === 0 || wanted.includes(guard.item)) rows.push(check(guard));
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
  const whole = run(test, name);
  if (whole.failed !== undefined || whole.passed === undefined)
    return told({ item, guard, outcome: `ITS TEST FAILS ANYHOW (${test})` });
  writeFileSync(
    path,
    text.replace(from, () => to),
  );
  try {
    const { failed } = run(test, name);
    const outcome = failed === undefined ? `ITS TEST DOES NOT FAIL (${test})` : `its test fails (${test}: ${failed})`;
    return told({ item, guard, outcome });
  } finally {
    writeFileSync(path, text);
  }
}

/** How many tests passed and failed, as text; undefined for none. */
function run(test, name) {
  const args = ["vitest", "run", test, "--testTimeout=20000", ...(name === undefined ? [] : ["-t", name])];
  const output = strip(spawnSync("npx", args, { cwd: copy, encoding: "utf8", timeout: 180_000 }).stdout ?? "");
  const count = (word) => new RegExp(`Tests\\s+.*?(\\d+) ${word}`).exec(output)?.[1];
  return { passed: count("passed"), failed: count("failed") };
}

function told(row) {
  process.stderr.write(`${row.item}: ${row.outcome}\n`);
  return row;
}

function strip(text) {
  return text.replace(/\u001b\[[0-9;]*m/g, "");
}
