// Edits against a model of bytes: whatever the file's line ends, everything outside the named lines stays as it is.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createTwoFilesPatch } from "diff";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import edit from "../../builtin-tools/edit.ts";
import { type Bench, bench, textOf } from "./_support.ts";

const numRuns = process.env["MORTISE_SOAK"] ? 20_000 : 400;
let b: Bench;
beforeAll(() => {
  b = bench();
});
afterAll(() => b.close());

const noise = fc.string({
  unit: fc.constantFrom("a", " ", "\t", "“", "’", "—", "é", "漢", "🧪", "$", "&", "\\", "`", "(", "　"),
  maxLength: 8,
});
const end = fc.constantFrom("\n", "\r\n");
/** Lines that cannot be taken for each other under any tolerance: the number decides. */
const file = fc.record({
  bom: fc.boolean(),
  lines: fc.array(fc.tuple(noise, end), { minLength: 1, maxLength: 12 }),
  lastEnd: fc.boolean(),
});
const replacement = fc.array(fc.oneof(noise, fc.constantFrom("$&", "$1", "$$", "", "new")), { minLength: 0, maxLength: 5 });

test("bytes outside of the named lines stay, inside stands the new text with the line ends of the place", async () => {
  await fc.assert(
    fc.asyncProperty(file, replacement, fc.nat(), fc.nat(), async ({ bom, lines, lastEnd }, fresh, a, c) => {
      const texts = lines.map(([text], index) => `<${index}>${text}|`);
      const ends = lines.map(([, lineEnd], index) => (index === lines.length - 1 && !lastEnd ? "" : lineEnd));
      const first = a % lines.length;
      const last = first + (c % (lines.length - first));
      const part = (from: number, to: number) =>
        texts
          .slice(from, to)
          .map((text, index) => text + ends[from + index])
          .join("");
      const before = (bom ? "\ufeff" : "") + part(0, first);
      const after = (ends[last] ?? "") + part(last + 1, lines.length);
      const oldText = texts.slice(first, last + 1).join("\n");
      const newText = fresh.map((text, index) => `<n${index}>${text}`).join("\n");
      const path = join(b.cwd, "file.txt");
      writeFileSync(path, before + part(first, last) + texts[last] + after);

      const result = await b.call(edit, { path: "file.txt", oldText, newText });
      expect(result.isError, textOf(result)).toBeUndefined();
      const written = readFileSync(path, "utf8");
      expect(written.startsWith(before)).toBe(true);
      expect(written.endsWith(after)).toBe(true);
      expect(written.length).toBeGreaterThanOrEqual(before.length + after.length);
      const middle = written.slice(before.length, written.length - after.length);
      expect(middle.replaceAll("\r\n", "\n")).toBe(newText);
      // One kind of line end in the file means that kind in the new text.
      const kinds = new Set<string>(ends.filter((lineEnd) => lineEnd !== ""));
      const used = new Set(middle.match(/\r?\n/g) ?? []);
      if (kinds.size === 1) for (const lineEnd of used) expect(kinds.has(lineEnd)).toBe(true);
    }),
    { numRuns },
  );
});

test("in a file of any bytes only those of the edit change, or the edit is refused and nothing changes", async () => {
  // Few bytes are UTF-8 together, so pieces of it stand among them; the number makes the line unique.
  const junk = fc.oneof(
    fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes)),
    fc.constantFrom("é“漢🧪", "plain", "\r\n", "\n", "\ufeff").map((text) => Buffer.from(text)),
    fc.constantFrom("\xe9", "\xa0", "\xff\xfe", "\x93x\x94").map((text) => Buffer.from(text, "latin1")),
  );
  const bytes = fc.array(junk, { maxLength: 6 }).map((parts) => Buffer.concat(parts));
  let edited = 0;
  await fc.assert(
    fc.asyncProperty(bytes, bytes, fc.constantFrom("new", "", "zwei — 2"), async (before, after, newText) => {
      const path = join(b.cwd, "bytes.txt");
      const whole = (text: string) => Buffer.concat([before, Buffer.from(`<<${text}>>`), after]);
      writeFileSync(path, whole("old-1"));
      const result = await b.call(edit, { path: "bytes.txt", oldText: "<<old-1>>", newText: `<<${newText}>>` });
      edited += result.isError === true ? 0 : 1;
      expect(readFileSync(path).equals(whole(result.isError === true ? "old-1" : newText)), textOf(result)).toBe(true);
    }),
    { numRuns },
  );
  expect(edited).toBeGreaterThan(numRuns / 4);
});

test("several replacements are all made, or none, whatever their order", async () => {
  await fc.assert(
    fc.asyncProperty(
      file,
      fc.array(fc.nat(), { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      async ({ lines, lastEnd }, picks, broken) => {
        const texts = lines.map(([text], index) => `<${index}>${text}|`);
        const ends = lines.map(([, lineEnd], index) => (index === lines.length - 1 && !lastEnd ? "" : lineEnd));
        const chosen = [...new Set(picks.map((pick) => pick % lines.length))];
        const path = join(b.cwd, "many.txt");
        const whole = (changed: readonly number[]) =>
          texts.map((text, index) => (changed.includes(index) ? `[${index}]$&` : text) + ends[index]).join("");
        writeFileSync(path, whole([]));
        const edits = chosen.map((index) => ({ oldText: texts[index], newText: `[${index}]$&` }));
        const result = await b.call(edit, {
          path: "many.txt",
          edits: broken ? [...edits, { oldText: "<none>", newText: "" }] : edits,
        });
        expect(result.isError === true).toBe(broken);
        expect(readFileSync(path, "utf8")).toBe(whole(broken ? [] : chosen));
      },
    ),
    { numRuns: numRuns / 2 },
  );
});

test("a patch makes of one file the other, also when its counts are wrong", async () => {
  const line = fc.constantFrom("a", "b", "", " ", "  c", "-- x", "++ y", "@@ z", "$&");
  const text = fc
    .tuple(fc.array(line, { maxLength: 10 }), fc.boolean())
    .map(([lines, newline]) => lines.join("\n") + (newline && lines.length > 0 ? "\n" : ""));
  await fc.assert(
    fc.asyncProperty(text, text, fc.nat(3), fc.boolean(), async (before, after, context, lies) => {
      fc.pre(before !== after);
      const path = join(b.cwd, "patched.txt");
      writeFileSync(path, before);
      const right = createTwoFilesPatch("a/patched.txt", "b/patched.txt", before, after, "", "", { context });
      // Hunks that only add keep theirs: it is the only thing that says where they belong.
      const patch = lies ? right.replace(/^@@ -(\d+),([1-9]\d*) \+(\d+),(\d+) @@/gm, "@@ -$1,2$2 +$3,7$4 @@") : right;
      const result = await b.call(edit, { patch });
      expect(textOf(result)).toMatch(/^Edited patched\.txt/);
      expect(readFileSync(path, "utf8")).toBe(after);
    }),
    { numRuns: numRuns / 4 },
  );
});
