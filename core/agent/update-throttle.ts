// Progress of one tool call: the first snapshot at once, then at most ten a second, the latest wins. The end needs no flush,
// because the result holds everything.
import type { ToolResult } from "../../protocol/message.ts";

const INTERVAL_MS = 100;

export class UpdateThrottle {
  readonly #send: (partial: ToolResult, args: Record<string, unknown>) => void;
  #latest: { partial: ToolResult; args: Record<string, unknown> } | undefined;
  #dueAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(send: (partial: ToolResult, args: Record<string, unknown>) => void) {
    this.#send = send;
  }

  add(partial: ToolResult, args: Record<string, unknown>): void {
    if (this.#closed) return;
    this.#latest = { partial, args };
    if (this.#timer !== undefined) return;
    const wait = this.#dueAt - performance.now();
    if (wait <= 0) this.#flush();
    else this.#timer = setTimeout(() => this.#flush(), wait);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #flush(): void {
    this.#timer = undefined;
    const latest = this.#latest;
    if (latest === undefined || this.#closed) return;
    this.#latest = undefined;
    this.#dueAt = performance.now() + INTERVAL_MS;
    this.#send(latest.partial, latest.args);
  }
}
