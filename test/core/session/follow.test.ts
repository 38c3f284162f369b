import { appendFileSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readFrom } from "../../../core/session/follow.ts";
import { created, fileOf, tempDir, user } from "./_helpers.ts";

function session(): { file: string; append: (text: string) => void } {
  const log = created(tempDir());
  log.append({ type: "message", message: user("one \u6f22") });
  log.materialize();
  return { file: fileOf(log), append: (text) => void log.append({ type: "message", message: user(text) }) };
}

describe("get_subagent_messages reads a file as it grows", () => {
  it("from the start, from the returned byte, and at the end", async () => {
    const { file, append } = session();
    const first = await readFrom(file);
    expect(first).toMatchObject({
      sessionFile: file,
      fromByte: 0,
      nextByte: readFileSync(file).length,
      reset: false,
      messages: [user("one \u6f22")],
    });
    expect(first.entries.map((entry) => entry.type)).toEqual(["session", "message"]);
    expect(await readFrom(file, first.nextByte)).toEqual({
      sessionFile: file,
      fromByte: first.nextByte,
      nextByte: first.nextByte,
      reset: false,
      entries: [],
      messages: [],
    });
    append("two");
    expect(await readFrom(file, first.nextByte)).toMatchObject({ fromByte: first.nextByte, messages: [user("two")] });
  });

  it("only complete lines are consumed", async () => {
    const { file } = session();
    const { nextByte } = await readFrom(file);
    const line =
      '{"type":"message","id":"a","parentId":null,"timestamp":"","message":{"role":"user","content":"\u6f22","timestamp":1}}';
    appendFileSync(file, line);
    expect(await readFrom(file, nextByte)).toMatchObject({ nextByte, entries: [] });
    appendFileSync(file, "\n");
    expect(await readFrom(file, nextByte)).toMatchObject({
      nextByte: nextByte + Buffer.byteLength(line) + 1,
      messages: [user("\u6f22")],
    });
  });

  it("a byte past the end starts anew; others are clamped, the middle of a line or character is skipped (case 24)", async () => {
    const { file } = session();
    const size = readFileSync(file).length;
    expect(await readFrom(file, size + 1)).toMatchObject({
      fromByte: 0,
      nextByte: size,
      reset: true,
      messages: [user("one \u6f22")],
    });
    expect(await readFrom(file, -5)).toMatchObject({ fromByte: 0, reset: false, messages: [user("one \u6f22")] });
    expect(await readFrom(file, 1.9)).toMatchObject({ fromByte: 1, nextByte: size, messages: [user("one \u6f22")] });
    expect(await readFrom(file, readFileSync(file).indexOf("\u6f22") + 1)).toMatchObject({ nextByte: size, entries: [] });
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, "0", null, {}])
      await expect(readFrom(file, bad)).rejects.toThrow("fromByte must be a finite number");
    truncateSync(file, 0);
    expect(await readFrom(file, 10)).toMatchObject({ fromByte: 0, nextByte: 0, reset: true, entries: [] });
    expect(await readFrom(file, 0)).toMatchObject({ fromByte: 0, nextByte: 0, reset: false, entries: [] });
  });

  it("a missing file is empty; one that is no session is refused without a word of it (case 24)", async () => {
    const dir = tempDir();
    expect(await readFrom(join(dir, "none.jsonl"), 7)).toEqual({
      sessionFile: join(dir, "none.jsonl"),
      fromByte: 7,
      nextByte: 7,
      reset: false,
      entries: [],
      messages: [],
    });
    const secret = join(dir, "secret.jsonl");
    writeFileSync(secret, 's3cret\n{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"s3cret"}}\n');
    for (const from of [0, 7, 1000]) {
      const error = await readFrom(secret, from).catch((reason) => reason);
      expect(error.message).toMatch(/session header is missing or malformed/);
      expect(error.message).not.toContain("s3cret");
    }
    writeFileSync(secret, '{"type":"session","id":');
    expect(await readFrom(secret)).toMatchObject({ nextByte: 0, entries: [] });
  });
});
