import { appendFileSync, chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { Uris } from "mortise/extension";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import edit from "../../builtin-tools/edit.ts";
import readUnit from "../../builtin-tools/read.ts";
import write from "../../builtin-tools/write.ts";
import { type Bench, bench, textOf } from "./_support.ts";

const [read] = readUnit;
if (read?.kind !== "tool") throw new Error("read.ts contributes no tool");

let b: Bench;
beforeEach(() => {
  b = bench();
});
afterEach(() => b.close());

const at = (name: string) => join(b.cwd, name);
const put = (name: string, content: string | Buffer) => writeFileSync(at(name), content);
const get = (name: string) => readFileSync(at(name), "utf8");
const change = (path: string, oldText: string, newText: string, more: Record<string, unknown> = {}) =>
  b.call(edit, { path, oldText, newText, ...more });
const numbers = Array.from({ length: 100 }, (_, index) => `${index + 1}\n`).join("");

describe("case 15: several changes of one file", () => {
  test("A: three edits at once, by three names, are all on disk", async () => {
    put("nums.txt", numbers);
    mkdirSync(at("sub"));
    symlinkSync("nums.txt", at("link.txt"));
    const results = await Promise.all([
      change("nums.txt", "\n12\n", "\ntwelve\n"),
      change("./sub/../nums.txt", "\n34\n", "\nthirty-four\n"),
      change("link.txt", "\n56\n", "\nfifty-six\n"),
    ]);
    expect(results.every((result) => result.isError === undefined)).toBe(true);
    expect(get("nums.txt")).toBe(
      numbers.replace("\n12\n", "\ntwelve\n").replace("\n34\n", "\nthirty-four\n").replace("\n56\n", "\nfifty-six\n"),
    );
    expect(statSync(at("link.txt")).ino).toBe(statSync(at("nums.txt")).ino);
  });

  test("B: a hundred edits in parallel are all on disk", async () => {
    put("nums.txt", numbers);
    const all = Array.from({ length: 98 }, (_, index) => index + 2);
    await Promise.all(all.map((line) => change("nums.txt", `\n${line}\n`, `\nline ${line}\n`)));
    expect(get("nums.txt")).toBe(`1\n${all.map((line) => `line ${line}\n`).join("")}100\n`);
  });

  test("C: changes from outside survive an edit, and a stale write says what it did", async () => {
    put("nums.txt", numbers);
    await b.call(read, { path: "nums.txt" });
    put("nums.txt", `${numbers.replace("\n10\n", "\nten\n")}101\n`);
    expect(await change("nums.txt", "\n60\n", "\nsixty\n")).not.toHaveProperty("isError");
    expect(get("nums.txt")).toBe(`${numbers.replace("\n10\n", "\nten\n").replace("\n60\n", "\nsixty\n")}101\n`);
    const failed = await change("nums.txt", "\n10\n", "\nTEN\n");
    expect(failed).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/not found; the file changed since it was read/) }],
    });
    const written = await b.call(write, { path: "nums.txt", content: numbers });
    expect(textOf(written)).toContain("the file had changed since it was read");
    expect(written.details).toMatchObject({ changedSinceRead: true });
    expect(textOf(await b.call(write, { path: "nums.txt", content: numbers }))).not.toContain("Warning");
  });
});

describe("case 16: line ends, byte order mark, typography", () => {
  test("CRLF and BOM are kept, in new lines as well", async () => {
    put("crlf.txt", "\ufeffone\r\ntwo\r\nthree\r\n");
    await change("crlf.txt", "one\ntwo", "ONE\nTWO\nextra");
    expect(get("crlf.txt")).toBe("\ufeffONE\r\nTWO\r\nextra\r\nthree\r\n");
    await change("crlf.txt", "TWO\r\nextra", "2\r\nX");
    expect(get("crlf.txt")).toBe("\ufeffONE\r\n2\r\nX\r\nthree\r\n");
  });

  test("mixed line ends and a missing final newline stay", async () => {
    put("mixed.txt", "one\r\ntwo\nthree\r\nfour");
    await change("mixed.txt", "two", "2");
    expect(get("mixed.txt")).toBe("one\r\n2\nthree\r\nfour");
    await change("mixed.txt", "one\n2\nthree", "one\n2\nthree!");
    expect(get("mixed.txt")).toBe("one\r\n2\nthree!\r\nfour");
  });

  const quotes = "He said “no” — it’s fine…\nHe said “no” — it’s\u00a0fine…\n";
  test("an ambiguous edit names the number of matches and their lines", async () => {
    put("quotes.md", quotes);
    const result = await change("quotes.md", 'He said "no"', 'She said "yes"');
    expect(textOf(result)).toContain("occurs 2 times (lines 1, 2)");
    expect(get("quotes.md")).toBe(quotes);
  });

  test("a tolerant match changes its span only", async () => {
    put("quotes.md", quotes);
    await change("quotes.md", "it's fine...\nHe said \"no\" - it's", "it's fine...\nShe said \"no\" - it's");
    expect(get("quotes.md")).toBe("He said “no” — it’s fine…\nShe said “no” — it’s\u00a0fine…\n");
  });

  test("an exact match wins over a normalised one", async () => {
    put("cjk.txt", "ＡＢＣ　価格：１２３\nABC 価格:123\n");
    await change("cjk.txt", "ABC 価格:123", "X");
    expect(get("cjk.txt")).toBe("ＡＢＣ　価格：１２３\nX\n");
    await change("cjk.txt", "ABC 価格:123", "Y");
    expect(get("cjk.txt")).toBe("Y\nX\n");
  });

  test("no-op and empty old text fail and leave the file alone", async () => {
    put("a.txt", "one\n");
    chmodSync(at("a.txt"), 0o640);
    const before = statSync(at("a.txt"));
    expect(textOf(await change("a.txt", "one", "one"))).toContain("nothing would change");
    expect(textOf(await change("a.txt", "", "x"))).toContain("empty");
    expect(textOf(await change("a.txt", "one\r\n", "one\n"))).toContain("nothing would change");
    const after = statSync(at("a.txt"));
    expect([after.mtimeMs, after.mode, after.ino]).toEqual([before.mtimeMs, before.mode, before.ino]);
  });
});

describe("matching", () => {
  test("$ and other patterns are literal", async () => {
    put("a.txt", "cost: x\n");
    await change("a.txt", "x", "$& $1 $$ $`");
    expect(get("a.txt")).toBe("cost: $& $1 $$ $`\n");
  });

  test("blanks at line ends and tabs for spaces are tolerated, indentation follows the file", async () => {
    put("a.py", "def f():   \n\treturn 1\n\nx = 2\n");
    const result = await change("a.py", "def f():\n    return 1\n", "def f():\n    y = 1\n    return y\n");
    expect(get("a.py")).toBe("def f():   \n\ty = 1\n\treturn y\n\nx = 2\n");
    expect(textOf(result)).toContain("different spacing");
  });

  test("all replaces every place", async () => {
    put("a.txt", "a b a b a\n");
    await change("a.txt", "a", "c", { all: true });
    expect(get("a.txt")).toBe("c b c b c\n");
  });

  test("several edits are matched against the file as it was; overlaps fail as a whole", async () => {
    put("a.txt", "one two three\n");
    const edits = [
      { oldText: "one", newText: "two" },
      { oldText: "two", newText: "one" },
    ];
    await b.call(edit, { path: "a.txt", edits });
    expect(get("a.txt")).toBe("two one three\n");
    const overlap = [
      { oldText: "two one", newText: "x" },
      { oldText: "one three", newText: "y" },
    ];
    expect(textOf(await b.call(edit, { path: "a.txt", edits: overlap }))).toContain("edit 1 and edit 2 overlap");
    expect(get("a.txt")).toBe("two one three\n");
  });

  test("whatever is found, everything outside the span stays byte for byte", () => {
    const piece = fc.constantFrom("a", "b", " ", "\t", "\n", "\r\n", "“", '"', "—", "-", "\u00a0", "…", "...", "é", "Ａ", "🧪");
    const text = (length: number) => fc.array(piece, { minLength: 1, maxLength: length }).map((parts) => parts.join(""));
    return fc.assert(
      fc.asyncProperty(text(20), text(6), text(20), text(6), async (before, span, after, newText) => {
        put("p.txt", before + span + after);
        const source = before + span + after;
        const result = await change("p.txt", span, newText);
        if (result.isError) {
          expect(get("p.txt")).toBe(source);
          return;
        }
        const now = get("p.txt");
        // An exact, unique match was somewhere; the text around it is untouched.
        const first = source.replaceAll("\r\n", "\n").indexOf(span.replaceAll("\r\n", "\n"));
        const lf = source.replaceAll("\r\n", "\n");
        const expected =
          lf.slice(0, first) + newText.replaceAll("\r\n", "\n") + lf.slice(first + span.replaceAll("\r\n", "\n").length);
        expect(now.replaceAll("\r\n", "\n")).toBe(expected);
      }),
      { numRuns: process.env["MORTISE_SOAK"] ? 5000 : 150 },
    );
  });
});

describe("patches and details", () => {
  test("a unified diff is applied, CRLF files included", async () => {
    put("a.txt", "1\r\n2\r\n3\r\n");
    const patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n";
    const result = await b.call(edit, { patch });
    expect(textOf(result)).toContain("Edited a.txt in 1 place");
    expect(get("a.txt")).toBe("1\r\ntwo\r\n3\r\n");
    expect(textOf(await b.call(edit, { patch }))).toContain("hunk 1 (@@ -1,3 @@) does not match");
    expect(textOf(await b.call(edit, { patch: "hello", path: "a.txt" }))).toContain("no @@");
  });

  test("a patch needs no right numbers, and keeps what it does not name", async () => {
    const content = "\ufeffone\r\ntwo “x”\nthree  \n\n\tfour\r\nfive";
    const body = ' one\n-two "x"\n+two "y"\n three\n\n     four\n+    more\n five';
    const expected = "\ufeffone\r\ntwo “y”\nthree  \n\n\tfour\r\n\tmore\r\nfive";
    for (const patch of [
      `--- a/a.txt\n+++ b/a.txt\t2026-01-01\n@@ -70,9 +1 @@ heading\n${body}\n`,
      `\`\`\`diff\n--- a.txt\n+++ a.txt\n@@\n${body}\n\`\`\`\nThat is all.`,
      `*** Begin Patch\n*** Update File: a.txt\n@@ nowhere\n${body}\n*** End of File\n*** End Patch`,
      `diff --git a/a.txt b/a.txt\nindex 1..2 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -1,6 +1,7 @@\n${body}\n-- \n2.39.5\n`,
    ]) {
      put("a.txt", content);
      expect(textOf(await b.call(edit, { patch })), patch).toContain("Edited a.txt");
      expect(get("a.txt")).toBe(expected);
    }
  });

  test("a hunk that fits in several places goes where its number or its anchor says, or nowhere", async () => {
    const content = "def a\n  x\n  end\ndef b\n  x\n  end\n";
    const at = (header: string) => `--- a/a.txt\n+++ b/a.txt\n${header}\n-  x\n+  y\n   end\n`;
    const second = content.replace(/x\n {2}end\n$/, "y\n  end\n");
    for (const header of ["@@ -5,2 +5,2 @@", "@@ def b", "@@ def b @@"]) {
      put("a.txt", content);
      await b.call(edit, { patch: at(header) });
      expect(get("a.txt"), header).toBe(second);
    }
    // The first hunk stands one line off, so the next one is looked for as far off.
    put("a.txt", content);
    const shifted = "--- a/a.txt\n+++ b/a.txt\n@@ -2,1 +2,1 @@\n-def a\n+def A\n@@ -6,2 +6,2 @@\n-  x\n+  y\n   end\n";
    await b.call(edit, { patch: shifted });
    expect(get("a.txt")).toBe(second.replace("def a", "def A"));
    put("a.txt", content);
    for (const header of ["@@ -9,2 +9,2 @@", "@@", "@@ def c"]) {
      expect(textOf(await b.call(edit, { patch: at(header) })), header).toMatch(/fits in 2 places \(from line 2, 5/);
    }
    expect(get("a.txt")).toBe(content);
  });

  test("what a patch cannot do is said, with what to do", async () => {
    put("a.txt", "one\ntwo\nthree\n");
    for (const [patch, said] of [
      ["--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+x\n", "it creates a file; use write"],
      ["*** Begin Patch\n*** Add File: new.txt\n+x\n*** End Patch", "it creates a file; use write"],
      ["--- a/a.txt\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n", "it deletes a file; use bash"],
      ["--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-x\n+y\n", "it changes 2 files"],
      ["--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\none\n-two\n+2\n", 'its line 4 ("one") begins with none of'],
      ["--- a/a.txt\n+++ b/a.txt\n@@ -2 +2 @@\n two\n-thrice\n+3\n", 'line 3 reads "three" where it has "thrice"'],
      ["--- a/a.txt\n+++ b/a.txt\n@@ -4 +4 @@\n three\n-four\n", "the file ends before"],
      ["--- a/a.txt\n+++ b/a.txt\n@@ -9,0 +9 @@\n+four\n", "has no line of the file in it"],
      ["@@ -1 +1 @@\n-one\n+1\n", "neither path nor a +++ line names the file"],
    ] as const) {
      expect(textOf(await b.call(edit, { patch })), patch).toContain(said);
    }
    expect(get("a.txt")).toBe("one\ntwo\nthree\n");
  });

  test("the diff has line numbers, and the patch undoes itself", async () => {
    put("nums.txt", numbers);
    const { details } = await change("nums.txt", "\n50\n", "\nfifty\nand more\n");
    expect(details).toMatchObject({
      firstChangedLine: 50,
      diff: " 46 46\n 47 47\n 48 48\n 49 49\n-50 50\n+50 fifty\n+51 and more\n 52 51\n 53 52\n 54 53\n 55 54",
    });
    expect(details).toHaveProperty("patch", expect.stringContaining("@@ -46,9 +46,10 @@"));
  });

  test("the wrong combination of arguments is one clear error", async () => {
    for (const args of [
      { path: "a" },
      { path: "a", oldText: "x" },
      { path: "a", edits: [] },
      { path: "a", patch: "x", oldText: "y", newText: "z" },
    ]) {
      expect(await b.call(edit, args)).toMatchObject({ isError: true });
    }
  });

  test("a text that was not found is compared with what comes closest", async () => {
    put("a.txt", "start\n\tone line\n\tanother\nend\n");
    expect(textOf(await change("a.txt", "  one line\n  an other\nend", "x"))).toContain(
      'it comes closest at line 2, but line 3 reads "\\tanother" where oldText has "  an other"',
    );
    expect(textOf(await change("a.txt", "another\nend\nmore", "x"))).toContain('but the file ends where oldText has "more"');
  });

  test("new lines deeper than all that were matched are indented as the file is", async () => {
    for (const [file, oldText, newText, expected] of [
      ["\tif a:\n\t\tb()\n", "  if a:\n    b()", "  if a:\n    if c:\n      b()", "\tif a:\n\t\tif c:\n\t\t\tb()\n"],
      ["\tb()\n\tc()\n", "    b()\n    c()", "    if a:\n        b()", "\tif a:\n\t\tb()\n"],
      [
        "    if a:\n        b()\n",
        "\tif a:\n\t\tb()",
        "\tif a:\n\t\tif c:\n\t\t\tb()",
        "    if a:\n        if c:\n            b()\n",
      ],
      [
        "      if a:\n        b()\n",
        "  if a:\n    b()",
        "  if a:\n    if c:\n      b()",
        "      if a:\n        if c:\n          b()\n",
      ],
      [
        "  if a:\n    b()\n",
        "    if a:\n        b()",
        "    if a:\n        if c:\n            b()",
        "  if a:\n    if c:\n      b()\n",
      ],
    ] as const) {
      put("a.py", file);
      await change("a.py", oldText, newText);
      expect(get("a.py")).toBe(expected);
    }
  });
});

test("a write that cannot be says why", async () => {
  put("file", "x");
  symlinkSync("loop", at("loop"));
  for (const [path, reason] of [
    ["file/sub", "Cannot write file/sub: a part of the path is a file"],
    ["file/sub/deep", "Cannot write file/sub/deep: a part of the path is not a directory"],
    ["loop", "Cannot write loop: too many symbolic links"],
    ["new/", "Cannot write new/: a file's name does not end in a slash"],
    ["n".repeat(300), `Cannot write ${"n".repeat(300)}: the name is too long`],
  ] as const) {
    expect(await b.call(write, { path, content: "x" })).toMatchObject({ isError: true, content: [{ text: reason }] });
  }
  expect(readdirSync(b.cwd).sort()).toEqual(["file", "loop"]);
});

describe("encodings", () => {
  test("ASCII parts of a file in another encoding change, all else stays byte for byte", async () => {
    put("latin1.txt", Buffer.from("caf\xe9 = 1;\r\nna\xefve = 2;\r\n", "latin1"));
    expect(await change("latin1.txt", "= 2;", "= 3;\n// done")).not.toHaveProperty("isError");
    expect(readFileSync(at("latin1.txt"), "latin1")).toBe("caf\xe9 = 1;\r\nna\xefve = 3;\r\n// done\r\n");
    expect(await change("latin1.txt", "= 3;", "= “3”;")).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("not UTF-8 text, so the edit may hold ASCII characters only") }],
    });
  });

  test.each(["utf-16le", "utf-16be"] as const)("%s keeps its encoding and its mark", async (encoding) => {
    const encode = (text: string) => {
      const bytes = Buffer.from(`\ufeff${text}`, "utf16le");
      return encoding === "utf-16be" ? bytes.swap16() : bytes;
    };
    put("wide.txt", encode("eins\r\nzwei 🧪\r\n"));
    expect(await change("wide.txt", "zwei 🧪", "2 “漢”")).not.toHaveProperty("isError");
    expect(readFileSync(at("wide.txt")).equals(encode("eins\r\n2 “漢”\r\n"))).toBe(true);
  });
});

describe("refusals", () => {
  test.each([
    ["missing.txt", "No such file"],
    ["dir", "directory"],
    ["data.bin", "it is not text"],
  ])("%s", async (path, reason) => {
    mkdirSync(at("dir"), { recursive: true });
    put("data.bin", Buffer.from([0x78, 0xe9, 0, 10]));
    expect(await change(path, "x", "y")).toMatchObject({ isError: true, content: [{ text: expect.stringContaining(reason) }] });
  });

  test("a virtual URL is refused", async () => {
    const own = bench({ services: { [Uris.name]: { schemeOf: () => "db" } } });
    expect(textOf(await own.call(edit, { path: "db://x", oldText: "a", newText: "b" }))).toContain("edit changes files only");
    await own.close();
  });

  test("abort before the write leaves the file alone", async () => {
    put("a.txt", "one\n");
    await expect(b.call(edit, { path: "a.txt", oldText: "one", newText: "two" }, AbortSignal.abort())).rejects.toThrow();
    expect(get("a.txt")).toBe("one\n");
  });
});

describe("write", () => {
  test("creates folders, keeps the mode, follows links, leaves no other file", async () => {
    expect(textOf(await b.call(write, { path: "a/b/c.txt", content: "1" }))).toBe("Created a/b/c.txt (1 bytes)");
    chmodSync(at("a/b/c.txt"), 0o600);
    symlinkSync("b/c.txt", at("a/link"));
    symlinkSync("b/new.txt", at("a/dangling"));
    await b.call(write, { path: "a/link", content: "2" });
    await b.call(write, { path: "a/dangling", content: "3" });
    expect([get("a/b/c.txt"), get("a/b/new.txt"), statSync(at("a/b/c.txt")).mode & 0o777]).toEqual(["2", "3", 0o600]);
    expect(readdirSync(at("a/b")).sort()).toEqual(["c.txt", "new.txt"]);
    expect(readdirSync(at("a")).sort()).toEqual(["b", "dangling", "link"]);
  });

  test("a script becomes executable when it is new", async () => {
    const made = await b.call(write, { path: "s.sh", content: "#!/bin/sh\n" });
    expect(made.details).toMatchObject({ madeExecutable: true });
    expect(statSync(at("s.sh")).mode & 0o100).toBe(0o100);
    chmodSync(at("s.sh"), 0o644);
    await b.call(write, { path: "s.sh", content: "#!/bin/sh\n#\n" });
    expect(statSync(at("s.sh")).mode & 0o777).toBe(0o644);
  });

  test("case 17: a lone surrogate from the model becomes U+FFFD and is told", async () => {
    const result = await b.call(write, { path: "s.txt", content: "a\ud83db" });
    expect(get("s.txt")).toBe("a\ufffdb");
    expect(textOf(result)).toContain("U+FFFD");
  });

  test("directories, devices and files in the way are refused", async () => {
    put("file", "");
    expect(textOf(await b.call(write, { path: ".", content: "" }))).toContain("it is a directory");
    expect(textOf(await b.call(write, { path: "/dev/null", content: "" }))).toContain("character device");
    expect(textOf(await b.call(write, { path: "file/x", content: "" }))).toContain("Cannot write file/x");
  });

  test("a file that nobody read carries no warning", async () => {
    put("a.txt", "1");
    appendFileSync(at("a.txt"), "2");
    expect(textOf(await b.call(write, { path: "a.txt", content: "3" }))).toBe("Overwrote a.txt (1 bytes)");
  });

  test("a virtual URL is written by its owner", async () => {
    const written: string[] = [];
    const uris = { schemeOf: () => "db", write: async (url: string, content: string) => void written.push(url, content) };
    const own = bench({ services: { [Uris.name]: uris } });
    await own.call(write, { path: "db://X", content: "c" });
    expect(written).toEqual(["db://X", "c"]);
    await own.close();
  });
});
