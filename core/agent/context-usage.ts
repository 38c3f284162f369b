// How full the model's context is, for hosts that ask often.
import type { ContextUsage } from "./conversation-types.ts";

/** One object as long as neither the tokens nor the window changed, so that its JSON is made once. */
export class UsageMeter {
  #known: ContextUsage | undefined;

  read(tokens: number, window: number | undefined): ContextUsage {
    const contextWindow = window ?? 0;
    if (this.#known?.tokens === tokens && this.#known.contextWindow === contextWindow) return this.#known;
    this.#known = { tokens, contextWindow, percent: contextWindow === 0 ? 0 : (tokens / contextWindow) * 100 };
    return this.#known;
  }
}
