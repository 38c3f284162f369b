// Keeps the full outputs of a conversation within a limit: a long session would fill the disk otherwise.
import { readdir, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";

/** `<number>.<tool>.log`: what belongs to subagents has other names and stays (agent-semantics §1.1). */
const OUTPUT = /^(\d+)\..*\.log$/;

export class Retention {
  readonly #beingWritten = new Set<string>();

  opened(file: string): void {
    this.#beingWritten.add(file);
  }

  /** The output is complete: older ones beside it go, the oldest first, until all together take at most `maxBytes`; 0 keeps all. */
  async closed(file: string, maxBytes: number): Promise<void> {
    this.#beingWritten.delete(file);
    if (maxBytes === 0) return;
    const folder = dirname(file);
    const names = (await readdir(folder).catch(() => [])).filter((name) => OUTPUT.test(name));
    const sizes = await Promise.all(
      names.map((name) =>
        stat(join(folder, name)).then(
          ({ size }) => size,
          () => 0,
        ),
      ),
    );
    const outputs = names.map((name, index) => ({ path: join(folder, name), number: numberOf(name), size: sizes[index] ?? 0 }));
    let total = outputs.reduce((sum, { size }) => sum + size, 0);
    for (const { path, size } of outputs.sort((a, b) => a.number - b.number)) {
      if (total <= maxBytes) return;
      if (path === file || this.#beingWritten.has(path)) continue;
      await rm(path, { force: true }).catch(() => {});
      total -= size;
    }
  }
}

const numberOf = (name: string) => Number(OUTPUT.exec(name)?.[1]);
