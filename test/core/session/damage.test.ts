import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SessionEntry } from "../../../core/session/entry.ts";
import { SessionFormatError } from "../../../core/session/errors.ts";
import { SessionLog } from "../../../core/session/log.ts";
import { assistant, call, created, fileOf, opened, result, soak, tempDir, user } from "./_helpers.ts";

const runs = soak ? 1500 : 60;

/** A session of `count` entries with nested blocks and texts that look like entries. */
function sample(dir: string, count = 8): { file: string; entries: readonly SessionEntry[]; bytes: Buffer } {
  const log = created(dir);
  for (let i = 0; i < count; i += 4) {
    log.append({ type: "message", message: user(`prompt ${i} {"type":"message","id":"x"} \u6f22\u{1f9ed}`) });
    log.materialize();
    log.append({
      type: "message",
      message: assistant([{ type: "text", text: "}{" }, call(`c${i}`, "bash", { type: "object", a: { b: "}" } })], "toolUse"),
    });
    log.append({ type: "message", message: result(`c${i}`, 'a "quoted" \\ text') });
    log.append({ type: "message", message: assistant(`answer ${i}`) });
  }
  log.close();
  return { file: fileOf(log), entries: log.entries, bytes: readFileSync(fileOf(log)) };
}

/** Start of every line, and the end of the file. */
function offsets(bytes: Buffer): number[] {
  const found = [0];
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) found.push(at + 1);
  return found;
}

/** Entries whose line, LF left out, lies outside of [from, to). */
function untouched(entries: readonly SessionEntry[], bytes: Buffer, from: number, to: number): SessionEntry[] {
  const starts = offsets(bytes);
  return entries.filter((_, i) => {
    const start = starts[i + 1] ?? 0;
    const end = (starts[i + 2] ?? bytes.length) - 1;
    return end <= from || start >= to;
  });
}

async function checkDamaged(
  file: string,
  all: readonly SessionEntry[],
  damaged: Buffer,
  expected: readonly SessionEntry[],
): Promise<void> {
  writeFileSync(file, damaged);
  const { log } = await opened(file);
  const ids = new Set(log.entries.map((entry) => entry.id));
  for (const entry of expected) {
    expect(ids.has(entry.id), `entry ${entry.id}`).toBe(true);
    expect(log.entry(entry.id)).toEqual(entry);
  }
  // What is left forms one path: a lost line does not cut off the history above it.
  expect(log.path().map((entry) => entry.id)).toEqual(log.entries.map((entry) => entry.id));
  // Nothing is made up, nothing is kept half.
  for (const entry of log.entries) expect(all.find((other) => other.id === entry.id)).toEqual(entry);
  expect(readFileSync(file).equals(damaged)).toBe(true);
  const next = log.append({ type: "message", message: user("after the damage") });
  log.close();
  expect(readFileSync(file).subarray(0, damaged.length).equals(damaged)).toBe(true);
  const { log: again } = await opened(file);
  expect(again.entries.map((entry) => entry.id)).toEqual([...log.entries.map((entry) => entry.id)]);
  expect(again.entry(next.id)).toEqual(next);
  again.close();
}

describe("damage costs the damaged lines only, and nothing is overwritten", () => {
  it("truncation at any byte (items 42, 45)", async () => {
    const { file, entries, bytes } = sample(tempDir());
    const headerEnd = offsets(bytes)[1] ?? 0;
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: headerEnd - 1, max: bytes.length }), async (at) => {
        await checkDamaged(file, entries, bytes.subarray(0, at), untouched(entries, bytes, at, Number.POSITIVE_INFINITY));
      }),
      { numRuns: runs },
    );
  });

  it("a run of NUL bytes anywhere behind the header (item 42)", async () => {
    const { file, entries, bytes } = sample(tempDir());
    const headerEnd = offsets(bytes)[1] ?? 0;
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: headerEnd, max: bytes.length - 1 }),
        fc.integer({ min: 1, max: 600 }),
        async (at, length) => {
          const damaged = Buffer.from(bytes);
          damaged.fill(0, at, Math.min(damaged.length, at + length));
          await checkDamaged(file, entries, damaged, untouched(entries, bytes, at, at + length));
        },
      ),
      { numRuns: runs },
    );
  });

  it("lines glued by a lost LF, torn ones included (item 42)", async () => {
    const { file, entries, bytes } = sample(tempDir());
    const starts = offsets(bytes);
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 2, max: starts.length - 2 }), fc.integer({ min: 0, max: 80 }), async (line, cut) => {
        const lf = (starts[line] ?? 0) - 1;
        const damaged = Buffer.concat([bytes.subarray(0, lf - cut), bytes.subarray(lf + 1)]);
        await checkDamaged(file, entries, damaged, cut === 0 ? entries : untouched(entries, bytes, lf - cut, lf));
      }),
      { numRuns: runs },
    );
  });

  it("a long history without any LF behind the header, in the middle of NUL bytes or garbage too", async () => {
    const { file, entries, bytes } = sample(tempDir(), 3000);
    const headerEnd = offsets(bytes)[1] ?? 0;
    const glued = Buffer.from(bytes.subarray(headerEnd).toString("utf8").replaceAll("\n", ""));
    for (const [before, after, lost] of [
      ["", "", 0],
      ["\0".repeat(5000), "\0".repeat(5000), 1],
      ["garbage }{ ", ' {"type":"message","id":"torn', 1],
    ] as const) {
      writeFileSync(file, Buffer.concat([bytes.subarray(0, headerEnd), Buffer.from(before), glued, Buffer.from(after)]));
      const { log, report } = await opened(file, true);
      expect(report.lostLines).toBe(lost);
      expect(log.entries.map((entry) => entry.id)).toEqual(entries.map((entry) => entry.id));
      expect(log.entries.at(-1)).toEqual(entries.at(-1));
    }
  });

  it("garbage lines between sound ones (item 42)", async () => {
    const { file, entries, bytes } = sample(tempDir());
    const starts = offsets(bytes);
    const garbage = fc.oneof(
      fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array.filter((byte) => byte !== 10))),
      fc.json().map((text) => Buffer.from(text)),
      fc
        .constantFrom("{}", '{"type":"message"}', '{"type":"message","id":"a","parentId":null}', "[1]", "null", '{"type":')
        .map((text) => Buffer.from(text)),
    );
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: starts.length - 1 }), garbage, async (line, junk) => {
        const at = starts[line] ?? 0;
        await checkDamaged(file, entries, Buffer.concat([bytes.subarray(0, at), junk, Buffer.from("\n"), bytes.subarray(at)]), [
          ...entries,
        ]);
      }),
      { numRuns: runs },
    );
  });

  it("any byte changed in the header either reads or is refused, and the file stays", async () => {
    const { file, bytes } = sample(tempDir(), 4);
    const headerEnd = offsets(bytes)[1] ?? 0;
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: headerEnd - 1 }), fc.integer({ min: 0, max: 255 }), async (at, value) => {
        const damaged = Buffer.from(bytes);
        damaged[at] = value;
        writeFileSync(file, damaged);
        try {
          const { log } = await SessionLog.open(file);
          log.close();
        } catch (error) {
          expect(error).toBeInstanceOf(SessionFormatError);
        }
        expect(readFileSync(file).equals(damaged)).toBe(true);
        expect(existsSync(`${file}.lock`)).toBe(false);
      }),
      { numRuns: runs },
    );
  });

  it("an entry-like object inside a torn line is no entry", async () => {
    const { file, entries, bytes } = sample(tempDir(), 4);
    const inner = '{"type":"custom","id":"cafecafe","parentId":null,"timestamp":"","customType":"x"}';
    const torn = `{"type":"message","id":"deadbeef","message":{"role":"assistant","content":[${inner},{"type":"text","te`;
    await checkDamaged(file, entries, Buffer.concat([bytes, Buffer.from(`${torn}\n`)]), entries);
  });

  it("reports where and why", async () => {
    const { file, bytes } = sample(tempDir());
    appendFileSync(file, 'not json\n\0\0\0\n{"type":"message","id":"dup1');
    const { report } = await opened(file);
    expect(report).toEqual({
      version: 3,
      lostLines: 3,
      damage: [
        { offset: bytes.length, length: 8, reason: "unreadable" },
        { offset: bytes.length + 9, length: 3, reason: "unreadable" },
        { offset: bytes.length + 13, length: 28, reason: "torn end" },
      ],
    });
  });

  it("an entry written twice is taken once; another one under the same id keeps both, the same way at each load", async () => {
    const { file, entries, bytes } = sample(tempDir(), 4);
    const last = entries.at(-1);
    const other = { ...last, timestamp: "2020-01-01T00:00:00.000Z" };
    writeFileSync(file, Buffer.concat([bytes, Buffer.from(`${JSON.stringify(last)}\n${JSON.stringify(other)}\n`)]));
    const { log, report } = await opened(file);
    expect(log.entries.map((entry) => entry.id)).toEqual([...entries.map((entry) => entry.id), `${last?.id}~2`]);
    expect(report.damage.map((place) => place.reason)).toEqual(["repeated id", "repeated id"]);
    const next = log.append({ type: "message", message: user("more") });
    log.close();
    const again = await opened(file);
    expect(again.log.path().map((entry) => entry.id)).toContain(`${last?.id}~2`);
    expect(again.log.leafId).toBe(next.id);
  });

  it("a cycle of parents ends", async () => {
    const { file } = sample(tempDir(), 4);
    appendFileSync(
      file,
      '{"type":"custom","id":"aaaaaaaa","parentId":"bbbbbbbb","timestamp":"","customType":"x"}\n{"type":"custom","id":"bbbbbbbb","parentId":"aaaaaaaa","timestamp":"","customType":"x"}\n',
    );
    const { log } = await opened(file);
    expect(log.path().map((entry) => entry.id)).toEqual(log.entries.map((entry) => entry.id));
  });

  it("a compaction whose first kept entry was lost keeps from the next one on", async () => {
    const log = created(tempDir());
    log.append({ type: "message", message: user("old") });
    log.materialize();
    const lost = log.append({ type: "message", message: user("lost") });
    log.append({ type: "message", message: assistant("kept") });
    log.append({ type: "compaction", summary: "S", firstKeptEntryId: lost.id, tokensBefore: 1 });
    log.close();
    const text = readFileSync(fileOf(log), "utf8").split("\n");
    writeFileSync(fileOf(log), text.map((line) => (line.includes('"lost"') ? line.slice(5) : line)).join("\n"));
    const { log: again } = await opened(fileOf(log));
    expect(again.context().map((message) => message.role)).toEqual(["compactionSummary", "assistant"]);
  });
});

describe("what is no session is refused and stays as it is (items 42, case 24)", () => {
  const cases: Record<string, string> = {
    empty: "",
    text: "root:x:0:0:root:/root:/bin/bash\n",
    "secret json": '{"token":"s3cret"}\n',
    "secret line that parses": '{"type":"secret","id":"s3cret"}\n',
    "header behind garbage": 's3cret\n{"type":"session","version":3,"id":"a","timestamp":"","cwd":"/"}\n',
    "entry first": '{"type":"message","id":"a","parentId":null,"timestamp":"","message":{"role":"user","content":"s3cret"}}\n',
    "newer version": '{"type":"session","version":4,"id":"a","timestamp":"","cwd":"/"}\n',
    NULs: "\0\0\0\0\0\0",
  };
  for (const [name, content] of Object.entries(cases)) {
    it(name, async () => {
      const dir = tempDir();
      const file = join(dir, "x.jsonl");
      writeFileSync(file, content);
      const error = await SessionLog.open(file).then(
        () => undefined,
        (reason) => reason,
      );
      expect(error).toBeInstanceOf(SessionFormatError);
      expect(error.message).toContain("The file was not modified");
      expect(error.message).not.toContain("s3cret");
      expect(readFileSync(file, "utf8")).toBe(content);
      expect(readdirSync(dir)).toEqual(["x.jsonl"]);
    });
  }

  it("missing files, folders, pipes and odd names", async () => {
    const dir = tempDir();
    mkdirSync(join(dir, "folder.jsonl"));
    spawnSync("mkfifo", [join(dir, "pipe.jsonl")]);
    symlinkSync("nowhere", join(dir, "dangling.jsonl"));
    await expect(SessionLog.open(join(dir, "none.jsonl"))).rejects.toMatchObject({ code: "not_found" });
    for (const name of ["folder.jsonl", "pipe.jsonl", "dangling.jsonl", "a\0b.jsonl"]) {
      await expect(SessionLog.open(join(dir, name)), name).rejects.toBeInstanceOf(SessionFormatError);
    }
    await expect(SessionLog.open("/proc/self/environ")).rejects.toBeInstanceOf(SessionFormatError);
  });

  it("a file of gigabytes without a line is refused at once", async () => {
    const file = join(tempDir(), "big.jsonl");
    writeFileSync(file, "{");
    truncateSync(file, 4 * 1024 * 1024 * 1024);
    const start = performance.now();
    await expect(SessionLog.open(file)).rejects.toBeInstanceOf(SessionFormatError);
    expect(performance.now() - start).toBeLessThan(1000);
  });
});
