// One adapted generation: its set-up scope, whether it is live, and which call its detached `pi.*` methods act for.
// Invariant: nothing here outlives the generation; what the unit starts is owned by the scope.
import { AsyncLocalStorage } from "node:async_hooks";
import { type Context, errorMessage, isAbort, type SetupScope, StaleExtensionError } from "mortise/extension";
import type { Traits } from "./_traits.ts";

/** What `ctx` objects of the family look like to our own code: opaque. */
export type Handler = (event: Record<string, unknown>, ctx: object) => unknown;

interface Call {
  readonly runtime: Runtime;
  readonly ctx: Context;
}

// The only module-level value: it holds no data of its own, each asynchronous call carries its entry.
const calls = new AsyncLocalStorage<Call>();

/** The generation and context behind the code that runs now, for the functions of the virtual modules. */
export function currentCall(): Call | undefined {
  return calls.getStore();
}

export class Runtime {
  readonly scope: SetupScope;
  readonly traits: Traits;
  /** Actions are refused until the generation is live. */
  #loading = true;
  readonly #whenLive: Array<() => void> = [];
  readonly #warned = new Set<string>();

  constructor(scope: SetupScope, traits: Traits) {
    this.scope = scope;
    this.traits = traits;
  }

  get owner(): string {
    return this.scope.owner;
  }

  get loading(): boolean {
    return this.#loading;
  }

  /** True while this generation may still act: not disposed. */
  get usable(): boolean {
    return !this.scope.signal.aborted;
  }

  /** The context of the call at hand, else the generation's own, which stands for the attached conversation. */
  get ctx(): Context {
    const call = calls.getStore();
    return call?.runtime === this ? call.ctx : this.scope.ctx;
  }

  /** Runs the unit's code on behalf of `ctx`. */
  run<T>(ctx: Context, code: () => T): T {
    return calls.run({ runtime: this, ctx }, code);
  }

  /**
   * The context for an action.
   *
   * @throws {Error} while the extension loads. @throws {StaleExtensionError} once the generation is disposed.
   */
  action(name: string): Context {
    if (!this.usable) throw new StaleExtensionError(this.owner, `call ${name}`);
    if (this.#loading) {
      throw new Error(`${name} cannot be used while the extension loads; use it in session_start or a handler`);
    }
    return this.ctx;
  }

  /** @throws {StaleExtensionError} once the generation is disposed. */
  assertUsable(name: string): void {
    if (!this.usable) throw new StaleExtensionError(this.owner, `call ${name}`);
  }

  /** Runs `code` once the generation is live, at once when it is. */
  whenLive(code: () => void): void {
    if (this.#loading) this.#whenLive.push(code);
    else code();
  }

  setLive(): void {
    if (!this.#loading) return;
    this.#loading = false;
    for (const code of this.#whenLive.splice(0)) this.contain("load", code);
  }

  /** Runs code whose failure concerns nobody but the extension: reports it and goes on. */
  contain(event: string, code: () => unknown): void {
    try {
      const result = code();
      if (result instanceof Promise) this.background(event, result);
    } catch (error) {
      this.report(event, error);
    }
  }

  /** Keeps a promise nobody waits for from being unhandled; its failure is reported. */
  background(event: string, promise: Promise<unknown>): void {
    promise.catch((error: unknown) => this.report(event, error));
  }

  report(event: string, error: unknown): void {
    // What a disposed generation still tries is not news: it was told by its own StaleExtensionError.
    if (!this.usable && (StaleExtensionError.is(error) || isAbort(error, this.scope.signal))) return;
    this.scope.ctx.reportError(this.owner, event, error);
  }

  /** Logs a sentence once per generation, e.g. that a call has no effect here. */
  warnOnce(key: string, message: string): void {
    if (this.#warned.has(key)) return;
    this.#warned.add(key);
    this.scope.ctx.log.warn(message, { extension: this.owner });
  }
}

/** An error whose message names what could not be done and why. */
export function failed(what: string, error: unknown): Error {
  return new Error(`${what}: ${errorMessage(error)}`, { cause: error });
}
