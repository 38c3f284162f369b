// A terminal puts CR before every LF that is written to it. This takes them out again, so that what is counted and kept is what
// the command wrote, byte for byte.

const CR = 13;
const LF = 10;

export class LineEnds {
  /** A CR at the end of a chunk: the next one says whose it is. */
  #held = false;

  push(chunk: Buffer): Buffer {
    if (!this.#held && !chunk.includes(CR)) return chunk;
    const bytes = Buffer.allocUnsafe(chunk.length + 1);
    let size = 0;
    for (const byte of chunk) {
      if (this.#held && byte !== LF) bytes[size++] = CR;
      this.#held = byte === CR;
      if (!this.#held) bytes[size++] = byte;
    }
    return bytes.subarray(0, size);
  }

  /** What is left when nothing follows. */
  end(): Buffer {
    const rest = Buffer.from(this.#held ? "\r" : "");
    this.#held = false;
    return rest;
  }
}
