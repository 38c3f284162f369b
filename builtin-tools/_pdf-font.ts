// What the bytes of a PDF's strings mean in a font (ISO 32000-1 §9.6–9.10): the characters, and how far each one moves the pen.
import { type Dict, Lexer, type PdfFile, Word } from "./_pdf-objects.ts";

interface Glyph {
  /** Undefined when the file does not say which character it is. */
  readonly text: string | undefined;
  /** In thousandths of the font's size. */
  readonly width: number;
  /** A single byte 32, which word spacing applies to. */
  readonly isSpace: boolean;
}

export interface Font {
  glyphs(bytes: string): Glyph[];
}

/** Entries of one map or table, twice as many as a font can have characters. */
const MAX_ENTRIES = 131_072;
const DEFAULT_WIDTH = 500;

export async function readFont(file: PdfFile, dict: Dict): Promise<Font> {
  const composite = file.name(dict.get("Subtype")) === "Type0";
  const map = await file.data(dict.get("ToUnicode"));
  const unicode = map === undefined ? undefined : readMap(map);
  const widths = composite ? compositeWidths(file, dict) : simpleWidths(file, dict);
  const size = composite ? (unicode?.size ?? 2) : 1;
  const encoding = composite ? undefined : simpleEncoding(file, dict);
  return {
    glyphs(bytes) {
      const found: Glyph[] = [];
      for (let at = 0; at + size <= bytes.length; at += size) {
        const code = size === 1 ? bytes.charCodeAt(at) : bytes.charCodeAt(at) * 256 + bytes.charCodeAt(at + 1);
        const text = unicode?.characters.get(code) ?? encoding?.[code];
        found.push({ text, width: widths(code), isSpace: size === 1 && code === 32 });
      }
      return found;
    },
  };
}

/** A map from codes to characters, and how many bytes a code has. */
function readMap(source: string): { characters: Map<number, string>; size: number } {
  const characters = new Map<number, string>();
  const lexer = new Lexer(source);
  let operands: unknown[] = [];
  let size = 0;
  let room = MAX_ENTRIES;
  for (let value = lexer.next(); value !== undefined; value = lexer.next()) {
    if (!(value instanceof Word)) {
      operands.push(value);
      continue;
    }
    const strings = operands;
    if (value.word === "endcodespacerange")
      for (const each of strings) if (typeof each === "string") size = Math.max(size, each.length);
    if (value.word === "endbfchar") {
      for (let at = 0; at + 1 < strings.length; at += 2) add(characters, strings[at], strings[at + 1], 0);
    }
    if (value.word === "endbfrange") {
      for (let at = 0; at + 2 < strings.length; at += 3) room -= addRange(characters, strings.slice(at, at + 3), room);
    }
    operands = [];
  }
  return { characters, size: size === 1 ? 1 : 2 };
}

function add(characters: Map<number, string>, code: unknown, target: unknown, step: number): void {
  if (typeof code !== "string" || typeof target !== "string" || target === "") return;
  const bytes = Buffer.from(target.length % 2 === 0 ? target : `\0${target}`, "latin1");
  bytes.writeUInt16BE((bytes.readUInt16BE(bytes.length - 2) + step) & 0xffff, bytes.length - 2);
  const text = bytes.swap16().toString("utf16le").toWellFormed();
  characters.set(numberOf(code) + step, text);
}

/** Gives the number of entries, at most `room`. */
function addRange(characters: Map<number, string>, [from, to, target]: readonly unknown[], room: number): number {
  if (typeof from !== "string" || typeof to !== "string") return 0;
  const count = Math.max(0, Math.min(room, numberOf(to) - numberOf(from) + 1));
  for (let step = 0; step < count; step++) {
    if (!Array.isArray(target)) add(characters, from, target, step);
    else if (typeof target[step] === "string") characters.set(numberOf(from) + step, decodeUtf16(target[step]));
  }
  return count;
}

const numberOf = (bytes: string) => [...bytes].reduce((sum, byte) => sum * 256 + byte.charCodeAt(0), 0);
const decodeUtf16 = (bytes: string) => new TextDecoder("utf-16be").decode(Buffer.from(bytes, "latin1"));

function simpleWidths(file: PdfFile, dict: Dict): (code: number) => number {
  const first = file.number(dict.get("FirstChar")) ?? 0;
  const widths = file.array(dict.get("Widths")).map((width) => file.number(width));
  // Glyphs of a Type 3 font have a space of their own.
  const matrix = file.array(dict.get("FontMatrix"));
  const scale = matrix.length > 0 ? (file.number(matrix[0]) ?? 0.001) * 1000 : 1;
  const otherwise = /Courier|Mono/i.test(file.name(dict.get("BaseFont")) ?? "") ? 600 : DEFAULT_WIDTH;
  return (code) => (widths[code - first] ?? otherwise / scale) * scale;
}

function compositeWidths(file: PdfFile, dict: Dict): (code: number) => number {
  const descendant = file.dict(file.array(dict.get("DescendantFonts"))[0]);
  const otherwise = file.number(descendant?.get("DW")) ?? 1000;
  const widths = new Map<number, number>();
  const list = file.array(descendant?.get("W"));
  let room = MAX_ENTRIES;
  for (let at = 0; at < list.length; ) {
    const first = file.number(list[at]) ?? 0;
    const second = file.get(list[at + 1]);
    if (Array.isArray(second)) {
      for (const [index, width] of second.entries()) widths.set(first + index, file.number(width) ?? otherwise);
      at += 2;
    } else {
      const last = Math.min(typeof second === "number" ? second : first, first + room);
      room -= Math.max(0, last - first);
      for (let code = first; code <= last; code++) widths.set(code, file.number(list[at + 2]) ?? otherwise);
      at += 3;
    }
  }
  return (code) => widths.get(code) ?? otherwise;
}

/** Characters by code, as far as the encoding is one of the usual ones. */
function simpleEncoding(file: PdfFile, dict: Dict): (string | undefined)[] {
  const encoding = file.get(dict.get("Encoding"));
  const described = encoding instanceof Map ? encoding : undefined;
  const base = file.name(described?.get("BaseEncoding") ?? dict.get("Encoding"));
  const symbolic = /Symbol|Dingbats/i.test(file.name(dict.get("BaseFont")) ?? "") || file.name(dict.get("Subtype")) === "Type3";
  const decoder = new TextDecoder(base === "MacRomanEncoding" ? "macintosh" : "windows-1252");
  const table = Array.from({ length: 256 }, (_, code) => {
    return code < 32 || (symbolic && base === undefined) ? undefined : decoder.decode(Buffer.from([code]));
  });
  let code = 0;
  for (const each of file.array(described?.get("Differences"))) {
    const named = file.name(each);
    if (named === undefined) code = file.number(each) ?? code;
    else table[code++] = characterOf(named);
  }
  return table;
}

const MARKS: Record<string, string> = {
  ...{
    grave: "\u0300",
    acute: "\u0301",
    circumflex: "\u0302",
    tilde: "\u0303",
    macron: "\u0304",
    breve: "\u0306",
    dotaccent: "\u0307",
  },
  ...{ dieresis: "\u0308", ring: "\u030a", hungarumlaut: "\u030b", caron: "\u030c", cedilla: "\u0327", ogonek: "\u0328" },
};

/** Names of glyphs that are not made of a letter and a mark, each before its character. */
const GLYPH_LIST = `
exclam ! quotedbl " numbersign # dollar $ percent % ampersand & quotesingle ' parenleft ( parenright ) asterisk * plus + comma , hyphen -
period . slash / zero 0 one 1 two 2 three 3 four 4 five 5 six 6 seven 7 eight 8 nine 9 colon : semicolon ; less < equal = greater >
question ? at @ bracketleft [ backslash \\ bracketright ] asciicircum ^ underscore _ grave \` braceleft { bar | braceright } asciitilde ~
quoteleft ‘ quoteright ’ quotedblleft “ quotedblright ” quotesinglbase ‚ quotedblbase „ guillemotleft « guillemotright »
guilsinglleft ‹ guilsinglright › endash – emdash — bullet • ellipsis … dagger † daggerdbl ‡ periodcentered · section § paragraph ¶
copyright © registered ® trademark ™ degree ° plusminus ± multiply × divide ÷ minus − mu µ logicalnot ¬ cent ¢ sterling £ yen ¥
currency ¤ Euro € exclamdown ¡ questiondown ¿ germandbls ß ae æ AE Æ oe œ OE Œ oslash ø Oslash Ø eth ð Eth Ð thorn þ Thorn Þ
lslash ł Lslash Ł dotlessi ı fi fi fl fl ff ff ffi ffi ffl ffl onehalf ½ onequarter ¼ threequarters ¾ onesuperior ¹ twosuperior ²
threesuperior ³ ordfeminine ª ordmasculine º fraction ⁄ infinity ∞ lessequal ≤ greaterequal ≥ notequal ≠`;

const GLYPHS = new Map([
  ["space", " "],
  ...[...GLYPH_LIST.matchAll(/(\S+) (\S+)/g)].map((pair) => [pair[1] ?? "", pair[2] ?? ""] as const),
]);

function characterOf(name: string): string | undefined {
  const plain = name.replace(/\..*$/s, "");
  if (/^[A-Za-z]$/.test(plain)) return plain;
  const known = GLYPHS.get(plain);
  if (known !== undefined) return known;
  const code = /^(?:uni([0-9A-F]{4})|u([0-9A-F]{4,6}))$/.exec(plain);
  const point = Number.parseInt(code?.[1] ?? code?.[2] ?? "", 16);
  if (point <= 0x10_ffff && (point < 0xd800 || point > 0xdfff)) return String.fromCodePoint(point);
  const mark = MARKS[plain.slice(1)];
  return mark !== undefined && /^[A-Za-z]/.test(plain) ? `${plain.charAt(0)}${mark}`.normalize("NFC") : undefined;
}
