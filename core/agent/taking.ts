// A conversation taken by `compact` or `handoff`: who has it, how it is given up, and what happens with what came meanwhile.
import { CommandError } from "../kernel/errors.ts";
import type { ConversationHandle, Taken, TakenBy } from "./conversation-types.ts";
import { abortError } from "./work.ts";

export interface TakingPort {
  /** The conversation is free again: what waited goes on. */
  released(): void;
  /** What waited goes on in another conversation. */
  transferred(to: ConversationHandle): void;
}

interface Held {
  readonly by: TakenBy;
  readonly controller: AbortController;
  readonly released: Promise<void>;
}

export class Taking {
  readonly #port: TakingPort;
  #held: Held | undefined;

  constructor(port: TakingPort) {
    this.#port = port;
  }

  get by(): TakenBy | undefined {
    return this.#held?.by;
  }

  /** Tells the holder to give up; resolves when it has. Undefined when nobody holds the conversation. */
  abort(reason: string): Promise<void> | undefined {
    this.#held?.controller.abort(abortError(reason));
    return this.#held?.released;
  }

  /** @throws {CommandError} busy. */
  take(by: TakenBy): Taken {
    if (this.#held !== undefined) {
      throw new CommandError(this.#held.by === "compact" ? "Compaction already in progress" : "A handoff is in progress", "busy");
    }
    let freed: () => void = () => {};
    const released = new Promise<void>((resolve) => {
      freed = resolve;
    });
    const held: Held = { by, controller: new AbortController(), released };
    this.#held = held;
    const end = (then: () => void) => {
      if (this.#held !== held) return;
      this.#held = undefined;
      freed();
      then();
    };
    return {
      signal: held.controller.signal,
      release: () => end(() => this.#port.released()),
      transfer: (to) => end(() => this.#port.transferred(to)),
    };
  }
}
