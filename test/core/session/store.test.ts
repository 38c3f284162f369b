import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { Artifacts, sidecarOf } from "../../../core/session/artifacts.ts";
import { listSessions, resolveSession, sessionInfo, unlockedSessions } from "../../../core/session/list.ts";
import { SessionLog } from "../../../core/session/log.ts";
import { encodeCwd } from "../../../core/session/store.ts";
import { assistant, closing, created, fileOf, opened, tempDir, user } from "./_helpers.ts";

function session(
  sessionsDir: string,
  cwd: string,
  options: { id?: string; text?: string; name?: string; at?: number } = {},
): string {
  const log = closing(SessionLog.create({ cwd, sessionsDir, id: options.id, now: () => options.at ?? Date.now() }));
  log.append({ type: "message", message: user(options.text ?? "hello") });
  if (options.name !== undefined) log.setName(options.name, "user");
  log.materialize();
  log.close();
  const seconds = (options.at ?? Date.now()) / 1000;
  utimesSync(fileOf(log), seconds, seconds);
  return fileOf(log);
}

describe("folders", () => {
  it("one per working directory, the same by symbolic link, of bounded length", () => {
    const dir = tempDir();
    mkdirSync(join(dir, "real"));
    symlinkSync("real", join(dir, "alias"));
    expect(encodeCwd(join(dir, "alias"))).toBe(encodeCwd(join(dir, "real")));
    expect(encodeCwd("/home/u/my project")).toBe("--home-u-my project--");
    const long = `/${"\u6f22".repeat(300)}`;
    expect(Buffer.byteLength(encodeCwd(long))).toBeLessThan(255);
    expect(encodeCwd(long)).not.toBe(encodeCwd(`${long}x`));
    expect(encodeCwd("/")).toBe("----");
  });
});

describe("listing", () => {
  it("shows this directory's sessions, the last changed first, without the empty and the broken ones (item 47)", async () => {
    const dir = tempDir();
    const old = session(dir, "/p/a", { text: "first  words\nof it", name: "Old", at: 1_000_000_000_000 });
    const recent = session(dir, "/p/a", { at: 1_600_000_000_000 });
    const twin = session(dir, "/p-a", { at: 1_700_000_000_000 });
    expect(dirname(twin)).toBe(dirname(old));
    writeFileSync(join(dirname(old), "empty.jsonl"), "");
    writeFileSync(join(dirname(old), "header.jsonl"), '{"type":"session","version":3,"id":"e","timestamp":"","cwd":"/p/a"}\n');
    writeFileSync(join(dirname(old), "junk.jsonl"), "junk\n");
    expect((await listSessions(dir, "/p/a")).map((info) => info.file)).toEqual([recent, old]);
    expect((await listSessions(dir)).map((info) => info.file)).toEqual([twin, recent, old]);
    expect((await listSessions(dir, "/p/a"))[1]).toMatchObject({
      name: "Old",
      cwd: "/p/a",
      firstMessage: "first words of it",
      created: 1_000_000_000_000,
      modified: 1_000_000_000_000,
    });
    expect(await listSessions(join(dir, "nowhere"))).toEqual([]);
  });

  it("reads the ends of a big file only, and finds a name in either", async () => {
    const log = created(tempDir());
    log.append({ type: "message", message: user("begin") });
    log.materialize();
    for (let i = 0; i < 100; i++) log.append({ type: "message", message: assistant("x".repeat(20_000)) });
    expect(await sessionInfo(fileOf(log))).toMatchObject({ firstMessage: "begin", name: undefined });
    log.setName("at the end", "user");
    expect(await sessionInfo(fileOf(log))).toMatchObject({ name: "at the end", size: statSync(fileOf(log)).size });
  });
});

it("a header of any length that opens is listed, before a short history and a long one", async () => {
  const dir = tempDir();
  for (const folders of [50, 500, 1500])
    for (const answer of ["short", "long ".repeat(20_000)]) {
      const file = join(dir, `${folders}-${answer.length}.jsonl`);
      const additionalDirectories = Array.from({ length: folders }, (_, n) => `/some/folder/of/a/big/work/place/${n}`);
      const header = {
        type: "session",
        version: 3,
        id: `h${folders}`,
        timestamp: "",
        cwd: "/p",
        title: "T",
        additionalDirectories,
      };
      const entries = [user("begin"), assistant(answer)].map((message, n) => ({
        type: "message",
        id: `e${n}`,
        parentId: n === 0 ? null : "e0",
        timestamp: "",
        message,
      }));
      writeFileSync(file, [header, ...entries].map((line) => `${JSON.stringify(line)}\n`).join(""));
      expect(await sessionInfo(file)).toMatchObject({ id: `h${folders}`, name: "T", firstMessage: "begin" });
    }
});

it("sessions that another program put into its own folder, or into none, are found as well", async () => {
  const sessionsDir = tempDir();
  const project = join(homedir(), "no such", "project");
  const temporary = tempDir();
  for (const [id, cwd, folder] of [
    ["under-home", project, "-no such-project"],
    ["home", homedir(), "-"],
    ["temporary", temporary, `-tmp-${basename(temporary)}`],
    ["flat", project, "."],
    ["ours", temporary, encodeCwd(temporary)],
  ] as const) {
    const here = session(sessionsDir, cwd, { id });
    const moved = join(sessionsDir, folder, basename(here));
    mkdirSync(dirname(moved), { recursive: true });
    if (moved !== here) renameSync(here, moved);
    expect((await listSessions(sessionsDir, cwd)).map(({ file }) => file)).toContain(moved);
    expect(await resolveSession(id, { cwd, sessionsDir })).toBe(moved);
    const elsewhere = await listSessions(sessionsDir, "/elsewhere");
    expect(elsewhere).toEqual([]);
  }
  expect(await listSessions(sessionsDir)).toHaveLength(5);
});

it("a first message that is longer than what is read of the file shows its beginning, wherever it is cut", async () => {
  for (let before = 0; before < 12; before++) {
    const start = `Look:\n"quoted" \\ \u0007 \u6f22 ${"\u{1f9ed}".repeat(before)} `;
    for (const filling of ["x", "\n", "\u0001", "\u6f22", '"', "\u{1f9ed}"]) {
      const file = session(tempDir(), "/p", { text: start + filling.repeat(40_000) });
      const shown = (await sessionInfo(file))?.firstMessage ?? "";
      const whole = (start + filling.repeat(40_000)).replace(/\s+/g, " ").trim();
      expect(whole.startsWith(shown)).toBe(true);
      expect(shown.length).toBe(Math.min(200, whole.length));
    }
  }
});

it("a page is looked into no further than it goes, and is stale when the file it follows is gone", async () => {
  const dir = tempDir();
  const files = Array.from({ length: 60 }, (_, n) => session(dir, "/p/a", { at: 1_000_000_000_000 + n * 1000 })).reverse();
  const whole = (await listSessions(dir, "/p/a")).map(({ file }) => file);
  expect(whole).toEqual(files);
  const walked: string[] = [];
  for (let after: string | undefined; walked.length < 60; after = walked.at(-1)) {
    const page = await listSessions(dir, "/p/a", { after, limit: 7 });
    expect(page.length).toBe(Math.min(7, 60 - walked.length));
    walked.push(...page.map(({ file }) => file));
  }
  expect(walked).toEqual(files);
  await expect(listSessions(dir, "/p/a", { after: join(dir, "gone.jsonl") })).rejects.toMatchObject({ code: "stale_cursor" });
});

describe("finding one session", () => {
  it("by path, id prefix, file name or id suffix; here first, then anywhere, the newest first", async () => {
    const sessionsDir = tempDir();
    const here = session(sessionsDir, "/p/a", { id: "abc-111-zz", at: 1 });
    const newer = session(sessionsDir, "/p/a", { id: "abc-222-yy", at: 2 });
    const there = session(sessionsDir, "/p/b", { id: "abc-333-xx", at: 3 });
    const at = { cwd: "/p/a", sessionsDir };
    expect(await resolveSession("abc", at)).toBe(newer);
    expect(await resolveSession("ABC-1", at)).toBe(here);
    expect(await resolveSession("zz", at)).toBe(here);
    expect(await resolveSession("abc-333", at)).toBe(there);
    expect(await resolveSession("1970-01-01T00-00-00-001", at)).toBe(here);
    expect(await resolveSession("x.jsonl", at)).toBe("/p/a/x.jsonl");
    expect(await resolveSession("../b/y", at)).toBe("/p/b/y");
    await expect(resolveSession("nope", at)).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringContaining('No session matches "nope"'),
    });
    await expect(resolveSession("", at)).rejects.toMatchObject({ code: "not_found" });
  });

  it("--continue takes the newest that nobody writes to", async () => {
    const dir = tempDir();
    const old = session(dir, "/p/a", { at: 1_000_000_000_000 });
    const recent = session(dir, "/p/a", { at: 1_600_000_000_000 });
    const candidates = async (cwd: string) => {
      const files: string[] = [];
      for await (const file of unlockedSessions(dir, cwd)) files.push(file);
      return files;
    };
    expect(await candidates("/p/a")).toEqual([recent, old]);
    await opened(recent);
    expect(await candidates("/p/a")).toEqual([old]);
    expect(await candidates("/p/c")).toEqual([]);
  });
});

describe("artifacts", () => {
  it("are numbered on from what the side-car holds, private, and made when first needed", async () => {
    const log = created(tempDir());
    log.append({ type: "message", message: user("one") });
    log.materialize();
    const dir = sidecarOf(fileOf(log));
    expect(existsSync(dir)).toBe(false);
    const first = log.artifacts.write("bash", "out \u6f22");
    expect(first).toBe(join(dir, "1.bash.log"));
    expect(readFileSync(first, "utf8")).toBe("out \u6f22");
    expect([statSync(first).mode & 0o777, statSync(dir).mode & 0o777]).toEqual([0o600, 0o700]);
    writeFileSync(join(dir, "7.read.log"), "");
    log.close();
    const { log: again } = await opened(fileOf(log));
    expect(again.artifacts.create("../../x y")).toBe(join(dir, "8.______x_y.log"));
    expect(readdirSync(dir)).toHaveLength(3);
  });

  it("of an in-memory session lie in a temporary folder until it is closed", () => {
    const artifacts = new Artifacts(undefined);
    const file = artifacts.write("bash", "x");
    expect(existsSync(file)).toBe(true);
    artifacts.close();
    expect(existsSync(dirname(file))).toBe(false);
  });
});
