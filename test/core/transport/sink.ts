// A pipe whose reader decides when bytes are taken.
import { Writable } from "node:stream";
import { LineSplitter } from "../../../protocol/jsonl.ts";

export interface ManualSink {
  readonly stream: Writable;
  /** All text taken so far. */
  text(): string;
  lines(): string[];
  frames(): Record<string, unknown>[];
  readonly writes: string[];
  /** Stops taking: the next write stays in flight until `resume`. */
  pause(): void;
  resume(): void;
}

export function manualSink(): ManualSink {
  const writes: string[] = [];
  let paused = false;
  let held: (() => void) | undefined;
  const stream = new Writable({
    decodeStrings: false,
    write(chunk: string | Buffer, _encoding, done) {
      const take = () => {
        writes.push(String(chunk));
        done();
      };
      if (paused) held = take;
      else take();
    },
  });
  const text = () => writes.join("");
  const lines = () => {
    const found: string[] = [];
    const splitter = new LineSplitter({
      onLine: (line) => found.push(line),
      onProblem: (problem) => {
        throw new Error(problem.message);
      },
    });
    splitter.push(Buffer.from(text()));
    splitter.end();
    return found;
  };
  return {
    stream,
    writes,
    text,
    lines,
    frames: () => lines().map((line) => JSON.parse(line)),
    pause: () => {
      paused = true;
    },
    resume: () => {
      paused = false;
      const take = held;
      held = undefined;
      take?.();
    },
  };
}
