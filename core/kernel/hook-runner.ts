// Runs hook points by their declared rule. A handler has a time limit that pauses for its own dialogs; what a handler throws is
// reported under its owner and never reaches the caller, except that a gate that fails blocks.
import { type Budget, runCall } from "./attribution.ts";
import type { Context, PinnedHooks } from "./context.ts";
import type { HookDefinition, HookPoint, Veto } from "./hooks.ts";
import { Latencies } from "./latencies.ts";
import type { Entry, Registry } from "./registry.ts";
import { RANK } from "./scope.ts";

const DEFAULT_TIMEOUT_MS = 30_000;

type Handler = Entry<"hook">;

export interface HookRunnerOptions {
  registry: Registry;
  reportError(owner: string, event: string, error: unknown): void;
  /** False for handlers that do not see this call's conversation. */
  accepts(definition: HookDefinition, ctx: Context): boolean;
}

export class HookRunner {
  readonly #options: HookRunnerOptions;
  #version = -1;
  /** How long the handlers of each owner took. */
  readonly latencies = new Latencies();
  readonly #sorted = new Map<string, readonly Handler[]>();

  constructor(options: HookRunnerOptions) {
    this.#options = options;
  }

  /** Handlers of a point: lower priority first, then built-ins before others, then discovery order. */
  handlers(name: string): readonly Handler[] {
    if (this.#version !== this.#options.registry.version) {
      this.#version = this.#options.registry.version;
      this.#sorted.clear();
    }
    let sorted = this.#sorted.get(name);
    if (sorted === undefined) {
      sorted = this.#options.registry
        .all("hook")
        .filter((entry) => entry.name === name)
        .sort(byPriority);
      this.#sorted.set(name, sorted);
    }
    return sorted;
  }

  run<In, Out>(point: HookPoint<In, Out>, input: In, ctx: Context): Promise<Out | undefined> {
    return this.#combine(point, this.handlers(point.name), input, ctx);
  }

  /** Holds the handlers of several points as they are now. */
  pin(points: readonly HookPoint<never, unknown>[]): PinnedHooks {
    const taken = new Map(points.map((point) => [point.name, this.handlers(point.name)]));
    const releases = new Set([...taken.values()].flat().map((entry) => entry.scope)).values();
    const leases = [...releases].map((scope) => scope.lease("run"));
    return {
      run: (point, input, ctx) => this.#combine(point, taken.get(point.name) ?? this.handlers(point.name), input, ctx),
      release: () => {
        for (const release of leases.splice(0)) release();
      },
    };
  }

  async #combine<In, Out>(
    point: HookPoint<In, Out>,
    handlers: readonly Handler[],
    input: In,
    ctx: Context,
  ): Promise<Out | undefined> {
    const accepted = handlers.filter((entry) => this.#options.accepts(entry.definition, ctx));
    switch (point.combine) {
      case "parallel":
        await Promise.all(accepted.map((entry) => this.#call(point, entry, input, ctx)));
        return undefined;
      case "series":
        for (const entry of accepted) await this.#call(point, entry, input, ctx);
        return undefined;
      case "first":
        for (const entry of accepted) {
          const answer = await this.#call(point, entry, input, ctx);
          if (answer.ok && answer.value !== undefined) return answer.value as Out;
        }
        return undefined;
      case "chain": {
        let value: unknown = input;
        for (const entry of accepted) {
          const answer = await this.#call(point, entry, value, ctx);
          if (answer.ok && answer.value !== undefined) value = answer.value;
        }
        return value as Out;
      }
      case "veto":
        return (await this.#veto(point, accepted, input, ctx)) as Out | undefined;
    }
  }

  /** All handlers run, so that each sees the call; the first block wins. A failing gate blocks (DESIGN §5). */
  async #veto<In, Out>(
    point: HookPoint<In, Out>,
    handlers: readonly Handler[],
    input: In,
    ctx: Context,
  ): Promise<Veto | undefined> {
    let verdict: Veto | undefined;
    for (const entry of handlers) {
      const answer = await this.#call(point, entry, input, ctx);
      if (!answer.ok) {
        verdict ??= { block: true, reason: `A check of "${entry.scope.owner.id}" failed: ${answer.message}` };
      } else if (isVeto(answer.value)) {
        verdict ??= answer.value;
      }
    }
    return verdict;
  }

  async #call<In, Out>(point: HookPoint<In, Out>, entry: Handler, input: unknown, ctx: Context): Promise<Answer> {
    const { scope, definition } = entry;
    const release = scope.lease();
    const limit = new Limit(point.timeoutMs ?? DEFAULT_TIMEOUT_MS);
    const began = performance.now();
    try {
      const handlerCtx = ctx.derive({ scope });
      const result = runCall({ scope, locals: ctx.locals, invocation: ctx.invocation, budget: limit }, () =>
        definition.run(input as never, handlerCtx),
      );
      const value = result instanceof Promise ? await limit.race(result, point.name) : result;
      return { ok: true, value };
    } catch (error) {
      this.#options.reportError(scope.owner.id, point.name, error);
      return { ok: false, message: error instanceof Error ? error.message : String(error) };
    } finally {
      limit.clear();
      release();
      this.latencies.add(scope.owner.id, performance.now() - began - limit.pausedMs);
    }
  }
}

type Answer = { ok: true; value: unknown } | { ok: false; message: string };

function isVeto(value: unknown): value is Veto {
  return typeof value === "object" && value !== null && "block" in value && value.block === true;
}

function byPriority(a: Handler, b: Handler): number {
  return (
    a.definition.priority - b.definition.priority ||
    RANK[a.scope.owner.origin] - RANK[b.scope.owner.origin] ||
    a.scope.owner.order - b.scope.owner.order ||
    a.seq - b.seq
  );
}

/** A time limit that stands still while paused. */
class Limit implements Budget {
  #remainingMs: number;
  readonly #totalMs: number;
  #startedAt = 0;
  #paused = 0;
  #pausedAt = 0;
  /** Spent waiting for dialogs of the handler. */
  pausedMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #expire: (() => void) | undefined;

  constructor(totalMs: number) {
    this.#totalMs = totalMs;
    this.#remainingMs = totalMs;
  }

  race<T>(promise: Promise<T>, name: string): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#expire = () => reject(new Error(`Handler of "${name}" took longer than ${this.#totalMs} ms`));
      if (this.#paused === 0) this.#start();
      promise.then(resolve, reject);
    });
  }

  pause(): void {
    if (this.#paused++ > 0) return;
    this.#pausedAt = performance.now();
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#remainingMs -= performance.now() - this.#startedAt;
  }

  resume(): void {
    if (--this.#paused > 0) return;
    this.pausedMs += performance.now() - this.#pausedAt;
    if (this.#expire !== undefined) this.#start();
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#expire = undefined;
  }

  #start(): void {
    this.#startedAt = performance.now();
    this.#timer = setTimeout(() => this.#expire?.(), Math.max(0, this.#remainingMs));
  }
}
