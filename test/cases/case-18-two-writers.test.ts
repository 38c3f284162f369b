// Case 18: one writer per session file, whoever else wants it and whatever became of the owner.
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
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
    symlinkSync(file, join(b.home, "one.jsonl"));
    expect(await request(b, "switch_session", { sessionPath: join(b.home, "one.jsonl") })).toMatchObject({ code: "locked" });
    const named = use.start({ args: ["--session", file] });
    expect(await named.exited).toBe(1);
    expect(named.stderr()).toContain(`is in use by process ${a.child.pid}`);
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

  it("3: after kill -9 one of those that want the session has it at once, with everything that was acknowledged", {
    timeout: PATIENCE_MS,
  }, async () => {
    const { a, file, other } = await owner();
    const acknowledged = sessionLines(file);
    const [c, d] = [other(), other()];
    await Promise.all([wait(c, "ready"), wait(d, "ready")]);
    symlinkSync(dirname(file), join(d.home, "link"));
    a.child.kill("SIGKILL");
    await a.exited;
    // At the same moment and by two paths: the lock of the dead one must not be taken over twice.
    const answers = await Promise.all([
      request(c, "switch_session", { sessionPath: file }),
      request(d, "switch_session", { sessionPath: join(d.home, "link", basename(file)) }),
    ]);
    const winner = answers[0]?.["success"] === true ? c : d;
    const loser = answers.find((answer) => answer["success"] === false);
    expect(answers.filter((answer) => answer["success"] === true)).toHaveLength(1);
    expect(loser).toMatchObject({ code: "locked" });
    await prompt(winner, "after");
    const lines = sessionLines(file);
    expect(lines.slice(0, acknowledged.length)).toEqual(acknowledged);
    expect(lines.length).toBeGreaterThan(acknowledged.length);
    // Whoever lets go of it leaves no lock behind.
    await ask(winner, "new_session");
    expect(readdirSync(dirname(file)).filter((name) => name.includes(basename(file)))).toEqual([basename(file)]);
    expect(await request(winner === c ? d : c, "switch_session", { sessionPath: file })).toMatchObject({ success: true });
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
    // The name is set while the summary is being written.
    let release = () => {};
    service.script({ text: "## Goal\nSummed up", hold: new Promise<void>((resolve) => (release = resolve)) });
    const summary = service.request(4);
    const compacting = request(a, "compact");
    await summary;
    await ask(b, "set_session_name", { name: "from B" });
    release();
    expect(await compacting).toMatchObject({ success: true });
    await ask(a, "set_session_name", { name: "from A" });
    const after = readFileSync(file, "utf8");
    expect(after.startsWith(before)).toBe(true);
    expect(after).not.toContain("from B");
    expect(sessionLines(file).some((line) => line["type"] === "compaction")).toBe(true);
    expect(after).toContain("from A");
  });
});
