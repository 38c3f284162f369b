// The centre of the daemon: registry, dispatch, host requests, hooks and services over an injected pair of frame pipes. It knows
// nothing of models or files, and starts with zero extensions: it writes `ready` and answers `Unknown command`.
import type { Frame } from "../../protocol/frame.ts";
import { currentCall, runCall } from "./attribution.ts";
import type { Context, ContextChange, Invocation, Logger } from "./context.ts";
import { createContextFactory, type UiGate } from "./context-runtime.ts";
import { Dispatcher, failureFrame } from "./dispatcher.ts";
import { DisconnectedError, type ExtensionPhase, errorMessage, errorStack, isAbort, StaleExtensionError } from "./errors.ts";
import { HookRunner } from "./hook-runner.ts";
import type { HookDefinition } from "./hooks.ts";
import { HostRequestTable } from "./host-request-table.ts";
import { Registry } from "./registry.ts";
import type { Scope } from "./scope.ts";
import { ServiceContainer } from "./service-container.ts";

/** Where frames go: the ordered writer of stdout, or a test's array. */
export interface FrameSink {
  send(frame: Frame): void;
  /** A frame that is already JSON text, without newline. */
  sendText(json: string): void;
}

export interface KernelOptions {
  mode: "rpc" | "rpc-ui";
  hasUI: boolean;
  sink: FrameSink;
  log: Logger;
  validateResults?: boolean;
  /** Masks secrets in error frames, failures and notices. */
  redact?: (text: string) => string;
  /** What the owner of a failure is shown of its stack. */
  authorStack?: (stack: string, owner: string) => string;
  /** Told once when an extension asked to end the daemon, after the current command's response. */
  onShutdownRequest?: () => void;
  /** Told when a version of an extension fails so often that it should be taken out of service. */
  onQuarantine?: (owner: string, reason: string, generation: number) => void;
}

export interface ErrorReport {
  owner: string;
  event: string;
  error: unknown;
  phase?: ExtensionPhase | undefined;
  generation?: number | undefined;
}

/** This many asynchronous failures of one version within the window take it out of service. */
const STRIKES = 10;
const STRIKE_WINDOW_MS = 10_000;
/** Same owner, event and text within this time are counted instead of sent again. */
const REPEAT_WINDOW_MS = 1_000;

export class Kernel {
  readonly registry = new Registry();
  readonly services: ServiceContainer;
  readonly hooks: HookRunner;
  readonly requests: HostRequestTable;
  readonly dispatcher: Dispatcher;
  readonly log: Logger;
  readonly mode: "rpc" | "rpc-ui";
  readonly hasUI: boolean;
  /** Members higher layers add to every context; fill it before the first context is made. */
  readonly contextExtensions: PropertyDescriptorMap = {};
  /** Decides whether a handler sees a call; the agent layer narrows it to attached conversations. */
  hookFilter: (definition: HookDefinition, ctx: Context) => boolean = () => true;
  /** Holds back dialogs and notices; the agent layer does it for conversations that are not attached. */
  uiGate: (ctx: Context) => UiGate | undefined = () => undefined;

  readonly #options: KernelOptions;
  readonly #inputEnd = new AbortController();
  /** By version: what an older one still does is not laid at the door of the newer. */
  readonly #strikes = new Map<string, number[]>();
  readonly #recent = new Map<string, number>();
  readonly #errors = new Map<string, number>();
  #makeContext: ((parts: { scope: Scope } & ContextChange) => Context) | undefined;
  #shutdownRequested = false;
  #muted: Set<string> | undefined;

  constructor(options: KernelOptions) {
    this.#options = options;
    this.mode = options.mode;
    this.hasUI = options.hasUI;
    this.log = options.log;
    this.requests = new HostRequestTable({ send: (frame) => this.send(frame), hasUI: options.hasUI });
    this.services = new ServiceContainer(this.registry, (scope) => this.createContext(scope));
    this.hooks = new HookRunner({
      registry: this.registry,
      reportError: (owner, event, error) => this.reportError({ owner, event, error, phase: "hook" }),
      accepts: (definition, ctx) => this.hookFilter(definition, ctx),
    });
    this.dispatcher = new Dispatcher({
      registry: this.registry,
      requests: this.requests,
      log: options.log,
      send: (frame) => this.send(frame),
      sendText: (json) => options.sink.sendText(json),
      contextFor: (scope, invocation) => this.createContext(scope, { invocation, signal: this.#inputEnd.signal }),
      reportError: (owner, event, error) => this.reportError({ owner, event, error, phase: "command" }),
      redact: (text) => this.redact(text),
      onAnswered: () => this.#actOnShutdown(),
      validateResults: options.validateResults ?? false,
    });
  }

  /** Aborted when stdin has ended; commands at work get it as `ctx.signal`. */
  get inputEnd(): AbortSignal {
    return this.#inputEnd.signal;
  }

  send(frame: Frame): void {
    if (this.#muted?.has(frame.type) === true) return;
    const text = frame.type === "notice" ? frame["message"] : undefined;
    this.#options.sink.send(typeof text === "string" ? { ...frame, message: this.redact(text) } : frame);
  }

  /** The text without the secrets of this process. */
  redact(text: string): string {
    return this.#options.redact?.(text) ?? text;
  }

  /** Frames of these types are no longer sent: while everything is taken down they would tell of nothing but the end. */
  mute(...types: string[]): void {
    this.#muted = new Set(types);
  }

  /** Makes a context for code of `scope`. */
  createContext(scope: Scope, change: ContextChange = {}): Context {
    this.#makeContext ??= createContextFactory({
      registry: this.registry,
      services: this.services,
      hooks: this.hooks,
      requests: this.requests,
      log: this.log,
      mode: this.mode,
      hasUI: this.hasUI,
      send: (frame) => this.send(frame),
      reportError: (owner, event, error) => this.reportError({ owner, event, error }),
      requestShutdown: () => this.requestShutdown(),
      failLate: (invocation, error) => this.failLate(invocation, error),
      track: (work) => this.dispatcher.track(work),
      uiGate: (ctx) => this.uiGate(ctx),
      extensions: this.contextExtensions,
    });
    return this.#makeContext({ scope, ...change });
  }

  /** Runs `fn` as code of `scope`, so that what it starts is attributed to it. */
  runAs<T>(scope: Scope, fn: () => T): T {
    return runCall({ scope, locals: {} }, fn);
  }

  /** A request that was acknowledged failed afterwards: same id, same command (000_…, "Edge behavior"). */
  failLate(invocation: Invocation, error: unknown): void {
    this.send(failureFrame(invocation.id, invocation.command, error, (text) => this.redact(text)));
  }

  /** stdin closed: open and later host requests reject, work in commands is told to stop. */
  endInput(): void {
    this.requests.disconnect();
    this.#inputEnd.abort(new DisconnectedError("The host closed stdin"));
  }

  /** Ends the daemon once the command at hand is answered. */
  requestShutdown(): void {
    this.#shutdownRequested = true;
    const invocation = currentCall()?.invocation;
    // Work that goes on after its response would wait for one that never comes; what ends with it is still sent first.
    if (invocation === undefined || invocation.answered) setImmediate(() => this.#actOnShutdown());
  }

  #actOnShutdown(): void {
    if (!this.#shutdownRequested) return;
    this.#shutdownRequested = false;
    this.#options.onShutdownRequest?.();
  }

  /** Failures of an owner reported so far, repeated ones included. */
  errorCount(owner: string): number {
    return this.#errors.get(owner) ?? 0;
  }

  /** Reports an extension's failure as an `extension_error` frame: attributed, masked, the same one at most once a second. */
  reportError(report: ErrorReport): void {
    this.#errors.set(report.owner, this.errorCount(report.owner) + 1);
    const message = this.redact(errorMessage(report.error));
    const key = `${report.owner}\n${report.event}\n${message}`;
    const now = performance.now();
    if (now - (this.#recent.get(key) ?? Number.NEGATIVE_INFINITY) >= REPEAT_WINDOW_MS) {
      this.#recent.set(key, now);
      if (this.#recent.size > 500) this.#recent.clear();
      const stack = errorStack(report.error);
      const shown = stack && this.redact(this.#options.authorStack?.(stack, report.owner) ?? stack);
      this.send({
        type: "extension_error",
        extensionPath: report.owner,
        event: report.event,
        error: message,
        ...(shown === undefined ? {} : { stack: shown }),
        ...(report.phase === undefined ? {} : { phase: report.phase }),
        ...(report.generation === undefined ? {} : { generation: report.generation }),
      });
      this.log.error(`Extension "${report.owner}" failed in ${report.event}: ${message}`, { stack });
    }
    if (report.phase === "async" || report.phase === "timer") this.#strike(report, now);
  }

  #strike({ owner, generation = 0 }: ErrorReport, now: number): void {
    const key = `${owner}\n${generation}`;
    const isRecent = (at: number) => now - at < STRIKE_WINDOW_MS;
    const strikes = [...(this.#strikes.get(key) ?? []).filter(isRecent), now];
    for (const [other, at] of this.#strikes) if (!at.some(isRecent)) this.#strikes.delete(other);
    this.#strikes.set(key, strikes);
    if (strikes.length < STRIKES) return;
    this.#strikes.delete(key);
    this.#options.onQuarantine?.(owner, `it failed ${STRIKES} times within ${STRIKE_WINDOW_MS / 1000} s`, generation);
    // That it was taken out is reported as well, and is no failure of its own.
    this.#strikes.delete(key);
  }

  /**
   * Handles an error that reached the process. True when it could be attributed to an extension and is contained; false means
   * it is our own bug.
   */
  contain(error: unknown): boolean {
    const scope = currentCall()?.scope;
    // What an unloaded version was still waiting for ends with it; that is how it should be.
    if ((scope === undefined || scope.state === "disposed") && isEndOfScope(error, scope)) return true;
    if (scope === undefined || scope.owner.origin === "builtin") return false;
    this.reportError({ owner: scope.owner.id, event: "async", error, phase: "async", generation: scope.generation });
    return true;
  }
}

function isEndOfScope(error: unknown, scope: Scope | undefined): boolean {
  return StaleExtensionError.is(error) || (scope !== undefined && isAbort(error, scope.signal));
}
