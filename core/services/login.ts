// Ways to obtain a credential. A flow talks to the person through the host and returns what is to be stored; it stores nothing.
import { type Definition, define } from "../kernel/definition.ts";
import type { Credential } from "./models.ts";

/** What a login flow may do while it runs. All of it ends when `signal` aborts. */
export interface LoginContext {
  readonly signal: AbortSignal;
  readonly env: NodeJS.ProcessEnv;
  /** Fetches through the proxies of the environment. */
  readonly fetch: typeof globalThis.fetch;
  /**
   * Shows a page. `oauth`: the host opens it and the flow waits for it; `api-key`: the page where a key is obtained, shown
   * without opening it, a prompt follows (000_…, "open_url").
   */
  openUrl(page: {
    url: string;
    launchUrl?: string | undefined;
    instructions?: string | undefined;
    credential: "oauth" | "api-key";
  }): void;
  /** Asks for one line; the empty string when the person cancels or nobody answers within 10 minutes. */
  prompt(question: { title: string; placeholder?: string | undefined }, options?: { signal?: AbortSignal }): Promise<string>;
  /**
   * Asks the service of the flow's provider whether it takes the key. Resolves when it does, and when it cannot be reached: then
   * the person is told that the key is unchecked. @throws {ProviderError} when the service refuses the key.
   */
  verifyKey(key: string): Promise<void>;
  /** Tells what is going on. */
  progress(text: string): void;
}

/** A login flow; `name` is the provider id that the credential is stored under. */
export interface LoginFlowDefinition extends Definition<"login flow"> {
  /** Shown by hosts. */
  readonly displayName: string;
  /** Returns the credential. Throws what went wrong, in words for the person; never with a secret in it. */
  run(ctx: LoginContext): Promise<Credential>;
  /** Renews an expired `oauth` credential. Called once per expiry across all daemons of a home directory. */
  refresh?(current: Credential, signal: AbortSignal): Promise<Credential>;
  /** Turns a stored credential into the key a request carries; `access` or `key` when absent. */
  apiKey?(credential: Credential): string;
}

export function defineLoginFlow(flow: Omit<LoginFlowDefinition, "kind">): LoginFlowDefinition {
  return define({ kind: "login flow", ...flow });
}

declare module "../kernel/definition.ts" {
  interface Kinds {
    "login flow": LoginFlowDefinition;
  }
}
