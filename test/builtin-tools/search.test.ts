import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Uris } from "mortise/extension";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import find from "../../builtin-tools/find.ts";
import grep from "../../builtin-tools/grep.ts";
import ls from "../../builtin-tools/ls.ts";
import { type Bench, bench, textOf } from "./_support.ts";

let b: Bench;
beforeEach(() => {
  b = bench();
});
afterEach(() => b.close());

function put(name: string, content: string | Buffer = ""): void {
  const path = join(b.cwd, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}
const text = async (tool: Parameters<Bench["call"]>[0], args: Record<string, unknown>) =>
  textOf(await b.call(tool as never, args));

describe("grep", () => {
  test("gives path, line and text, sorted, without ignored files", async () => {
    put("b.ts", "x\nneedle 1\n");
    put("a/c.ts", "needle 2\n");
    put(".hidden", "needle 3\n");
    put(".gitignore", "dist\n");
    put("dist/d.ts", "needle 4\n");
    put(".git/config", "needle 5\n");
    const result = await b.call(grep, { pattern: "needle \\d" });
    expect(textOf(result)).toBe(".hidden:1: needle 3\na/c.ts:1: needle 2\nb.ts:2: needle 1");
    expect(result.details).toMatchObject({ matchCount: 3, fileCount: 3 });
    expect(await text(grep, { pattern: "needle", glob: "*.ts" })).toBe("a/c.ts:1: needle 2\nb.ts:2: needle 1");
    expect(await text(grep, { pattern: "NEEDLE 1", ignoreCase: true, path: "b.ts" })).toBe("b.ts:2: needle 1");
    expect(await text(grep, { pattern: "nothing" })).toBe("No matches");
  });

  test("shows context in groups", async () => {
    put("a.txt", "1\n2\nx\n4\n5\n6\n7\nx\n9\n");
    expect(await text(grep, { pattern: "x", context: 1 })).toBe(
      "a.txt-2- 2\na.txt:3: x\na.txt-4- 4\n--\na.txt-7- 7\na.txt:8: x\na.txt-9- 9",
    );
    expect(await text(grep, { pattern: "x", context: 1, limit: 1 })).toMatch(/^a.txt-2- 2\na.txt:3: x\n\[1 matches shown/);
  });

  test("a limit says how to go on, and skip goes on", async () => {
    put("a.txt", Array.from({ length: 250 }, (_, index) => `n${index + 1}\n`).join(""));
    const first = await text(grep, { pattern: "n" });
    expect(first).toMatch(/\na.txt:100: n100\n\[100 matches shown, there are more; continue with skip=100/);
    expect(await text(grep, { pattern: "n", skip: 200 })).toMatch(/^a.txt:201: n201\n[\s\S]*\na.txt:250: n250$/);
  });

  test("long lines are cut on a whole character", async () => {
    put("a.txt", `needle${"🧪".repeat(1000)}\n`);
    const result = await b.call(grep, { pattern: "needle" });
    expect(textOf(result).isWellFormed()).toBe(true);
    expect(result.details).toMatchObject({ linesTruncated: true });
  });

  test("a pattern may span lines and a file may hold odd bytes", async () => {
    put("a.txt", "one\ntwo\n");
    expect(await text(grep, { pattern: "one\ntwo" })).toBe("a.txt:1: one\na.txt:2: two");
    put("b.txt", Buffer.from([0xb0, 0xa1, 0x6e, 0x65, 0x65, 0x64, 10]));
    expect(await text(grep, { pattern: "need" })).toContain("b.txt:1: \ufffd");
  });

  test("line ends of CRLF files are as a reader sees them", async () => {
    put("a.txt", "foo\r\n  bar\r\nfoobar\r\n");
    expect(await text(grep, { pattern: "foo$" })).toBe("a.txt:1: foo");
    for (const args of [{ pattern: "foo\n  bar" }, { pattern: "foo\\n\\s+bar" }, { pattern: "foo\n  bar", literal: true }]) {
      expect(await text(grep, args), args.pattern).toBe("a.txt:1: foo\na.txt:2:   bar");
    }
    put("a.txt", "a.c\nd\nabc\nd\n[\n]\n");
    expect(await text(grep, { pattern: "a.c\nd", literal: true })).toBe("a.txt:1: a.c\na.txt:2: d");
    expect(await text(grep, { pattern: "c\n[^\\n]" })).toBe("a.txt:1: a.c\na.txt:2: d\na.txt:3: abc\na.txt:4: d");
  });

  test("look-around and back-references work, and what cannot be a pattern says how to search for it", async () => {
    put("a.txt", "xfoo\nfoo(\nabab\n");
    expect(await text(grep, { pattern: "(?<=x)foo" })).toBe("a.txt:1: xfoo");
    expect(await text(grep, { pattern: "foo(?!\\()" })).toBe("a.txt:1: xfoo");
    expect(await text(grep, { pattern: "(ab)\\1" })).toBe("a.txt:3: abab");
    expect(await b.call(grep, { pattern: "foo(" })).toMatchObject({ isError: true });
    expect(await text(grep, { pattern: "foo(" })).toMatch(/unclosed group[\s\S]*Set literal/);
    expect(await text(grep, { pattern: "foo(", literal: true })).toBe("a.txt:2: foo(");
    expect(await text(grep, { pattern: "foo\\|abab" })).toMatch(/^No matches\n\[\\\| stands for the character/);
  });

  test("of a long line the part with the match is shown, and nothing is said of lines that were passed over", async () => {
    put("a.txt", `${"🧪".repeat(3000)}needle${"é".repeat(3000)}\nneedle\n`);
    const [line, ...rest] = (await text(grep, { pattern: "needle" })).split("\n");
    expect(line).toMatch(/^a\.txt:1: …(?:🧪)+needleé+…$/);
    expect(line?.length).toBeLessThan(520);
    expect(rest).toEqual(["a.txt:2: needle", expect.stringMatching(/^\[Of long lines/)]);
    expect(await text(grep, { pattern: "needle", skip: 1 })).toBe("a.txt:2: needle");
    put("a.txt", `${"x".repeat(3000)}needle\n`);
    expect(await text(grep, { pattern: "needle" })).toMatch(/^a\.txt:1: …x+needle\n/);
  });

  test("abort ends the search", async () => {
    await expect(b.call(grep, { pattern: "x" }, AbortSignal.abort())).rejects.toThrow();
  });
});

describe("case 14: values that look like flags", () => {
  beforeEach(() => {
    put("p.sh", '#!/bin/sh\ntouch "$(dirname "$0")/RAN"\ncat "$1"\n');
    chmodSync(join(b.cwd, "p.sh"), 0o755);
    put("a.txt", "--pre=./p.sh\n-needle\n--version\nx\n");
  });
  afterEach(() => {
    expect(existsSync(join(b.cwd, "RAN"))).toBe(false);
    expect(existsSync(join(b.cwd, "a.txt"))).toBe(true);
  });

  test("are searched for", async () => {
    expect(await text(grep, { pattern: "--pre=./p.sh" })).toContain("a.txt:1: --pre=./p.sh");
    expect(await text(grep, { pattern: `--pre=${b.cwd}/p.sh` })).toBe("No matches");
    expect(await text(grep, { pattern: "-needle" })).toBe("a.txt:2: -needle");
    expect(await text(grep, { pattern: "--version" })).toBe("a.txt:3: --version");
    expect(await text(grep, { pattern: "-f/etc/passwd" })).toBe("No matches");
    expect(await text(grep, { pattern: "--" })).toContain("a.txt:1: --pre");
  });

  test("are paths and globs in their places", async () => {
    expect(await text(grep, { pattern: "x", path: "--pre=./p.sh" })).toContain("No such file or directory");
    expect(await text(grep, { pattern: "x", glob: "--pre=./p.sh" })).toBe("No matches");
    for (const pattern of ["-delete", "-exec", "-fprint=RAN"])
      expect(await text(find, { pattern })).toContain(`Nothing matches ${pattern}`);
    expect(await text(find, { pattern: "*", path: "-L" })).toContain("No such file or directory");
    expect(await text(ls, { path: "-la" })).toContain("No such file or directory");
  });

  test("patterns that cannot be searched are errors", async () => {
    for (const pattern of ["(", "a".repeat(200_000), "a\0b"]) {
      const result = await b.call(grep, { pattern });
      expect(result.isError).toBe(true);
      expect(textOf(result).length).toBeLessThan(500);
    }
    expect(await b.call(grep, { pattern: "x", glob: "[" })).toMatchObject({ isError: true });
    expect(await b.call(find, { pattern: "*a*a*a*a*a*a*b" })).toMatchObject({ isError: true });
  });
});

describe("find", () => {
  test("finds files and directories by name or path", async () => {
    for (const name of ["src/a.ts", "src/deep/b.ts", "src/deep/c.js", ".env", "node_modules/x/i.ts"]) put(name);
    put(".gitignore", "node_modules\n");
    expect(await text(find, { pattern: "*.ts" })).toBe("src/a.ts\nsrc/deep/b.ts");
    expect(await text(find, { pattern: "src/**/*.{ts,js}" })).toBe("src/a.ts\nsrc/deep/b.ts\nsrc/deep/c.js");
    expect(await text(find, { pattern: "deep" })).toBe("src/deep/");
    expect(await text(find, { pattern: ".env*" })).toBe(".env");
    expect(await text(find, { pattern: "*.ts", path: "src/deep" })).toBe("src/deep/b.ts");
    expect(await text(find, { pattern: "*", path: "src/a.ts" })).toContain("not a directory");
  });

  test("goes on after a limit", async () => {
    for (let index = 0; index < 12; index++) put(`f${String(index).padStart(2, "0")}`);
    const result = await b.call(find, { pattern: "f*", limit: 5 });
    expect(textOf(result)).toMatch(/f04\n\[5 entries shown, there are more; continue with skip=5/);
    expect(result.details).toMatchObject({ resultLimitReached: 5 });
    expect(await text(find, { pattern: "f*", limit: 5, skip: 10 })).toBe("f10\nf11");
  });
});

test("ls lists sorted names with directories marked", async () => {
  for (const name of ["b", ".a", "c/x"]) put(name);
  symlinkSync("c", join(b.cwd, "d"));
  symlinkSync("gone", join(b.cwd, "e"));
  expect(await text(ls, {})).toBe(".a\nb\nc/\nd/\ne");
  expect(await text(ls, { limit: 2, skip: 1 })).toBe("b\nc/\n[2 of 5 entries shown; continue with skip=3]");
  expect(await text(ls, { path: "b" })).toBe("b");
});

test("virtual URLs are refused by all three", async () => {
  const own = bench({ services: { [Uris.name]: { schemeOf: () => "db" } } });
  for (const [tool, args] of [
    [grep, { pattern: "x", path: "db://x" }],
    [find, { pattern: "x", path: "db://x" }],
    [ls, { path: "db://x" }],
  ] as const) {
    expect(textOf(await own.call(tool as never, args))).toContain("files and directories only");
  }
  await own.close();
});

test("a pattern or path in the wrong place says where it belongs", async () => {
  put("src/a.ts");
  expect(await text(find, { pattern: `${b.cwd}/src/*.ts` })).toBe("src/a.ts");
  expect(await text(find, { pattern: "/src/*.ts" })).toBe("src/a.ts");
  expect(await text(find, { pattern: "../src/*.ts", path: "src" })).toBe("src/a.ts");
  expect(await text(find, { pattern: "../*.ts", path: "src" })).toContain(`give "${b.cwd}" as path and "*.ts" as pattern`);
  expect(await text(find, { pattern: "/etc/host*" })).toContain('give "/etc" as path and "host*" as pattern');
  expect(await text(find, { pattern: "none.ts" })).toContain("Ignored files, empty directories and symbolic links");
  expect(await text(grep, { pattern: "x", path: "src/*.ts" })).toBe(
    "No such file or directory: src/*.ts; give wildcards as glob",
  );
  expect(await text(ls, { path: "src/*.ts" })).toContain("find takes wildcards");
});

test.skipIf(process.getuid?.() === 0)("a directory that may not be read is named, whatever would look in it", async () => {
  put("closed/a.ts", "x");
  chmodSync(join(b.cwd, "closed"), 0);
  for (const [tool, args] of [
    [grep, { pattern: "x" }],
    [find, { pattern: "*" }],
    [ls, {}],
  ] as const) {
    expect(await text(tool as typeof grep, { ...args, path: "closed" })).toBe("Cannot look in closed: permission denied");
  }
  chmodSync(join(b.cwd, "closed"), 0o755);
});
