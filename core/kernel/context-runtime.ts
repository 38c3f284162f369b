// Builds the context objects. Everything heavy is a getter on one prototype per kernel, so a context costs one small object.
import type { Frame } from "../../protocol/frame.ts";
import { currentCall } from "./attribution.ts";
import type { Context, ContextChange, ContextLocals, Invocation, Logger, Ui } from "./context.ts";
import type { AnyDefinition, FrameDefinition } from "./definition.ts";
import type { HookRunner } from "./hook-runner.ts";
import type { HookPoint } from "./hooks.ts";
import type { HostRequestTable } from "./host-request-table.ts";
import type { DialogOptions, HostRequestDefinition } from "./host-requests.ts";
import type { Registry } from "./registry.ts";
import type { Scope } from "./scope.ts";
import type { ServiceContainer } from "./service-container.ts";
import type { Token } from "./services.ts";
import { describeIssues } from "./validation.ts";

/** What contexts need of the kernel. */
export interface ContextHost {
  readonly registry: Registry;
  readonly services: ServiceContainer;
  readonly hooks: HookRunner;
  readonly requests: HostRequestTable;
  readonly log: Logger;
  readonly mode: "rpc" | "rpc-ui";
  readonly hasUI: boolean;
  send(frame: Frame): void;
  reportError(owner: string, event: string, error: unknown): void;
  requestShutdown(): void;
  failLate(invocation: Invocation, error: unknown): void;
  track(work: Promise<unknown>): void;
  /** Whether what a context shows reaches the host; undefined means that it does. */
  uiGate(ctx: Context): UiGate | undefined;
  /** Told of every context that is made; higher layers hang their getters on the prototype. */
  readonly extensions: PropertyDescriptorMap;
}

/** Holds back what belongs to something the host does not see now. */
export interface UiGate {
  /** Aborted while the host must not see it: dialogs take their fallback, notices are dropped. */
  readonly signal: AbortSignal;
  /** A dialog was held back, or taken away from the host while it was open. */
  withheld(method: string, params: Readonly<Record<string, unknown>>): void;
}

interface ContextParts {
  scope: Scope;
  signal: AbortSignal | undefined;
  invocation: Invocation | undefined;
  locals: Partial<ContextLocals>;
}

/** The factory of one kernel's contexts. */
export function createContextFactory(host: ContextHost): (parts: { scope: Scope } & ContextChange) => Context {
  const uis = new WeakMap<object, Ui>();

  class RuntimeContext {
    readonly scope: Scope;
    readonly locals: Partial<ContextLocals>;
    /** Not private: contexts of calls inherit from this object. */
    readonly parts: ContextParts;

    constructor(parts: ContextParts) {
      this.parts = parts;
      this.scope = parts.scope;
      this.locals = parts.locals;
    }
    get owner(): string {
      return this.scope.owner.id;
    }
    get signal(): AbortSignal {
      return this.parts.signal ?? this.scope.signal;
    }
    get invocation(): Invocation | undefined {
      return this.parts.invocation;
    }
    get log(): Logger {
      return host.log;
    }
    get registry(): Registry {
      return host.registry;
    }
    get mode(): "rpc" | "rpc-ui" {
      return host.mode;
    }
    get hasUI(): boolean {
      return host.hasUI;
    }
    get ui(): Ui {
      let ui = uis.get(this);
      if (ui === undefined) {
        ui = createUi(host, this.asContext());
        uis.set(this, ui);
      }
      return ui;
    }
    use<T>(token: Token<T>): T {
      return host.services.use(token);
    }
    tryUse<T>(token: Token<T>): T | undefined {
      return host.services.tryUse(token);
    }
    ask<A, B, P>(
      request: HostRequestDefinition<A, B, P>,
      fields: A,
      options: { signal?: AbortSignal | undefined; onProgress?: ((progress: P) => void) | undefined } = {},
    ): Promise<B> {
      return host.requests.ask(request, fields, { signal: this.signal, ...options });
    }
    send<T>(frame: FrameDefinition<T>, fields: T): void {
      host.send({ type: frame.name, ...fields });
    }
    sendRaw(frame: Frame): void {
      host.send(frame);
    }
    hook<In, Out>(
      point: HookPoint<In, Out>,
      input: In,
      options: { signal?: AbortSignal | undefined } = {},
    ): Promise<Out | undefined> {
      const ctx = options.signal === undefined ? this.asContext() : this.derive({ signal: options.signal });
      return host.hooks.run(point, input, ctx);
    }
    hasHooks(point: HookPoint<never, unknown>): boolean {
      return host.hooks.handlers(point.name).length > 0;
    }
    pinHooks(points: readonly HookPoint<never, unknown>[]) {
      return host.hooks.pin(points);
    }
    reportError(owner: string, event: string, error: unknown): void {
      host.reportError(owner, event, error);
    }
    failLate(error: unknown): void {
      const invocation = this.parts.invocation ?? currentCall()?.invocation;
      if (invocation !== undefined) host.failLate(invocation, error);
    }
    track(work: Promise<unknown>): void {
      host.track(work);
    }
    shutdown(): void {
      host.requestShutdown();
    }
    derive(change: ContextChange): Context {
      return new RuntimeContext({
        scope: change.scope ?? this.scope,
        signal: "signal" in change ? change.signal : this.parts.signal,
        invocation: "invocation" in change ? change.invocation : this.parts.invocation,
        locals: change.locals === undefined ? this.locals : { ...this.locals, ...change.locals },
      }).asContext();
    }
    add(...definitions: AnyDefinition[]): () => void {
      this.scope.assertLive("add a contribution");
      const entries = definitions.map((definition) => host.registry.entry(definition, this.scope));
      host.registry.swap({ add: entries });
      const forget = this.scope.track(
        () => {
          host.registry.swap({ remove: entries });
        },
        `contributions ${definitions.map((definition) => definition.name).join(", ")}`,
      );
      return () => {
        forget();
        host.registry.swap({ remove: entries });
      };
    }
    /** The members that higher layers merge into `Context` are on the prototype by then. */
    asContext(): Context {
      return this as unknown as Context;
    }
  }
  Object.defineProperties(RuntimeContext.prototype, host.extensions);
  return (parts) =>
    new RuntimeContext({
      scope: parts.scope,
      signal: parts.signal,
      invocation: parts.invocation ?? currentCall()?.invocation,
      locals: parts.locals ?? {},
    }).asContext();
}

/** A view over the registry's `ui` kind: `ui.confirm(params)` looks the method up at each call. */
function createUi(host: ContextHost, ctx: Context): Ui {
  const call = (name: string, params: Record<string, unknown>, options: DialogOptions = {}): Promise<unknown> => {
    const method = host.registry.get("ui", name)?.definition;
    if (method === undefined) {
      return Promise.reject(new Error(`No UI method is called "${name}": ${listNames(host.registry)}`));
    }
    const parsed = method.params.safeParse(params);
    if (!parsed.success) {
      return Promise.reject(new Error(`Invalid parameters for UI method "${name}": ${describeIssues(parsed.error)}`));
    }
    const shown = parsed.data as Record<string, unknown>;
    const gate = method.essential === true ? undefined : host.uiGate(ctx);
    if (gate?.signal.aborted && method.mode === "notice") return Promise.resolve(undefined);
    const signals = [ctx.signal, options.signal, gate?.signal].filter((each) => each !== undefined);
    const signal = signals.length > 1 ? AbortSignal.any(signals) : signals[0];
    const answer = host.requests.ui(method, shown, { ...options, signal });
    return gate === undefined ? answer : watchGate(gate, () => gate.withheld(name, shown), answer);
  };
  return new Proxy({} as Ui, {
    get: (_target, name) => {
      // An object with a `then` member would be awaited as a promise.
      if (typeof name !== "string" || name === "then") return undefined;
      if (name === "call") return call;
      return (params: Record<string, unknown>, options?: DialogOptions) => call(name, params, options);
    },
  });
}

/** Tells of a dialog that was held back at once or while it was open. */
function watchGate(gate: UiGate, withheld: () => void, answer: Promise<unknown>): Promise<unknown> {
  if (gate.signal.aborted) {
    withheld();
    return answer;
  }
  gate.signal.addEventListener("abort", withheld, { once: true });
  return answer.finally(() => gate.signal.removeEventListener("abort", withheld));
}

function listNames(registry: Registry): string {
  const names = registry.list("ui").map((entry) => entry.name);
  return names.length > 0 ? `there are ${names.join(", ")}` : "none is loaded";
}
