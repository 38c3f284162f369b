// public-bugs 16: an edit changes the span it names and not one byte besides.
import { chmodSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { patience, type Rig, useRigs } from "../builtin-tools/_built.ts";

const { open } = useRigs();
const files = {
  "crlf.txt": "\ufeffone\r\ntwo\r\nthree\r\n",
  "mixed.txt": "one\r\ntwo\nthree\r\nfour",
  "quotes.md": "He said “no” — it’s fine…\nHe said “no” — it’s\u00a0fine…\n",
  "cjk.txt": "ＡＢＣ　価格：１２３\nABC 価格:123\n",
};

async function openWithFiles() {
  const rig = await open();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(rig.daemon.cwd, name), text);
  const bytes = (name: string) => readFileSync(join(rig.daemon.cwd, name)).toString("utf8");
  const edit = (path: string, oldText: string, newText: string) => rig.call("edit", { path, oldText, newText });
  return { rig, bytes, edit };
}

it("keeps byte order mark, line ends and a missing last newline (case 16)", patience, async () => {
  const { bytes, edit } = await openWithFiles();
  expect(await edit("crlf.txt", "one\ntwo", "ONE\nTWO\nextra")).toMatchObject({ isError: false });
  expect(bytes("crlf.txt")).toBe("\ufeffONE\r\nTWO\r\nextra\r\nthree\r\n");
  expect(await edit("mixed.txt", "two", "2")).toMatchObject({ isError: false });
  expect(bytes("mixed.txt")).toBe("one\r\n2\nthree\r\nfour");
  expect(await edit("mixed.txt", "2\r\nthree", "2\r\n3")).toMatchObject({ isError: false });
  expect(bytes("mixed.txt")).toBe("one\r\n2\n3\r\nfour");
  expect(await edit("crlf.txt", "extra\r\nthree", "$& $1 $$\r\nthree")).toMatchObject({ isError: false });
  expect(bytes("crlf.txt")).toBe("\ufeffONE\r\nTWO\r\n$& $1 $$\r\nthree\r\n");
});

it("names ambiguity and changes the unique span only (case 16)", patience, async () => {
  const { bytes, edit } = await openWithFiles();
  const twice = await edit("quotes.md", 'He said "no"', 'She said "yes"');
  expect(twice.isError).toBe(true);
  expect(twice.text).toMatch(/2 (times|places|matches)|lines 1, 2|lines 1 and 2/i);
  expect(bytes("quotes.md")).toBe(files["quotes.md"]);
  const unique = await edit("quotes.md", 'fine…\nHe said "no"', 'fine…\nShe said "yes"');
  expect(unique).toMatchObject({ isError: false });
  const [first, second] = bytes("quotes.md").split("\n");
  expect(first).toBe("He said “no” — it’s fine…");
  expect(second).toMatch(/^She said ["“]yes["”] — it’s\u00a0fine…$/);
});

it("an exact match wins over a tolerant one (case 16)", patience, async () => {
  const { bytes, edit } = await openWithFiles();
  expect(await edit("cjk.txt", "ABC 価格:123", "X")).toMatchObject({ isError: false });
  expect(bytes("cjk.txt")).toBe("ＡＢＣ　価格：１２３\nX\n");
});

it("edits that change nothing, or name nothing, are errors that touch nothing (case 16)", patience, async () => {
  const { rig, bytes, edit } = await openWithFiles();
  const stampOf = stamp(rig);
  const before = stampOf("mixed.txt");
  for (const [oldText, newText, expected] of [
    ["two", "two", /same|no change|nothing/i],
    ["", "x", /empty|oldText/i],
    ["nowhere", "x", /not found|does not|no match/i],
  ] as const) {
    const result = await edit("mixed.txt", oldText, newText);
    expect(result.isError, oldText).toBe(true);
    expect(result.text).toMatch(expected);
  }
  expect(stampOf("mixed.txt")).toEqual(before);
  expect(bytes("mixed.txt")).toBe(files["mixed.txt"]);
});

/** Modification time and mode, set to something that any write would change. */
function stamp(rig: Rig) {
  chmodSync(join(rig.daemon.cwd, "mixed.txt"), 0o604);
  utimesSync(join(rig.daemon.cwd, "mixed.txt"), 1_000_000_000, 1_000_000_000);
  return (name: string) => {
    const { mtimeMs, mode, ino } = statSync(join(rig.daemon.cwd, name));
    return { mtimeMs, mode, ino };
  };
}
