import fc from "fast-check";
import { expect, test } from "vitest";
import { literalOf, matcher } from "../../builtin-tools/_glob.ts";

const runs = process.env["MORTISE_SOAK"] ? 100_000 : 3000;
const piece = fc.constantFrom(
  "a",
  "b",
  "ab",
  ".",
  "ä",
  "*",
  "**",
  "?",
  "/",
  "[ab]",
  "[!a]",
  "{a,b}",
  "{a,b/*}",
  "(a|b)",
  "\\*",
  "\\",
  "+",
  "@",
  "!",
  '"',
  "{",
  "[",
  "]",
  "(",
  ")",
  "|",
  ",",
  "$",
  "^",
  " ",
);
const pathPiece = fc.constantFrom(
  "a",
  "b",
  "ab",
  ".",
  "ä",
  "/",
  "*",
  "+",
  "@",
  "!",
  '"',
  "(",
  "a|b",
  "[",
  "{",
  ",",
  "$",
  "\\",
  " ",
);

test("the literal of a glob stands in every path that the glob matches", async () => {
  let matched = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(piece, { minLength: 1, maxLength: 6 }),
      fc.array(fc.array(pathPiece, { minLength: 1, maxLength: 6 }), { minLength: 5, maxLength: 20 }),
      async (pieces, paths) => {
        const glob = pieces.join("");
        const literal = literalOf(glob);
        const matches = await matcher(glob).catch(() => () => false);
        // The glob's own text is a path as well.
        for (const path of [...paths.map((parts) => parts.join("")), glob, glob.replace(/[\\"*]/g, "")]) {
          if (!matches(path)) continue;
          matched++;
          if (literal !== undefined) expect(path, glob).toContain(literal.toString());
        }
      },
    ),
    { numRuns: runs },
  );
  expect(matched).toBeGreaterThan(runs / 20);
});

test("characters that mean something in regular expressions only are plain", async () => {
  for (const name of ["c++", "a$b", "x+(1)", "^a", "a.b", "a|b"]) expect((await matcher(name))(name), name).toBe(true);
  expect((await matcher("c++"))("cc")).toBe(false);
  expect((await matcher("a.b"))("axb")).toBe(false);
});

test.each([
  ["*.needle", ".needle"],
  ["src/**/*.test.ts", ".test.ts"],
  ["*.{ts,tsx}", undefined],
  ["[a-z]name", "name"],
  ["**", undefined],
])("the literal of %s is %s", (glob, literal) => {
  expect(literalOf(glob)?.toString()).toBe(literal);
});
