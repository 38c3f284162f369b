// Plays a transcript against a daemon, whether it is in memory or a process. The format is described in transcripts.test.ts.
import type { Frame } from "../../protocol/frame.ts";

/** What a transcript needs of a daemon. */
export interface Player {
  readonly frames: readonly Frame[];
  send(frame: string): void;
  next(fits: (frame: Frame) => boolean, options: { after: number }): Promise<Frame>;
  /** Closes its input; resolves when it has ended. */
  end(): Promise<unknown>;
}

/** The lines of a transcript that say something. */
export function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => line.trim() !== "");
}

export async function play(daemon: Player, lines: readonly string[]): Promise<void> {
  const bound = new Map<string, unknown>();
  const forbidden: unknown[] = [];
  let cursor = 0;
  const loose: Promise<unknown>[] = [];
  for (const line of lines) {
    const text = line.slice(line.indexOf(" ") + 1);
    if (line === "> <eof>") {
      await Promise.all(loose.splice(0));
      await daemon.end();
    } else if (line.startsWith("> ")) {
      await Promise.all(loose.splice(0));
      daemon.send(substitute(text, bound));
    } else if (line.startsWith("< ")) {
      const expected: unknown = JSON.parse(text);
      const frame = await daemon.next((candidate) => fits(candidate, expected, bound), { after: cursor });
      bind(frame, expected, bound);
      cursor = daemon.frames.indexOf(frame) + 1;
    } else if (line.startsWith("<~ ")) {
      const expected: unknown = JSON.parse(text);
      loose.push(
        daemon
          .next((candidate) => fits(candidate, expected, bound), { after: cursor })
          .then((frame) => bind(frame, expected, bound)),
      );
    } else if (line.startsWith("! ")) {
      forbidden.push(JSON.parse(text));
    }
  }
  await Promise.all(loose);
  for (const pattern of forbidden) {
    const found = daemon.frames.find((frame) => fits(frame, pattern, bound));
    if (found !== undefined) throw new Error(`A frame came that must not: ${JSON.stringify(found).slice(0, 500)}`);
  }
}

function substitute(text: string, bound: ReadonlyMap<string, unknown>): string {
  return text.replace(/"\$(\w+)"/g, (whole, name: string) => (bound.has(name) ? JSON.stringify(bound.get(name)) : whole));
}

/** True when every field of `expected` is in `actual`; "<absent>" fits a field that is not there. */
function fits(actual: unknown, expected: unknown, bound: ReadonlyMap<string, unknown>): boolean {
  if (expected === "<any>") return actual !== undefined;
  if (expected === "<absent>") return actual === undefined;
  if (typeof expected === "string" && /^\$\w+$/.test(expected)) {
    const name = expected.slice(1);
    return bound.has(name) ? Object.is(actual, bound.get(name)) : actual !== undefined;
  }
  if (Array.isArray(expected)) {
    return (
      Array.isArray(actual) &&
      actual.length === expected.length &&
      expected.every((each, index) => fits(actual[index], each, bound))
    );
  }
  if (typeof expected === "object" && expected !== null) {
    if (typeof actual !== "object" || actual === null) return false;
    return Object.entries(expected).every(([key, value]) => fits((actual as Record<string, unknown>)[key], value, bound));
  }
  return Object.is(actual, expected);
}

function bind(actual: unknown, expected: unknown, bound: Map<string, unknown>): void {
  if (typeof expected === "string" && /^\$\w+$/.test(expected)) bound.set(expected.slice(1), actual);
  else if (typeof expected === "object" && expected !== null && typeof actual === "object" && actual !== null) {
    for (const [key, value] of Object.entries(expected)) bind((actual as Frame)[key], value, bound);
  }
}
