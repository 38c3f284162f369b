// Progress of one tool call: the first snapshot at once, then at most ten a second, the latest wins. The end needs no flush,
// because the result holds everything.
import type { ToolResult } from "../../protocol/message.ts";

const INTERVAL_MS = 100;

/** Shows one snapshot; a promise when extensions look at it first. */
type Send = (partial: ToolResult, args: Record<string, unknown>) => void | Promise<void>;

export class UpdateThrottle {
  readonly #send: Send;
  #latest: { partial: ToolResult; args: Record<string, unknown> } | undefined;
  #dueAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #closed = false;

  constructor(send: Send) {
    this.#send = send;
  }

  add(partial: ToolResult, args: Record<string, unknown>): void {
    if (this.#closed) return;
    this.#latest = { partial, args };
    this.#next();
  }

  /** Resolves when the snapshot on its way is shown: nothing of it comes after the end of the call. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#sending;
  }

  #next(): void {
    if (this.#closed || this.#latest === undefined || this.#timer !== undefined || this.#sending !== undefined) return;
    const wait = this.#dueAt - performance.now();
    if (wait <= 0) this.#flush(this.#latest);
    else {
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        this.#next();
      }, wait);
    }
  }

  #flush({ partial, args }: { partial: ToolResult; args: Record<string, unknown> }): void {
    this.#latest = undefined;
    this.#dueAt = performance.now() + INTERVAL_MS;
    const sending = this.#send(partial, args);
    if (sending === undefined) return;
    this.#sending = sending.finally(() => {
      this.#sending = undefined;
      this.#next();
    });
  }
}
