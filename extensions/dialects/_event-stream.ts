// The families' stream of one answer: an async iterable of events with a promise of the final message. Pushing and reading
// may happen in any order; `end` without a final event settles the promise with what was given, or rejects it.

export type StreamEvent = Record<string, unknown> & { type: string };

export class AssistantMessageEventStream implements AsyncIterable<StreamEvent> {
  readonly #events: StreamEvent[] = [];
  readonly #waiting: Array<() => void> = [];
  readonly #result: Promise<unknown>;
  #settle: (message: unknown) => void = () => {};
  #reject: (error: Error) => void = () => {};
  #ended = false;

  constructor() {
    this.#result = new Promise((resolve, reject) => {
      this.#settle = resolve;
      this.#reject = reject;
    });
    // Nobody has to ask for the result of a stream that is only read.
    this.#result.catch(() => {});
  }

  push(event: StreamEvent): void {
    if (this.#ended) return;
    this.#events.push(event);
    if (event.type === "done") this.#settle(event["message"]);
    if (event.type === "error") this.#settle(event["error"]);
    if (event.type === "done" || event.type === "error") this.#ended = true;
    this.#wake();
  }

  end(result?: unknown): void {
    if (result !== undefined) this.#settle(result);
    else this.#reject(new Error("The stream ended without an answer"));
    this.#ended = true;
    this.#wake();
  }

  /** The final message; failures are messages with `stopReason` error or aborted. */
  result(): Promise<unknown> {
    return this.#result;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<StreamEvent> {
    for (let index = 0; ; index++) {
      while (index >= this.#events.length) {
        if (this.#ended) return;
        await new Promise<void>((resolve) => this.#waiting.push(resolve));
      }
      const event = this.#events[index];
      if (event !== undefined) yield event;
    }
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
