// The daemon's standard input: bytes to lines. Never paused: lines are handed on as they are read, so that control frames and
// `abort` are seen whatever the commands before them are doing.
import type { Readable } from "node:stream";
import { LineSplitter } from "../../../protocol/jsonl.ts";
import { ProtocolError } from "../errors.ts";

export interface InputHandlers {
  /** One line, white space lines left out. */
  readonly onLine: (text: string) => void;
  /** A line that cannot be read (too long, not UTF-8). Reading goes on. */
  readonly onError: (error: ProtocolError) => void;
  /** The stream is over, by end, error or closing. Called once, after the last line. */
  readonly onEnd: () => void;
  /** Longest line in bytes. Default 64 MiB. */
  readonly maxLineBytes?: number | undefined;
}

/** Starts reading. The returned function stops: no handler is called after it. */
export function readInput(stdin: Readable, handlers: InputHandlers): () => void {
  let over = false;
  const splitter = new LineSplitter({
    onLine: (text) => {
      if (!over) handlers.onLine(text);
    },
    onProblem: (problem) => {
      if (!over) handlers.onError(new ProtocolError(problem.message));
    },
    maxLineBytes: handlers.maxLineBytes,
  });
  const onData = (chunk: Buffer | string) => splitter.push(typeof chunk === "string" ? Buffer.from(chunk, "utf8") : chunk);
  const finish = () => {
    if (over) return;
    splitter.end();
    stop();
    handlers.onEnd();
  };
  const stop = () => {
    over = true;
    stdin.off("data", onData);
    stdin.off("end", finish);
    stdin.off("close", finish);
  };
  stdin.on("data", onData);
  stdin.once("end", finish);
  stdin.once("close", finish);
  // A reset connection (the host died) is an end like any other. The listener stays: a late error must not be an uncaught one.
  stdin.on("error", finish);
  if (stdin.readableEnded || stdin.destroyed) queueMicrotask(finish);
  return stop;
}
