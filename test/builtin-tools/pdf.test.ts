// PDFs as text: fonts, layout, packed objects, and files that are broken on purpose.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { ToolError } from "mortise/extension";
import { expect, it } from "vitest";
import { pdfText } from "../../builtin-tools/_pdf.ts";
import { unpack } from "../../builtin-tools/_pdf-filters.ts";
import { patience, useRigs } from "./_built.ts";
import { LOCKED, OPEN } from "./_encrypted.ts";
import { lzwPacked, onePage, pdf } from "./_pdf.ts";

const { open } = useRigs();
const never = new AbortController().signal;
const read = (file: Buffer) => pdfText(file, "x.pdf", never);
const lines = async (file: Buffer) =>
  (await read(file)).text
    .split("\n")
    .slice(1)
    .filter((line) => line !== "");

it("reads strings of every form, and finds lines and blanks from places", async () => {
  const content = `BT /F1 10 Tf 50 700 Td (Plain \\(nested \\(parens\\)\\) and \\344\\
continued) Tj 0 -12 Td <48657861> Tj [(wo) 20 (rd) -400 (next)] TJ T* 14 TL T* (line) ' 1 2 (quoted) " ET
q 1 0 0 1 0 -300 cm BT /F1 10 Tf 50 700 Td (far below) Tj ET Q
BT /F1 10 Tf 1 0 0 1 50 700 Tm ( ) Tj ET`;
  expect(await lines(onePage(content))).toEqual([
    "Plain (nested (parens)) and äcontinued",
    "Hexaword next",
    "line",
    "quoted",
    "far below",
  ]);
});

it("knows encodings, differences and their names", async () => {
  const font =
    "<< /Type /Font /Subtype /Type1 /BaseFont /X /Encoding << /BaseEncoding /MacRomanEncoding /Differences [1 /fi /eacute /uni20AC /Scaron 66 /bar /one.alt /g17] >> >>";
  const { text, notes } = await read(onePage("BT /F1 10 Tf (A\\212\\001\\002\\003\\004BCD) Tj ET", font));
  expect(text).toBe("=== page 1 of 1\nAäfié€Š|1\ufffd\n");
  expect(notes).toEqual(["1 characters are shown as U+FFFD: the file does not say which they are"]);
});

const map = `/CIDInit /ProcSet findresource begin 1 begincodespacerange <0000> <ffff> endcodespacerange
2 beginbfchar <0001> <0048> <0002> <D83EDDEA> endbfchar 2 beginbfrange <0010> <0012> <0061> <0020> <0021> [<00660069> <4E2D>] endbfrange end`;
const composite =
  "<< /Type /Font /Subtype /Type0 /BaseFont /Y /Encoding /Identity-H /DescendantFonts [<< /DW 500 /W [1 [600 700] 16 18 400] >>] /ToUnicode 6 0 R >>";

it("reads composite fonts, forms, inherited resources and pages in their order", async () => {
  const file = pdf([
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [9 0 R 3 0 R] /Resources << /Font << /F1 5 0 R >> /XObject << /Fm 8 0 R >> >> >>",
    "<< /Type /Page /Parent 2 0 R /Contents [4 0 R 7 0 R] >>",
    {
      dict: "",
      data: "BT /F1 12 Tf 10 500 Td <000100020010001100120020> Tj ET /Fm Do q 5 0 0 5 0 0 cm BI /W 1 /H 1 ID ab(EI)c\nEI Q",
    },
    composite,
    { dict: "", data: map },
    { dict: "/Filter [/ASCII85Decode /FlateDecode] /X", data: "", plain: true },
    { dict: "/Subtype /Form /Matrix [1 0 0 1 0 -50]", data: "BT /F1 12 Tf 10 500 Td <0021> Tj ET" },
    "<< /Type /Pages /Kids [10 0 R 9 0 R] >>",
    "<< /Type /Page >>",
  ]);
  expect((await read(file)).text).toBe("=== page 1 of 2\n(no text)\n\n=== page 2 of 2\nH🧪abcfi\n\n中\n");
});

it("reads objects that are packed in streams, and the newest of several versions", async () => {
  const inside = [
    "<< /Type /Catalog /Pages 11 0 R >>",
    "<< /Kids [12 0 R] >>",
    "<< /Contents 3 0 R /Resources << /Font << /F1 2 0 R >> >> >>",
  ];
  const head = inside
    .map((_, index) => `${10 + index} ${inside.slice(0, index).join(" ").length + (index > 0 ? 1 : 0)}`)
    .join(" ");
  const file = pdf(
    [
      { dict: `/Type /ObjStm /N 3 /First ${head.length + 1}`, data: `${head} ${inside.join(" ")}` },
      "<< /Type /Font /Subtype /TrueType /BaseFont /Z /Encoding /WinAnsiEncoding >>",
      { dict: "", data: "BT /F1 9 Tf (old) Tj ET" },
      { dict: "/Type /XRef /Root 10 0 R", data: "" },
    ],
    "<< /Size 5 >>",
  );
  expect(await lines(file)).toEqual(["old"]);
  const newer = Buffer.from("3 0 obj << /Length 4 0 R >> stream\nBT /F1 9 Tf (new) Tj ET\nendstream endobj");
  expect(await lines(Buffer.concat([file, newer]))).toEqual(["new"]);
});

it.each([
  [
    "encrypted",
    pdf(["<< /Type /Catalog /Pages 2 0 R >>"], "<< /Root 1 0 R /Encrypt 5 0 R >>"),
    /x\.pdf: it is a PDF document of .*, encrypted with a password or key$/,
  ],
  ["without text", onePage("q 1 0 0 1 0 0 cm /Im1 Do Q"), /whose 1 pages hold no text, only images or shapes$/],
  ["without pages", Buffer.from("%PDF-1.4\n1 0 obj << /Type /Catalog >> endobj"), /but damaged or without pages$/],
  [
    "with pages that contain themselves",
    pdf(["<< /Type /Catalog /Pages 2 0 R >>", "<< /Kids [2 0 R 1 0 R 2 0 R] >>"]),
    /damaged|no text/,
  ],
])("refuses a file %s", async (_name, file, reason) => {
  await expect(read(file)).rejects.toThrow(reason);
});

it("ends on damaged files with text or a plain refusal", { timeout: 120_000 }, async () => {
  const file = pdf([
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Kids [3 0 R] >>",
    "<< /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> /XObject << /Fm 4 0 R >> >> >>",
    { dict: "/Subtype /Form", data: "BT /F1 12 Tf 10 500 Td [<0001> -300 (\\001)] TJ ET /Fm Do", plain: true },
    composite,
    { dict: "", data: map, plain: true },
  ]);
  const damage = fc.array(fc.record({ at: fc.nat(file.length - 1), cut: fc.nat(30), put: fc.uint8Array({ maxLength: 12 }) }), {
    minLength: 1,
    maxLength: 12,
  });
  await fc.assert(
    fc.asyncProperty(damage, async (changes) => {
      let broken = file;
      for (const { at, cut, put } of changes) broken = Buffer.concat([broken.subarray(0, at), put, broken.subarray(at + cut)]);
      try {
        expect((await read(broken)).text.isWellFormed()).toBe(true);
      } catch (error) {
        if (!ToolError.is(error)) throw error;
      }
    }),
    { numRuns: process.env["MORTISE_SOAK"] ? 20_000 : 300 },
  );
});

it.each(Object.entries(OPEN))("reads what is encrypted without a password: %s", async (_name, file) => {
  expect((await read(Buffer.from(file, "base64"))).text).toBe("=== page 1 of 1\nA secret that anybody may read\n");
});

it.each(Object.entries(LOCKED))("refuses what takes one: %s", async (_name, file) => {
  await expect(read(Buffer.from(file, "base64"))).rejects.toThrow(/encrypted with a password or key$/);
});

it("ends on damaged encryption with text or a plain refusal", async () => {
  const files = Object.values(OPEN).map((file) => Buffer.from(file, "base64"));
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...files),
      fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 6 }),
      async (file, damage) => {
        const broken = Buffer.from(file);
        for (const [place, byte] of damage) broken[place % broken.length] = byte;
        const text = await read(broken).then(
          (result) => result.text,
          (error: unknown) => (ToolError.is(error) ? "" : Promise.reject(error)),
        );
        expect(text.isWellFormed()).toBe(true);
      },
    ),
    { numRuns: process.env["MORTISE_SOAK"] ? 2000 : 150 },
  );
});

it("unpacks what older programs packed", async () => {
  // The example of the standard.
  const example = Buffer.from([0x80, 0x0b, 0x60, 0x50, 0x22, 0x0c, 0x0c, 0x85, 0x01]);
  const lzw = (bytes: Buffer, earlyChange = true) => unpack(bytes, "LZWDecode", { earlyChange });
  expect(await lzw(example)).toEqual(Buffer.from([45, 45, 45, 45, 45, 65, 45, 45, 45, 66]));
  const runs = Buffer.from([2, 97, 98, 99, 254, 120, 128, 9, 9]);
  expect(await unpack(runs, "RunLengthDecode", { earlyChange: true })).toEqual(Buffer.from("abcxxx"));
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 6000 }),
    fc.tuple(fc.array(fc.constantFrom(32, 97, 98), { minLength: 1, maxLength: 9 }), fc.nat(3000)).map(([some, times]) => {
      return Uint8Array.from(Array.from({ length: times }, () => some).flat());
    }),
  );
  await fc.assert(
    fc.asyncProperty(bytes, fc.boolean(), async (data, early) => {
      const packed = lzwPacked(Buffer.from(data), early ? 1 : 0);
      expect((await lzw(packed, early))?.equals(Buffer.from(data))).toBe(true);
    }),
    { numRuns: 60 },
  );
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (data) => void (await lzw(Buffer.from(data)))),
    {
      numRuns: 200,
    },
  );
  const content = lzwPacked(Buffer.from("BT /F1 12 Tf 10 500 Td (packed long ago) Tj ET"), 0);
  const parts = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 /Resources << /Font << /F1 4 0 R >> >> >>",
    "<< /Type /Page /Parent 2 0 R /Contents 5 0 R >>",
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    { dict: "/Filter [/LZWDecode] /DecodeParms [<< /EarlyChange 0 >>]", data: content, plain: true },
  ];
  expect((await read(pdf(parts))).text).toContain("packed long ago");
});

it("gives the model pages with selectors, on the built daemon", patience, async () => {
  const rig = await open();
  const content = Array.from(
    { length: 40 },
    (_, index) => `BT /F1 10 Tf 50 ${700 - index * 12} Td (row ${index + 1}) Tj ET`,
  ).join("\n");
  writeFileSync(join(rig.daemon.cwd, "table.pdf"), onePage(content));
  const whole = await rig.call("read", { path: "table.pdf" });
  expect(whole).toMatchObject({ isError: false, details: { contentType: "application/pdf" } });
  expect(whole.text).toMatch(/^=== page 1 of 1\nrow 1\nrow 2\n/);
  expect((await rig.call("read", { path: "table.pdf:11-12" })).text).toContain("row 10\nrow 11\n");
});

const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/google-chrome"].find((path) => existsSync(path));

it.skipIf(CHROMIUM === undefined)("reads what a browser prints", { timeout: 120_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "mortise-pdf-"));
  const page =
    "<meta charset=utf-8><h1>Größe &amp; “quotes” — déjà vu</h1><p>An efficient office</p><table><tr><td>Alpha</td><td>12.50</td></tr></table>";
  writeFileSync(join(folder, "a.html"), `${page}<p style="page-break-before:always">Second page<br>кириллица</p>`);
  const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", `--user-data-dir=${folder}/profile`];
  execFileSync(CHROMIUM ?? "", [...flags, `--print-to-pdf=${folder}/a.pdf`, `file://${folder}/a.html`], {
    stdio: "ignore",
    timeout: 100_000,
  });
  const { text, notes } = await read(readFileSync(join(folder, "a.pdf")));
  rmSync(folder, { recursive: true, force: true });
  expect(notes).toEqual([]);
  expect(text.split("\n").filter((line) => line !== "")).toEqual([
    ...["=== page 1 of 2", "Größe & “quotes” — déjà vu", "An efficient office", "Alpha 12.50"],
    ...["=== page 2 of 2", "Second page", "кириллица"],
  ]);
});
