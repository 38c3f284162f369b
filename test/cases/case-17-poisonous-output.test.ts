// public-bugs 17: nothing that a command prints or a model writes makes a frame, a session or a request invalid.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type CallResult, patience, type Rig, say, useRigs } from "../builtin-tools/_built.ts";
import { hasLoneSurrogate } from "../support/fake-provider.ts";
import { prompt, request, sessionFiles, sessionLines } from "./_support.ts";

const { open } = useRigs();
const KIB = 1024;

/** Every byte of stdout is UTF-8, every line strict JSON without halves of characters or raw control characters. */
function checkStdout(rig: Rig): void {
  const text = new TextDecoder("utf-8", { fatal: true }).decode(rig.bytes());
  for (const line of text.split("\n").filter((each) => each !== "")) {
    expect(line).not.toMatch(/[\x00-\x1f]/);
    expect(hasLoneSurrogate(JSON.parse(line)), line.slice(0, 500)).toBe(false);
  }
}

async function rssOf(rig: Rig): Promise<number> {
  const status = readFileSync(`/proc/${rig.daemon.child.pid}/status`, "utf8");
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) * KIB;
}

async function poison(rig: Rig): Promise<CallResult[]> {
  const results: CallResult[] = [];
  const limit = 50 * KIB;
  for (let n = limit - 3; n <= limit + 3; n++) {
    const command = `head -c ${n} /dev/zero | tr '\\0' a; for i in $(seq 2000); do printf '\\360\\237\\247\\252'; done`;
    const result = await rig.call("bash", { command });
    expect(result.isError).toBe(false);
    expect(result.text.replaceAll("🧪", "")).not.toMatch(/[\ud800-\udfff\ufffd]/);
    expect(result.text).toMatch(/left out …\]\n[\s\S]*🧪\n\n\[Full output: .*, also artifact:\/\/\d+\]$/);
    results.push(result);
  }
  for (const command of [
    "head -c 4096 /dev/urandom",
    "printf 'x\\0y\\n'",
    "printf '\\xb0\\xa1\\n'",
    "printf '\\xed\\xa0\\xbd\\n'",
    "printf '\\033[31mred\\033[0m\\033]0;title\\007\\033]8;;http://x\\007l\\033]8;;\\007\\rover\\bwrite\\n'",
  ]) {
    const result = await rig.call("bash", { command });
    expect(result.text, command).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/);
    expect(result.text.isWellFormed()).toBe(true);
    results.push(result);
  }
  expect(results.slice(-4).map((result) => result.text)).toEqual([
    "xy",
    "\ufffd\ufffd",
    expect.stringMatching(/^\ufffd+$/),
    "ovewrite",
  ]);
  return results;
}

it.each(["rpc", "rpc-ui"] as const)("output of any kind stays valid and bounded, with %s (case 17)", patience, async (mode) => {
  const rig = await open({ mode });
  await poison(rig);
  const before = await rssOf(rig);
  const started = performance.now();
  const lines = await rig.call("bash", { command: "seq 1 3000000" });
  const seconds = (performance.now() - started) / 1000;
  expect(lines.text).toContain("\n3000000\n");
  expect(lines.text).toMatch(/\[… \d+ lines, [\d.]+ MB left out …\]/);
  expect(lines.updates.length).toBeLessThanOrEqual(seconds * 11 + 2);
  for (const update of lines.updates) expect(JSON.stringify(update).length).toBeLessThan(120 * KIB);
  const line = await rig.call("bash", { command: "head -c 200000 /dev/zero | tr '\\0' x" });
  expect(Buffer.byteLength(line.text)).toBeLessThan(52 * KIB);
  expect(line.text).toMatch(/^x+\n\[… [\d.]+ KB left out …\]\nx+\n\n\[Full output: /);
  expect((await rssOf(rig)) - before).toBeLessThan(120 * KIB * KIB);
  checkStdout(rig);
});

it("half a character from the model, a restart and a resumed session (case 17)", patience, async () => {
  const rig = await open();
  await poison(rig);
  rig.fake.script(
    { toolCalls: [{ id: "toolu_half", name: "write", json: '{"path":"half.txt","content":"a\\ud83db"}' }] },
    { text: "Written" },
  );
  await prompt(rig.daemon, "write");
  expect(readFileSync(join(rig.daemon.cwd, "half.txt"), "utf8")).toBe("a\ufffdb");
  await say(rig, "next");
  checkStdout(rig);
  const [file] = sessionFiles(rig.daemon.home);
  const stored = sessionLines(String(file));
  expect(await rig.daemon.end()).toBe(0);

  const second = await open({ home: rig.daemon.home, fake: rig.fake });
  expect(await request(second.daemon, "switch_session", { sessionPath: String(file) })).toMatchObject({ success: true });
  await say(second, "again");
  expect(sessionLines(String(file)).length).toBeGreaterThan(stored.length);
  expect(second.lastRequest()).toContain("a\ufffdb");
  checkStdout(second);
});
