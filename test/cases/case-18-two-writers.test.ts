// Case 18: one writer per session file, whoever else wants it and whatever became of the owner.
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { ask, PATIENCE_MS, prompt, request, SOAK, sessionFiles, sessionLines, useProcesses, wait } from "./_support.ts";

const use = useProcesses();
const PROMPTS = SOAK ? 50 : 6;
const LARGE = 300_000;

async function owner() {
  const service = await use.service();
  service.otherwise({ text: "y".repeat(LARGE) });
  const a = use.start({ ...service.daemon, files: { "config.yml": "compaction:\n  enabled: false\n" } });
  await prompt(a, "first");
  const [file = ""] = sessionFiles(a.home);
  const other = () => use.start({ ...service.daemon, files: { "config.yml": "compaction:\n  enabled: false\n" } });
  return { service, a, file, other };
}

describe("case 18", () => {
  it("1, 2, 5: a second daemon is refused with the owner's pid, by any path; both go on, and no line is lost", {
    timeout: 2 * PATIENCE_MS,
  }, async () => {
    const { a, file, other } = await owner();
    const b = other();
    const refused = await request(b, "switch_session", { sessionPath: file });
    expect(refused).toMatchObject({ success: false, code: "locked", error: expect.stringContaining(String(a.child.pid)) });
    symlinkSync(dirname(file), join(b.home, "link"));
    const throughLink = await request(b, "switch_session", {
      sessionPath: join(b.home, "link", file.slice(dirname(file).length + 1)),
    });
    expect(throughLink).toMatchObject({ success: false, code: "locked" });
    for (let index = 0; index < PROMPTS; index++) await Promise.all([prompt(a, `a${index}`), prompt(b, `b${index}`)]);
    for (const [path, letter] of [
      [file, "a"],
      [sessionFiles(b.home)[0] ?? "", "b"],
    ] as const) {
      const texts = sessionLines(path).map((line) => JSON.stringify(line));
      for (let index = 0; index < PROMPTS; index++)
        expect(texts.filter((text) => text.includes(`"${letter}${index}"`))).toHaveLength(1);
      expect(texts.filter((text) => text.length > LARGE).length).toBeGreaterThanOrEqual(PROMPTS);
    }
    expect((await ask(b, "get_state"))["sessionFile"]).not.toBe(file);
  });

  it("3: after kill -9 the next one has the session at once, with everything that was acknowledged", {
    timeout: PATIENCE_MS,
  }, async () => {
    const { a, file, other } = await owner();
    const acknowledged = sessionLines(file);
    a.child.kill("SIGKILL");
    await a.exited;
    const c = other();
    await wait(c, "ready");
    const began = performance.now();
    expect(await request(c, "switch_session", { sessionPath: file })).toMatchObject({ success: true });
    expect(performance.now() - began).toBeLessThan(5000);
    await prompt(c, "after");
    const lines = sessionLines(file);
    expect(lines.slice(0, acknowledged.length)).toEqual(acknowledged);
  });

  it("3: a lock of a pid that another program has now blocks nobody", { timeout: PATIENCE_MS }, async () => {
    const { a, file, other } = await owner();
    const lock = readdirSync(dirname(file)).find((name) => name.endsWith(".lock"));
    expect(lock).toBeDefined();
    const path = join(dirname(file), lock ?? "");
    const text = readFileSync(path, "utf8");
    a.child.kill("SIGKILL");
    await a.exited;
    // The pid lives, but it began at another time than the owner: this test's own process.
    writeFileSync(path, text.replace(`${a.child.pid}`, `${process.pid}`));
    const c = other();
    expect(await request(c, "switch_session", { sessionPath: file })).toMatchObject({ success: true });
  });

  it("4: a name set elsewhere and a compaction here take no line from each other", { timeout: PATIENCE_MS }, async () => {
    const service = await use.service();
    service.otherwise({ text: `said ${"z".repeat(2000)}` });
    const options = { ...service.daemon, files: { "config.yml": "compaction:\n  keepRecentTokens: 40\n" } };
    const a = use.start(options);
    for (const text of ["one", "two", "three"]) await prompt(a, text);
    const [file = ""] = sessionFiles(a.home);
    const before = readFileSync(file, "utf8");
    const b = use.start(options);
    await request(b, "switch_session", { sessionPath: file });
    service.script({ text: "## Goal\nSummed up" });
    const [compacted] = await Promise.all([request(a, "compact"), request(b, "set_session_name", { name: "from B" })]);
    expect(compacted).toMatchObject({ success: true });
    await ask(a, "set_session_name", { name: "from A" });
    const after = readFileSync(file, "utf8");
    expect(after.startsWith(before)).toBe(true);
    expect(after).not.toContain("from B");
    expect(sessionLines(file).some((line) => line["type"] === "compaction")).toBe(true);
    expect(after).toContain("from A");
  });
});
