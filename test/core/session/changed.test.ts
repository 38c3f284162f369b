// Session files that another program removes, moves, cuts or replaces while they are open: the memory is the truth, and what
// stood there instead is kept beside.
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { acquireLock } from "../../../core/session/lock.ts";
import type { SessionLog } from "../../../core/session/log.ts";
import { assistant, closing, created, fileOf, opened, soak, tempDir, user } from "./_helpers.ts";

const text = (n: number) => `text ${n}`;

/** A session of six messages: created here, opened without a write so far, or opened and written to. */
async function session(how: string): Promise<{ log: SessionLog; file: string }> {
  const first = created(tempDir());
  first.append({ type: "message", message: user(text(0)) });
  first.materialize();
  for (let n = 1; n < 5; n++) first.append({ type: "message", message: n % 2 === 0 ? user(text(n)) : assistant(text(n)) });
  if (how === "created") first.append({ type: "message", message: assistant(text(5)) });
  if (how === "created") return { log: first, file: fileOf(first) };
  if (how === "opened") first.append({ type: "message", message: assistant(text(5)) });
  first.close();
  const { log } = await opened(fileOf(first));
  if (how === "written") log.append({ type: "message", message: assistant(text(5)) });
  return { log, file: fileOf(log) };
}

function backups(file: string): string[] {
  const names = readdirSync(dirname(file)).filter((name) => name.startsWith(`${basename(file)}.bak-`));
  return names.map((name) => readFileSync(join(dirname(file), name), "utf8"));
}

/** Appends, opens again, and expects everything that was ever said. */
async function expectWhole(log: SessionLog, file: string): Promise<void> {
  log.append({ type: "message", message: user("after it") });
  log.append({ type: "message", message: assistant("and on") });
  const said = log.entries.map((entry) => entry.id);
  log.close();
  expect(said).toHaveLength(8);
  const again = await opened(file);
  expect(again.report.lostLines).toBe(0);
  expect(again.log.entries.map((entry) => entry.id)).toEqual(said);
  expect(again.log.path().map((entry) => entry.id)).toEqual(said);
  again.log.close();
}

const replaced = (file: string, content: string | Buffer) => {
  writeFileSync(`${file}.new`, content);
  renameSync(`${file}.new`, file);
};
const other = `{"type":"session","version":3,"id":"another","timestamp":"","cwd":"/p"}\n${"x".repeat(9000)}\n`;

/** What happens to the file, and how many backups there are of it then. */
const happenings: Record<string, [(file: string) => void, backups: number]> = {
  removed: [(file) => rmSync(file), 0],
  "removed with its folder": [(file) => rmSync(dirname(file), { recursive: true }), 0],
  "moved away": [(file) => renameSync(file, `${file}.elsewhere`), 0],
  emptied: [(file) => truncateSync(file, 0), 0],
  "replaced by an empty one": [(file) => replaced(file, ""), 0],
  "replaced by garbage, shorter": [(file) => replaced(file, "garbage\n"), 1],
  "replaced by garbage, longer": [(file) => replaced(file, "garbage\n".repeat(5000)), 1],
  "replaced by another session": [(file) => replaced(file, other), 1],
  "replaced by a part of it": [(file) => replaced(file, readFileSync(file).subarray(0, -50)), 1],
  "replaced by a copy of it": [(file) => replaced(file, readFileSync(file)), 0],
  "replaced by a link to a copy": [
    (file) => {
      renameSync(file, `${file}.target`);
      symlinkSync(`${file}.target`, file);
    },
    0,
  ],
};

it.each(Object.keys(happenings))("%s: nothing that was said is lost", async (name) => {
  const [happen, count] = happenings[name] ?? [() => {}, 0];
  for (const how of ["created", "opened", "written"]) {
    const { log, file } = await session(how);
    happen(file);
    const there = name.startsWith("replaced by ") ? readFileSync(file, "utf8") : undefined;
    await expectWhole(log, file);
    expect(backups(file), how).toEqual(count === 0 ? [] : [there]);
  }
});

it("a link to what is no session, in the place of the file, is replaced and what it leads to stays", async () => {
  for (const how of ["created", "opened", "written"]) {
    const { log, file } = await session(how);
    writeFileSync(`${file}.notes`, "my notes\n");
    rmSync(file);
    symlinkSync(`${file}.notes`, file);
    await expectWhole(log, file);
    expect(readFileSync(`${file}.notes`, "utf8")).toBe("my notes\n");
  }
});

it("a link that led to the file and leads elsewhere now is left alone: the file goes on", async () => {
  const { log, file } = await session("opened");
  log.close();
  const link = `${file}.link`;
  symlinkSync(file, link);
  const through = await opened(link);
  writeFileSync(`${file}.notes`, "my notes\n");
  rmSync(link);
  symlinkSync(`${file}.notes`, link);
  await expectWhole(through.log, file);
  expect(readFileSync(`${file}.notes`, "utf8")).toBe("my notes\n");
  expect(backups(file)).toEqual([]);
});

it("cut anywhere: nothing that was said is lost, and the rest is kept beside", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom("created", "opened", "written"),
      fc.double({ min: 0, max: 1, noNaN: true }),
      async (how, at) => {
        const { log, file } = await session(how);
        const size = readFileSync(file).length;
        const end = Math.min(size - 1, Math.floor(at * size));
        truncateSync(file, end);
        const rest = readFileSync(file, "utf8");
        await expectWhole(log, file);
        expect(backups(file)).toEqual(end === 0 ? [] : [rest]);
      },
    ),
    { numRuns: soak ? 500 : 30 },
  );
});

it("added to by another program: both are kept, without a backup", async () => {
  for (const how of ["created", "opened", "written"])
    for (const glue of ["", "\n"]) {
      const { log, file } = await session(how);
      const theirs = { type: "message", id: "theirs", parentId: log.leafId, timestamp: "", message: user("theirs") };
      appendFileSync(file, `${JSON.stringify(theirs)}${glue}`);
      const before = readFileSync(file);
      log.append({ type: "message", message: user("ours") });
      log.close();
      expect(readFileSync(file).subarray(0, before.length).equals(before)).toBe(true);
      const again = await opened(file);
      expect(again.log.entries.map((entry) => entry.id)).toEqual([
        ...log.entries.slice(0, -1).map(({ id }) => id),
        "theirs",
        log.leafId,
      ]);
      expect(backups(file)).toEqual([]);
    }
});

it("in the place of a folder that was moved away a copy of the old file is no other session", async () => {
  const { log, file } = await session("opened");
  const aside = `${dirname(file)}-aside`;
  renameSync(dirname(file), aside);
  mkdirSync(dirname(file));
  copyFileSync(join(aside, basename(file)), file);
  closing(log);
  await expectWhole(log, file);
  expect(backups(file)).toEqual([]);
});

it("half-made copies of killed owners go with the next copy; those of living ones stay", async () => {
  const { log, file } = await session("written");
  const folder = dirname(file);
  const lock = acquireLock(join(folder, "living.jsonl"));
  const names = ["dead.jsonl.tmp-999999-0a1b2c3d", "living.jsonl.tmp-1-0a1b2c3d", "notes.tmp-1", "x.jsonl.tmp-a-b"];
  for (const name of names) writeFileSync(join(folder, name), "half");
  const copy = closing(log.copyPath(log.leafId));
  await copy.materializeInSlices();
  expect(names.filter((name) => existsSync(join(folder, name)))).toEqual(names.slice(1));
  expect(readdirSync(folder)).toContain(basename(fileOf(copy)));
  lock.release();
});
