// The objects of a PDF file (ISO 32000-1 §7.2–7.5). The table of places is not used: objects are found by looking through the file, so
// that damaged files can be read as well. Strings are bytes, one character each.
import { type Decrypt, decryption } from "./_pdf-crypt.ts";
import { unpack } from "./_pdf-filters.ts";

const MAX_DEPTH = 64;
/** How long the event loop is held in one go. */
const TURN_MS = 8;

/** `/Name`. */
export class Name {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}
/** A word outside of objects: an operator of a content stream, `endobj`. */
export class Word {
  readonly word: string;
  constructor(word: string) {
    this.word = word;
  }
}
class Reference {
  readonly number: number;
  constructor(number: number) {
    this.number = number;
  }
}
export type Dict = Map<string, Value>;
export class Stream {
  readonly dict: Dict;
  readonly bytes: Buffer;
  /** Number and generation, which its encryption depends on. */
  readonly id: readonly [number, number];
  constructor(dict: Dict, bytes: Buffer, id: readonly [number, number]) {
    this.dict = dict;
    this.bytes = bytes;
    this.id = id;
  }
}
export type Value = null | boolean | number | string | Name | Reference | Word | Value[] | Dict | Stream;

const ESCAPES: Record<string, string> = { n: "\n", r: "\r", t: "\t", b: "\b", f: "\f" };

/** Reads values one after another. */
export class Lexer {
  readonly source: string;
  at: number;

  constructor(source: string, at = 0) {
    this.source = source;
    this.at = at;
  }

  /** The next value or word; undefined at the end. */
  next(depth = 0): Value | undefined {
    this.skipBlanks();
    const character = this.source[this.at];
    if (character === undefined || depth > MAX_DEPTH) return undefined;
    if (character === "/") return this.#name();
    if (character === "(") return this.#text();
    if (this.source.startsWith("<<", this.at)) return this.#dict(depth);
    if (character === "<") return this.#hex();
    if (character === "[") return this.#array(depth);
    const number = this.#match(/[+-]*(?:\d+\.?\d*|\.\d+)/y);
    if (number !== undefined) {
      const reference = /^\d+$/.test(number) ? this.#match(/\s+\d+\s+R(?![\w])/y) : undefined;
      return reference === undefined
        ? Number.parseFloat(number.replace(/^[+-]*(?=-)|^\++/, "")) || 0
        : new Reference(Number(number));
    }
    const word = this.#match(/[^\s()<>[\]{}/%]+/y);
    if (word === undefined) this.at++;
    return word === "true" ? true : word === "false" ? false : word === "null" ? null : new Word(word ?? character);
  }

  skipBlanks(): void {
    this.#match(/(?:[\0\s]+|%[^\r\n]*)*/y);
  }

  #match(expression: RegExp): string | undefined {
    expression.lastIndex = this.at;
    const found = expression.exec(this.source)?.[0];
    this.at += found?.length ?? 0;
    return found;
  }

  #name(): Name {
    const raw = this.#match(/\/[^\0\s()<>[\]{}/%]*/y) ?? "/";
    return new Name(
      raw.slice(1).replace(/#([0-9a-fA-F]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16))),
    );
  }

  #text(): string {
    let open = 0;
    const from = this.at;
    for (; this.at < this.source.length; this.at++) {
      const character = this.source[this.at];
      if (character === "\\") this.at++;
      else if (character === "(") open++;
      else if (character === ")" && --open === 0) break;
    }
    const raw = this.source.slice(from + 1, this.at++);
    return raw.replace(/\\(?:([0-7]{1,3})|(\r\n|[\s\S]))|\r\n?/g, (_, octal?: string, character?: string) => {
      if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8) & 255);
      if (character === undefined) return "\n";
      return /[\r\n]/.test(character) ? "" : (ESCAPES[character] ?? character);
    });
  }

  #hex(): string {
    const digits = (this.#match(/<[^>]*>?/y) ?? "").replace(/[^0-9a-fA-F]/g, "");
    return Buffer.from(digits.length % 2 === 0 ? digits : `${digits}0`, "hex").toString("latin1");
  }

  #array(depth: number): Value[] {
    this.at++;
    const items: Value[] = [];
    for (;;) {
      const item = this.next(depth + 1);
      if (item === undefined || (item instanceof Word && item.word === "]")) return items;
      items.push(item);
    }
  }

  #dict(depth: number): Dict {
    this.at += 2;
    const dict: Dict = new Map();
    for (;;) {
      const key = this.next(depth + 1);
      if (!(key instanceof Name)) {
        if (this.source[this.at] === ">") this.at++;
        return dict;
      }
      const value = this.next(depth + 1);
      if (value === undefined || value instanceof Word) return dict;
      dict.set(key.name, value);
    }
  }
}

export class PdfFile {
  readonly #bytes: Buffer;
  readonly #objects = new Map<number, Value>();
  #root: Value | undefined;
  #encryption: { dict: Value; id: Value | undefined } | undefined;
  #decrypt: Decrypt | undefined;

  private constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  static async open(bytes: Buffer, signal: AbortSignal): Promise<PdfFile> {
    const file = new PdfFile(bytes);
    await file.#scan(signal);
    file.#decrypt = file.#decryption();
    if (!file.isLocked) await file.#unpack(signal);
    return file;
  }

  /** Encrypted, and nothing to open it with. */
  get isLocked(): boolean {
    return this.#encryption !== undefined && this.#decrypt === undefined;
  }

  /** The catalogue, from which the pages hang. */
  get root(): Dict | undefined {
    const named = this.dict(this.#root);
    if (named !== undefined) return named;
    return [...this.#objects.values()]
      .map((value) => this.dict(value))
      .find((dict) => this.name(dict?.get("Type")) === "Catalog");
  }

  /** Follows references. */
  get(value: Value | undefined): Value | undefined {
    let found = value;
    for (let hops = 0; found instanceof Reference && hops < MAX_DEPTH; hops++) found = this.#objects.get(found.number);
    return found instanceof Reference ? undefined : found;
  }
  dict(value: Value | undefined): Dict | undefined {
    const found = this.get(value);
    return found instanceof Map ? found : found instanceof Stream ? found.dict : undefined;
  }
  array(value: Value | undefined): Value[] {
    const found = this.get(value);
    return Array.isArray(found) ? found : [];
  }
  number(value: Value | undefined): number | undefined {
    const found = this.get(value);
    return typeof found === "number" ? found : undefined;
  }
  text(value: Value | undefined): string {
    const found = this.get(value);
    return typeof found === "string" ? found : "";
  }
  name(value: Value | undefined): string | undefined {
    const found = this.get(value);
    return found instanceof Name ? found.name : undefined;
  }

  /** The unpacked bytes of a stream; undefined for what is none, or packed in a way that text never is. */
  async data(value: Value | undefined): Promise<string | undefined> {
    const stream = this.get(value);
    if (!(stream instanceof Stream)) return undefined;
    let { bytes } = stream;
    // The table of places is never encrypted.
    if (this.#decrypt !== undefined && this.name(stream.dict.get("Type")) !== "XRef") {
      const plain = this.#decrypt(bytes, ...stream.id);
      if (plain === undefined) return undefined;
      bytes = plain;
    }
    const filter = this.get(stream.dict.get("Filter"));
    const parameters = this.get(stream.dict.get("DecodeParms"));
    const filters = Array.isArray(filter) ? filter : filter === undefined || filter === null ? [] : [filter];
    for (const [index, each] of filters.entries()) {
      const own = this.dict(Array.isArray(parameters) ? parameters[index] : parameters);
      const unpacked = await unpack(bytes, this.name(each) ?? "", { earlyChange: this.number(own?.get("EarlyChange")) !== 0 });
      if (unpacked === undefined) return undefined;
      bytes = unpacked;
    }
    return bytes.toString("latin1");
  }

  #decryption(): Decrypt | undefined {
    const dict = this.dict(this.#encryption?.dict);
    if (dict === undefined || this.name(dict.get("Filter")) !== "Standard") return undefined;
    const number = (key: string) => this.number(dict.get(key)) ?? 0;
    const filter = this.name(dict.get("StmF")) ?? "Identity";
    return decryption({
      version: number("V"),
      revision: number("R"),
      bits: number("Length") || 40,
      owner: this.text(dict.get("O")),
      user: this.text(dict.get("U")),
      userKey: this.text(dict.get("UE")),
      permissions: number("P"),
      withMetadata: this.get(dict.get("EncryptMetadata")) !== false,
      id: this.text(this.array(this.#encryption?.id)[0]),
      method: filter === "Identity" ? "None" : this.name(this.dict(this.dict(dict.get("CF"))?.get(filter))?.get("CFM")),
    });
  }

  async #scan(signal: AbortSignal): Promise<void> {
    const source = this.#bytes.toString("latin1");
    const start = /(?<!\d)(\d{1,10})\s+(\d{1,5})\s+obj\b|\btrailer\b/g;
    const turns = new Turns(signal);
    for (let match = start.exec(source); match !== null; match = start.exec(source)) {
      const lexer = new Lexer(source, start.lastIndex);
      const value = lexer.next();
      const dict = value instanceof Map ? value : undefined;
      if (value !== undefined && match[1] !== undefined) {
        const stream = dict && this.#streamAfter(lexer, dict, [Number(match[1]), Number(match[2])]);
        this.#objects.set(Number(match[1]), stream ?? value);
      }
      if (dict !== undefined && (match[1] === undefined || this.name(dict.get("Type")) === "XRef")) {
        this.#root = dict.get("Root") ?? this.#root;
        const encrypt = dict.get("Encrypt");
        if (encrypt !== undefined) this.#encryption = { dict: encrypt, id: dict.get("ID") };
      }
      start.lastIndex = Math.max(start.lastIndex, lexer.at);
      await turns.next();
    }
  }

  #streamAfter(lexer: Lexer, dict: Dict, id: readonly [number, number]): Stream | undefined {
    lexer.skipBlanks();
    const head = /stream\r?\n?/y;
    head.lastIndex = lexer.at;
    const found = head.exec(lexer.source)?.[0];
    if (found === undefined) return undefined;
    const from = lexer.at + found.length;
    const length = dict.get("Length");
    let end = typeof length === "number" ? from + length : -1;
    if (end < from || !/^\s{0,2}endstream/.test(lexer.source.slice(end, end + 12))) {
      const mark = lexer.source.indexOf("endstream", from);
      end = mark < 0 ? lexer.source.length : mark;
    }
    lexer.at = end;
    return new Stream(dict, this.#bytes.subarray(from, end), id);
  }

  /** Objects that are packed together in streams. */
  async #unpack(signal: AbortSignal): Promise<void> {
    const turns = new Turns(signal);
    for (const value of [...this.#objects.values()]) {
      if (!(value instanceof Stream) || this.name(value.dict.get("Type")) !== "ObjStm") continue;
      const text = (await this.data(value)) ?? "";
      const first = this.number(value.dict.get("First")) ?? 0;
      const head = text.slice(0, first).trim().split(/\s+/).map(Number);
      for (let index = 0; index + 1 < head.length; index += 2) {
        const [number = Number.NaN, offset = 0] = head.slice(index, index + 2);
        const inside = new Lexer(text, first + offset).next();
        if (inside !== undefined && !this.#objects.has(number)) this.#objects.set(number, inside);
        await turns.next();
      }
    }
  }
}

/** Lets others run in between. */
export class Turns {
  readonly #signal: AbortSignal;
  #began = performance.now();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  async next(): Promise<void> {
    if (performance.now() - this.#began < TURN_MS) return;
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.#signal.throwIfAborted();
    this.#began = performance.now();
  }
}
