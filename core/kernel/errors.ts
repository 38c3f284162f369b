// The error table. Expected failures have a class here and reach the other side word for word; anything else is a bug.
// Brands use Symbol.for so that an error thrown by code evaluated elsewhere is still recognised.
import type { FailureCode } from "../../protocol/frame.ts";

const brand: unique symbol = Symbol.for("mortise.error") as never;

type ErrorClass = "command" | "protocol" | "tool" | "provider" | "extension" | "disconnected" | "stale";

function branded(value: unknown, name: ErrorClass): boolean {
  return typeof value === "object" && value !== null && (value as Record<symbol, unknown>)[brand] === name;
}

/** A command is refused for a reason the host can act on. The message goes to the host verbatim. */
export class CommandError extends Error {
  readonly [brand] = "command";
  override readonly name = "CommandError";
  readonly code: FailureCode | undefined;
  constructor(message: string, code?: FailureCode, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
  static is(value: unknown): value is CommandError {
    return branded(value, "command");
  }
}

/** A line is not a frame, is too big, or a chunk sequence is broken. */
export class ProtocolError extends Error {
  readonly [brand] = "protocol";
  override readonly name = "ProtocolError";
  static is(value: unknown): value is ProtocolError {
    return branded(value, "protocol");
  }
}

/** A tool cannot do what was asked. The message becomes an error result for the model. */
export class ToolError extends Error {
  readonly [brand] = "tool";
  override readonly name = "ToolError";
  /** Kept as `details` of the error result. */
  readonly details: unknown;
  constructor(message: string, options?: ErrorOptions & { details?: unknown }) {
    super(message, options);
    this.details = options?.details;
  }
  static is(value: unknown): value is ToolError {
    return branded(value, "tool");
  }
}

/** How a failed model call may go on: retry, compact, ask for a key, wait for quota, or stop. */
export type ProviderErrorKind = "retryable" | "overflow" | "auth" | "quota" | "fatal" | "aborted";

/** The model service failed. `kind` decides between retry, compaction and giving up. */
export class ProviderError extends Error {
  readonly [brand] = "provider";
  override readonly name = "ProviderError";
  readonly kind: ProviderErrorKind;
  /** HTTP status, when there was one. */
  readonly status: number | undefined;
  /** What the server asked us to wait. */
  readonly retryAfterMs: number | undefined;
  constructor(
    message: string,
    kind: ProviderErrorKind,
    options?: ErrorOptions & { status?: number | undefined; retryAfterMs?: number | undefined },
  ) {
    super(message, options);
    this.kind = kind;
    this.status = options?.status;
    this.retryAfterMs = options?.retryAfterMs;
  }
  static is(value: unknown): value is ProviderError {
    return branded(value, "provider");
  }
}

/** Where in an extension's life something failed; the `phase` of an `extension_error` frame. */
export type ExtensionPhase = "load" | "setup" | "validate" | "hook" | "command" | "tool" | "timer" | "async" | "dispose";

/** Loading, set-up, a hook or disposal of an extension failed. `owner` names the unit. */
export class ExtensionError extends Error {
  readonly [brand] = "extension";
  override readonly name = "ExtensionError";
  readonly owner: string;
  readonly phase: ExtensionPhase;
  constructor(owner: string, phase: ExtensionPhase, message: string, options?: ErrorOptions) {
    super(message, options);
    this.owner = owner;
    this.phase = phase;
  }
  static is(value: unknown): value is ExtensionError {
    return branded(value, "extension");
  }
}

/** stdin closed while the host still owed an answer. */
export class DisconnectedError extends Error {
  readonly [brand] = "disconnected";
  override readonly name = "DisconnectedError";
  static is(value: unknown): value is DisconnectedError {
    return branded(value, "disconnected");
  }
}

/** An unloaded generation of an extension used one of its handles. */
export class StaleExtensionError extends Error {
  readonly [brand] = "stale";
  override readonly name = "StaleExtensionError";
  readonly owner: string;
  constructor(owner: string, action: string) {
    super(`Cannot ${action}: this version of "${owner}" was unloaded`);
    this.owner = owner;
  }
  static is(value: unknown): value is StaleExtensionError {
    return branded(value, "stale");
  }
}

/** The readable text of anything that was thrown. Never empty, never a stack. */
export function errorMessage(error: unknown): string {
  if (error instanceof Error) return error.message || error.name;
  if (typeof error === "object" && error !== null && "message" in error && typeof error.message === "string") {
    return error.message || "Unknown error";
  }
  if (typeof error === "string") return error || "Unknown error";
  return `Unknown error: ${describeValue(error)}`;
}

/** The stack of anything that was thrown, if it has one. */
export function errorStack(error: unknown): string | undefined {
  return typeof error === "object" && error !== null && "stack" in error && typeof error.stack === "string"
    ? error.stack
    : undefined;
}

function describeValue(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}

/** True when `error` is what an aborted signal throws. */
export function isAbort(error: unknown, signal?: AbortSignal): boolean {
  if (signal?.aborted && error === signal.reason) return true;
  return error instanceof Error && (error.name === "AbortError" || error.name === "APIUserAbortError");
}
