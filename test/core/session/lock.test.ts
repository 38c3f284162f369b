import { existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { SessionLockedError } from "../../../core/session/errors.ts";
import { acquireLock, lockOwner } from "../../../core/session/lock.ts";
import { SessionLog } from "../../../core/session/log.ts";
import { created, fileOf, opened, tempDir, user, worker } from "./_helpers.ts";

function session(dir: string): string {
  const log = created(dir);
  log.append({ type: "message", message: user("one") });
  log.materialize();
  log.close();
  return fileOf(log);
}

describe("one writer per file (case 18)", () => {
  it("a second process is refused with the pid of the first, by a symlinked folder too", async () => {
    const dir = tempDir();
    const file = session(dir);
    const linked = join(dir, "alias");
    symlinkSync(dirname(file), linked);
    const [a, b] = [worker(), worker()];
    expect(await a.ask({ do: "open", file })).toEqual({ entries: 1 });
    for (const path of [file, file.replace(dirname(file), linked)]) {
      const refused = await b.ask({ do: "open", file: path });
      expect(refused).toMatchObject({ name: "CommandError", pid: a.child.pid });
      expect(refused["error"]).toContain(`process ${a.child.pid}`);
    }
    await a.ask({ do: "append", text: "x".repeat(300_000), count: 50 });
    await a.ask({ do: "close" });
    expect(await b.ask({ do: "open", file })).toEqual({ entries: 51 });
    await b.ask({ do: "close" });
    expect(existsSync(`${file}.lock`)).toBe(false);
  });

  it("after kill -9 of the owner the next one takes over at once, with every acknowledged entry", async () => {
    const file = session(tempDir());
    const a = worker();
    await a.ask({ do: "open", file });
    await a.ask({ do: "append", text: "y", count: 20 });
    await a.kill();
    expect(existsSync(`${file}.lock`)).toBe(true);
    const { log, report } = await opened(file);
    expect(log.entries).toHaveLength(21);
    expect(report.lostLines).toBe(0);
    expect(JSON.parse(readFileSync(`${file}.lock`, "utf8")).pid).toBe(process.pid);
    log.append({ type: "message", message: user("c") });
  });

  it("the same process is refused as well, and reading only is not", async () => {
    const file = session(tempDir());
    await opened(file);
    await expect(SessionLog.open(file)).rejects.toMatchObject({ pid: process.pid, code: "locked" });
    expect((await opened(file, true)).log.entries).toHaveLength(1);
  });

  it("a new session holds its lock from its first write", async () => {
    const log = created(tempDir());
    log.append({ type: "message", message: user("one") });
    log.materialize();
    await expect(SessionLog.open(fileOf(log))).rejects.toBeInstanceOf(SessionLockedError);
    log.close();
    await opened(fileOf(log));
  });

  it("of several that find a dead owner at once, one gets the lock", async () => {
    const file = session(tempDir());
    writeFileSync(`${file}.lock`, JSON.stringify({ pid: 2 ** 22 + 1, startTime: "1", bootId: "gone", host: hostname() }));
    const workers = [worker(), worker(), worker()];
    await Promise.all(workers.map((w) => w.ask({ do: "none" })));
    const answers = await Promise.all(workers.map((w) => w.ask({ do: "open", file })));
    expect(answers.filter((answer) => answer["entries"] === 1)).toHaveLength(1);
    expect(answers.filter((answer) => answer["name"] === "CommandError")).toHaveLength(2);
  });
});

describe("stale locks never block for ever (case 18)", () => {
  const own = (file: string): Record<string, unknown> => {
    const lock = acquireLock(file);
    const content = JSON.parse(readFileSync(lock.lockFile, "utf8"));
    lock.release();
    return content;
  };
  const stale: Record<string, (content: Record<string, unknown>) => Record<string, unknown>> = {
    "a pid that was re-used": (content) => ({ ...content, pid: process.ppid, startTime: "1" }),
    "a dead pid": (content) => ({ ...content, pid: 2 ** 22 + 1 }),
    "an earlier boot": (content) => ({ ...content, bootId: "before" }),
  };
  for (const [name, change] of Object.entries(stale)) {
    it(name, () => {
      const file = session(tempDir());
      writeFileSync(`${file}.lock`, JSON.stringify(change(own(file))));
      expect(lockOwner(file)).toBeUndefined();
      acquireLock(file).release();
      expect(existsSync(`${file}.lock`)).toBe(false);
      expect(existsSync(`${file}.lock.takeover`)).toBe(false);
    });
  }

  it("unreadable content, once it is not fresh; another host's, after a day", () => {
    const file = session(tempDir());
    writeFileSync(`${file}.lock`, "");
    expect(() => acquireLock(file)).toThrow(SessionLockedError);
    utimesSync(`${file}.lock`, new Date(), new Date(Date.now() - 10_000));
    acquireLock(file).release();
    writeFileSync(`${file}.lock`, JSON.stringify({ pid: 1, startTime: "1", bootId: "b", host: "elsewhere" }));
    expect(() => acquireLock(file)).toThrow(/process 1 on elsewhere/);
    utimesSync(`${file}.lock`, new Date(), new Date(Date.now() - 25 * 3600 * 1000));
    acquireLock(file).release();
  });

  it("a guard left by a crash during a take-over", () => {
    const file = session(tempDir());
    const dead = JSON.stringify({ ...own(file), pid: 2 ** 22 + 1 });
    writeFileSync(`${file}.lock`, dead);
    writeFileSync(`${file}.lock.takeover`, dead);
    acquireLock(file).release();
  });

  it("release leaves a lock that is not ours any more", () => {
    const file = session(tempDir());
    const lock = acquireLock(file);
    writeFileSync(lock.lockFile, "other");
    lock.release();
    expect(existsSync(lock.lockFile)).toBe(true);
  });
});

describe("an owner that writes for days", () => {
  const HOUR = 3600 * 1000;
  beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
  afterEach(() => void vi.useRealTimers());
  const age = (lockFile: string) => Date.now() - statSync(lockFile).mtimeMs;
  const say = (log: SessionLog) => log.append({ type: "message", message: user("on") });

  it("keeps its lock young, for hosts that cannot see whether it lives", async () => {
    const { log } = await opened(session(tempDir()));
    const lockFile = `${fileOf(log)}.lock`;
    for (let hour = 0; hour < 60; hour++) {
      vi.setSystemTime(Date.now() + HOUR / 2);
      say(log);
      expect(age(lockFile)).toBeLessThan(2 * HOUR);
    }
  });

  it("makes it anew where it was removed, its folder too", async () => {
    for (const remove of [
      (file: string) => rmSync(`${file}.lock`),
      (file: string) => rmSync(dirname(file), { recursive: true }),
    ]) {
      const { log } = await opened(session(tempDir()));
      remove(fileOf(log));
      for (let n = 0; n < 2; n++) {
        vi.setSystemTime(Date.now() + 2 * HOUR);
        say(log);
      }
      expect(lockOwner(fileOf(log))?.pid).toBe(process.pid);
      log.close();
      expect(existsSync(`${fileOf(log)}.lock`)).toBe(false);
    }
  });

  it("stops writing once another host has taken the file over", async () => {
    const { log } = await opened(session(tempDir()));
    const theirs = JSON.stringify({ pid: 7, startTime: "1", bootId: "b", host: "elsewhere" });
    writeFileSync(`${fileOf(log)}.lock`, theirs);
    vi.setSystemTime(Date.now() + 2 * HOUR);
    utimesSync(`${fileOf(log)}.lock`, new Date(), new Date());
    const before = readFileSync(fileOf(log), "utf8");
    expect(() => say(log)).toThrow(/process 7 on elsewhere/);
    expect(readFileSync(fileOf(log), "utf8")).toBe(before);
    expect(() => log.close()).toThrow(SessionLockedError);
    expect(readFileSync(`${fileOf(log)}.lock`, "utf8")).toBe(theirs);
  });
});

it.runIf(process.platform === "linux")("a killed owner whose parent has not collected it counts as dead", async () => {
  const file = session(tempDir());
  const dir = tempDir();
  mkdirSync(join(dir, "d"));
  // The shell starts a child, kills it and sleeps without waiting for it: the child stays a zombie.
  const { spawn } = await import("node:child_process");
  const parent = spawn(
    "python3",
    ["-c", "import os,sys,time\np=os.fork()\nif p==0: time.sleep(60)\nprint(p,flush=True)\ntime.sleep(60)"],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  try {
    const pid = await new Promise<number>((resolve) => parent.stdout.once("data", (data) => resolve(Number(String(data)))));
    const start = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[19];
    const lock = acquireLock(file);
    const content = { ...JSON.parse(readFileSync(lock.lockFile, "utf8")), pid, startTime: start };
    lock.release();
    writeFileSync(lock.lockFile, JSON.stringify(content));
    expect(lockOwner(file)?.pid).toBe(pid);
    process.kill(pid, "SIGKILL");
    await expect.poll(() => lockOwner(file)).toBeUndefined();
  } finally {
    parent.kill("SIGKILL");
  }
});
