// The text of a PDF, page by page. Text stands in a PDF as strings with places; lines and blanks are found from these.
import { formatBytes, ToolError } from "mortise/extension";
import { type Font, readFont } from "./_pdf-font.ts";
import { type Dict, Lexer, Name, PdfFile, Turns, type Value, Word } from "./_pdf-objects.ts";

export const MAX_PDF = 64 * 1024 * 1024;
/** Text of all pages together; no book has more. */
const MAX_TEXT = 32 * 1024 * 1024;
const MAX_DEPTH = 32;
/** Pieces of page drawn by name, all together: they may name each other. */
const MAX_FORMS = 20_000;
const TIMEOUT_MS = 30_000;

type Matrix = readonly [number, number, number, number, number, number];
const IDENTITY: Matrix = [1, 0, 0, 1, 0, 0];

/**
 * Every page under a line that names it.
 *
 * @throws {ToolError} for files that are damaged, take a password or hold no text
 */
export async function pdfText(bytes: Buffer, shown: string, signal: AbortSignal): Promise<{ text: string; notes: string[] }> {
  const limit = AbortSignal.timeout(TIMEOUT_MS);
  try {
    return await readPages(bytes, shown, AbortSignal.any([signal, limit]));
  } catch (error) {
    if (!limit.aborted || signal.aborted) throw error;
    throw new ToolError(`Cannot read ${shown}: its text takes longer than ${TIMEOUT_MS / 1000} s to get`, { cause: error });
  }
}

async function readPages(bytes: Buffer, shown: string, signal: AbortSignal): Promise<{ text: string; notes: string[] }> {
  const file = await PdfFile.open(bytes, signal);
  const kind = `a PDF document of ${formatBytes(bytes.length)}`;
  if (file.isLocked) throw new ToolError(`Cannot read ${shown}: it is ${kind}, encrypted with a password or key`);
  const pages = pagesOf(file);
  if (pages.length === 0) throw new ToolError(`Cannot read ${shown}: it is ${kind}, but damaged or without pages`);
  const reader = new PageReader(file, new Turns(signal));
  const texts: string[] = [];
  let length = 0;
  for (const page of pages) {
    const text = await reader.read(page);
    texts.push(text);
    length += text.length;
    if (length > MAX_TEXT)
      throw new ToolError(`Cannot read ${shown}: it is ${kind} with more than ${formatBytes(MAX_TEXT)} of text`);
  }
  if (length === 0) {
    throw new ToolError(
      `Cannot read ${shown} as text: it is ${kind} whose ${pages.length} pages hold no text, only images or shapes`,
    );
  }
  const text = texts
    .map((page, index) => `=== page ${index + 1} of ${texts.length}\n${page === "" ? "(no text)" : page}\n`)
    .join("\n");
  const unknown = reader.unknown;
  return { text, notes: unknown > 0 ? [`${unknown} characters are shown as U+FFFD: the file does not say which they are`] : [] };
}

/** In their order, with what they inherit. */
function pagesOf(file: PdfFile): Dict[] {
  const found: Dict[] = [];
  const seen = new Set<Dict>();
  const walk = (value: Value | undefined, inherited: Value | undefined, depth: number): void => {
    const node = file.dict(value);
    if (node === undefined || seen.has(node) || depth > MAX_DEPTH) return;
    seen.add(node);
    const resources = node.get("Resources") ?? inherited;
    if (node.has("Kids")) for (const kid of file.array(node.get("Kids"))) walk(kid, resources, depth + 1);
    else found.push(resources === undefined ? node : new Map([...node, ["Resources", resources]]));
  };
  walk(file.root?.get("Pages"), undefined, 0);
  return found;
}

class PageReader {
  /** Characters that the file does not name. */
  unknown = 0;
  readonly #file: PdfFile;
  readonly #turns: Turns;
  readonly #fonts = new Map<Dict, Font>();
  #forms = 0;

  constructor(file: PdfFile, turns: Turns) {
    this.#file = file;
    this.#turns = turns;
  }

  async read(page: Dict): Promise<string> {
    const contents = this.#file.get(page.get("Contents"));
    const parts = await Promise.all((Array.isArray(contents) ? contents : [contents]).map((part) => this.#file.data(part)));
    const layout = new Layout();
    await this.#run(parts.join("\n"), this.#file.dict(page.get("Resources")), { layout, matrix: IDENTITY, depth: 0 });
    return layout.text();
  }

  async #run(source: string, resources: Dict | undefined, at: { layout: Layout; matrix: Matrix; depth: number }): Promise<void> {
    const lexer = new Lexer(source);
    const pen = new Pen(at.layout, at.matrix, () => this.unknown++);
    let operands: Value[] = [];
    for (let value = lexer.next(); value !== undefined; value = lexer.next()) {
      if (!(value instanceof Word)) {
        operands.push(value);
        continue;
      }
      const [first] = operands;
      if (value.word === "Tf" && first instanceof Name) {
        pen.font = await this.#font(this.#file.dict(this.#file.dict(resources?.get("Font"))?.get(first.name)));
        pen.size = numberAt(operands, 1);
      } else if (value.word === "Do" && first instanceof Name)
        await this.#form(first.name, resources, { ...at, matrix: pen.matrix });
      else if (value.word === "ID") skipImage(lexer);
      else pen.operate(value.word, operands);
      operands = [];
      await this.#turns.next();
    }
  }

  /** A piece of page that is drawn by name. */
  async #form(name: string, resources: Dict | undefined, at: { layout: Layout; matrix: Matrix; depth: number }): Promise<void> {
    const object = this.#file.dict(resources?.get("XObject"))?.get(name);
    const dict = this.#file.dict(object);
    if (dict === undefined || this.#file.name(dict.get("Subtype")) !== "Form" || at.depth >= MAX_DEPTH) return;
    if (++this.#forms > MAX_FORMS) return;
    const source = await this.#file.data(object);
    const own = this.#file.array(dict.get("Matrix")).map((value) => this.#file.number(value) ?? 0);
    const matrix = own.length === 6 ? times(matrixOf(own), at.matrix) : at.matrix;
    if (source !== undefined) {
      await this.#run(source, this.#file.dict(dict.get("Resources")) ?? resources, { ...at, matrix, depth: at.depth + 1 });
    }
  }

  async #font(dict: Dict | undefined): Promise<Font | undefined> {
    if (dict === undefined) return undefined;
    const known = this.#fonts.get(dict) ?? (await readFont(this.#file, dict));
    this.#fonts.set(dict, known);
    return known;
  }
}

/** The state of drawing text (ISO 32000-1 §9.3, §9.4). */
class Pen {
  font: Font | undefined;
  size = 1;
  matrix: Matrix;
  readonly #layout: Layout;
  readonly #onUnknown: () => void;
  readonly #saved: Matrix[] = [];
  #text: Matrix = IDENTITY;
  #line: Matrix = IDENTITY;
  #leading = 0;
  #charSpace = 0;
  #wordSpace = 0;
  #scale = 1;

  constructor(layout: Layout, matrix: Matrix, onUnknown: () => void) {
    this.#layout = layout;
    this.matrix = matrix;
    this.#onUnknown = onUnknown;
  }

  operate(word: string, operands: readonly Value[]): void {
    const number = (index: number) => numberAt(operands, index);
    if (word === "BT") this.#text = this.#line = IDENTITY;
    else if (word === "q") this.#saved.push(this.matrix);
    else if (word === "Q") this.matrix = this.#saved.pop() ?? this.matrix;
    else if (word === "cm") this.matrix = times(matrixOf(operands), this.matrix);
    else if (word === "Tm") this.#text = this.#line = matrixOf(operands);
    else if (word === "Td") this.#move(number(0), number(1));
    else if (word === "TD") this.#move(number(0), number(1), -number(1));
    else if (word === "TL") this.#leading = number(0);
    else if (word === "T*") this.#move(0, -this.#leading);
    else if (word === "Tc") this.#charSpace = number(0);
    else if (word === "Tw") this.#wordSpace = number(0);
    else if (word === "Tz") this.#scale = number(0) / 100;
    else if (word === "Tj") this.#show(operands[0]);
    else if (word === "TJ") this.#showAll(operands[0]);
    else if (word === "'" || word === '"') this.#nextLine(word, operands);
  }

  #nextLine(word: string, operands: readonly Value[]): void {
    if (word === '"') {
      this.#wordSpace = numberAt(operands, 0);
      this.#charSpace = numberAt(operands, 1);
    }
    this.#move(0, -this.#leading);
    this.#show(operands.at(-1));
  }

  #move(x: number, y: number, leading = this.#leading): void {
    this.#leading = leading;
    this.#text = this.#line = times([1, 0, 0, 1, x, y], this.#line);
  }

  #showAll(list: Value | undefined): void {
    for (const each of Array.isArray(list) ? list : []) {
      if (typeof each === "number") this.#advance((-each / 1000) * this.size * this.#scale);
      else this.#show(each);
    }
  }

  #show(value: Value | undefined): void {
    if (typeof value !== "string" || this.font === undefined) return;
    for (const { text, width, isSpace } of this.font.glyphs(value)) {
      const advance = ((width / 1000) * this.size + this.#charSpace + (isSpace ? this.#wordSpace : 0)) * this.#scale;
      const before = times(this.#text, this.matrix);
      this.#advance(advance);
      if (text === undefined) this.#onUnknown();
      const after = times(this.#text, this.matrix);
      const em = Math.hypot(before[2], before[3]) * Math.abs(this.size);
      this.#layout.put(text ?? "\ufffd", { x: before[4], y: before[5] }, { x: after[4], y: after[5] }, em);
    }
  }

  #advance(x: number): void {
    this.#text = times([1, 0, 0, 1, x, 0], this.#text);
  }
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/** Puts characters together into lines, in the order in which the page draws them. */
class Layout {
  readonly #parts: string[] = [];
  #end: Point | undefined;
  #blank = true;

  put(text: string, from: Point, to: Point, em: number): void {
    const end = this.#end;
    this.#end = to;
    if (end !== undefined && em > 0) {
      const along = Math.hypot(to.x - from.x, to.y - from.y);
      // The direction of writing; without one, from left to right.
      const [dx, dy] = along > 0 ? [(to.x - from.x) / along, (to.y - from.y) / along] : [1, 0];
      const gap = (from.x - end.x) * dx + (from.y - end.y) * dy;
      const rise = Math.abs((from.y - end.y) * dx - (from.x - end.x) * dy);
      if (rise > 2.2 * em) this.#add("\n\n");
      else if (rise > 0.7 * em || gap < -2 * em) this.#add("\n");
      else if (gap > 0.2 * em && !this.#blank) this.#add(" ");
    }
    this.#add(text);
  }

  text(): string {
    return (
      this.#parts
        .join("")
        .replace(/[\0\u00ad]/g, "")
        // Ligatures: nobody searches for them.
        .replace(/[\ufb00-\ufb06]/g, (ligature) => ligature.normalize("NFKC"))
        .split("\n")
        .map((line) => line.trimEnd())
        .join("\n")
        .replace(/\n{3,}/g, "\n\n")
        .trim()
    );
  }

  #add(text: string): void {
    this.#parts.push(text);
    this.#blank = /\s$/.test(text);
  }
}

/** The bytes of an image that stands in the page: they end with `EI` between blanks. */
function skipImage(lexer: Lexer): void {
  const end = /\sEI(?=\s|$)/g;
  end.lastIndex = lexer.at;
  lexer.at = end.exec(lexer.source) === null ? lexer.source.length : end.lastIndex;
}

function numberAt(operands: readonly Value[], index: number): number {
  const value = operands[index];
  return typeof value === "number" ? value : 0;
}

const matrixOf = (operands: readonly Value[]): Matrix => [
  ...([numberAt(operands, 0), numberAt(operands, 1), numberAt(operands, 2)] as const),
  ...([numberAt(operands, 3), numberAt(operands, 4), numberAt(operands, 5)] as const),
];

/** First `a`, then `b`. */
function times(a: Matrix, b: Matrix): Matrix {
  return [
    a[0] * b[0] + a[1] * b[2],
    a[0] * b[1] + a[1] * b[3],
    a[2] * b[0] + a[3] * b[2],
    a[2] * b[1] + a[3] * b[3],
    a[4] * b[0] + a[5] * b[2] + b[4],
    a[4] * b[1] + a[5] * b[3] + b[5],
  ];
}
