// The handle every handler gets. The kernel gives the members below; higher layers add theirs by declaration merging
// and `kernel.extendContext` (the conversation, settings).
import type { Frame, RequestId } from "../../protocol/frame.ts";
import type { AnyDefinition, FrameDefinition } from "./definition.ts";
import type { HookPoint } from "./hooks.ts";
import type { DialogOptions, HostRequestDefinition, UiMethodDefinition } from "./host-requests.ts";
import type { Registry } from "./registry.ts";
import type { Scope } from "./scope.ts";
import type { Token } from "./services.ts";

export interface Logger {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/** Method name → definition; each UI method's file merges its own. */
// biome-ignore lint/suspicious/noEmptyInterface: filled by declaration merging
export interface UiMethods {}

type UiCall<D> = D extends UiMethodDefinition<infer P, infer R> ? (params: P, options?: DialogOptions) => Promise<R> : never;

/** `ctx.ui.confirm({ title, message })`: a view over the registry's `ui` kind. Notices resolve at once. */
export type Ui = { readonly [M in keyof UiMethods]: UiCall<UiMethods[M]> } & {
  /** Calls a method by name, for methods of other extensions. */
  call(method: string, params: Record<string, unknown>, options?: DialogOptions): Promise<unknown>;
};

/** Which request caused the work at hand; shared by a command and everything it submits. */
export interface Invocation {
  readonly id: RequestId | undefined;
  readonly command: string;
  /** True once the work started an agent turn. */
  agentInvoked: boolean;
  /** True once the response was sent; a concurrent command's work may go on after it. */
  answered?: boolean;
  /** Work that must settle before the invocation counts as local-only. */
  readonly pending: Set<Promise<unknown>>;
}

/** Values higher layers carry along; filled by declaration merging. */
// biome-ignore lint/suspicious/noEmptyInterface: filled by declaration merging
export interface ContextLocals {}

/** What `derive` may change. */
export interface ContextChange {
  signal?: AbortSignal | undefined;
  scope?: Scope | undefined;
  invocation?: Invocation | undefined;
  locals?: Partial<ContextLocals> | undefined;
}

/** Handlers taken at one moment: a tool call uses the same ones before and after (DESIGN §9 "lease set"). */
export interface PinnedHooks {
  run<In, Out>(point: HookPoint<In, Out>, input: In, ctx: Context): Promise<Out | undefined>;
  release(): void;
}

export interface Context {
  /** Id of the extension this context belongs to. */
  readonly owner: string;
  /** The generation that owns what is started here. */
  readonly scope: Scope;
  /** Aborted when the call is given up or the generation is disposed. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  readonly invocation: Invocation | undefined;
  readonly registry: Registry;
  /** `rpc` or `rpc-ui`. */
  readonly mode: "rpc" | "rpc-ui";
  /** False with `--no-ui`: dialogs give their fallback at once. */
  readonly hasUI: boolean;
  readonly ui: Ui;
  /** The service behind a token, looked up now. @throws {Error} when nothing provides it, naming the token. */
  use<T>(token: Token<T>): T;
  /** Like `use`, but undefined when nothing provides it. */
  tryUse<T>(token: Token<T>): T | undefined;
  /** Asks the host; rejects when aborted, disconnected or answered with an error by the definition's reader. */
  ask<A, B, P>(
    request: HostRequestDefinition<A, B, P>,
    fields: A,
    options?: { signal?: AbortSignal | undefined; onProgress?: ((progress: P) => void) | undefined },
  ): Promise<B>;
  /** Sends a process-level frame. */
  send<T>(frame: FrameDefinition<T>, fields: T): void;
  /** Sends a frame as it is; for dialects and tests. */
  sendRaw(frame: Frame): void;
  /** Runs the handlers of a point and gives the combined answer. */
  hook<In, Out>(point: HookPoint<In, Out>, input: In, options?: { signal?: AbortSignal | undefined }): Promise<Out | undefined>;
  /** True when a point has handlers; lets hot paths skip building the input. */
  hasHooks(point: HookPoint<never, unknown>): boolean;
  /** Reports a failure of an extension as an `extension_error` frame. */
  reportError(owner: string, event: string, error: unknown): void;
  /** Asks the daemon to end after the current command's response. */
  shutdown(): void;
  /** A context of the same owner for another signal, or on behalf of a call. */
  derive(change: ContextChange): Context;
  /** Takes the handlers of several points as they are now and holds their generations until released. */
  pinHooks(points: readonly HookPoint<never, unknown>[]): PinnedHooks;
  /** Sends a failure with the id and command of the request at hand after it was acknowledged. */
  failLate(error: unknown): void;
  /** Work of an acknowledged command that goes on: the end of input waits for it as for the command itself. */
  track(work: Promise<unknown>): void;
  /** What higher layers attached to this context (the conversation of the call). */
  readonly locals: Readonly<ContextLocals>;
  /** Adds contributions at run time, owned by this generation. Returns their removal. */
  add(...definitions: AnyDefinition[]): () => void;
}
