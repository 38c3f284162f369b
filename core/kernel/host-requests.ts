// Questions from the daemon to the host that carry an id: dialogs, host tool calls, host URI requests. One table serves all:
// ids, timeout, abort with a cancel frame, answers with unknown ids, disconnect. Every request settles exactly once.
import type { z } from "zod";
import { type Definition, define } from "./definition.ts";

/** A UI method: the shape of its request, how the answer is read, and what holds when nobody answers. */
export interface UiMethodDefinition<P = unknown, R = unknown> extends Definition<"ui"> {
  readonly summary: string;
  /** Fields of the `extension_ui_request` besides `type`, `id`, `method` and `timeout`. */
  readonly params: z.ZodType<P>;
  /** `dialog` waits for an answer; `notice` does not. */
  readonly mode: "dialog" | "notice";
  /** Reads the answer; `undefined` means it does not fit and the dialog stays open for a valid one. */
  read?(answer: UiAnswer, params: P): { value: R } | undefined;
  /** What the caller gets on cancel, timeout and abort. */
  readonly fallback?: R | undefined;
  /** Whether requests of this method are sent at all, by the daemon's environment (`setTitle` is off by default). */
  enabled?(env: NodeJS.ProcessEnv): boolean;
  /** Sent even where the host shows no dialogs: without it a login could not go on. */
  readonly essential?: boolean | undefined;
  /** False when the method takes no timeout (the `editor` of the seeds). */
  readonly allowTimeout?: boolean | undefined;
  readonly source?: "000" | "002" | "both" | "mortise" | undefined;
  readonly example: Record<string, unknown>;
}

/** An `extension_ui_response` as it came, `cancelled` sorted out before. */
export interface UiAnswer {
  value?: unknown;
  confirmed?: unknown;
}

/** Options of a dialog call. */
export interface DialogOptions {
  /** Milliseconds; 0 gives the fallback at once. */
  timeout?: number | undefined;
  signal?: AbortSignal | undefined;
  onTimeout?: (() => void) | undefined;
}

/** Defines a UI method. Its file merges `interface UiMethods` so that `ctx.ui.<name>` is typed. */
export function defineUiMethod<P, R = void>(method: Omit<UiMethodDefinition<P, R>, "kind">): UiMethodDefinition<P, R> {
  return define({ kind: "ui", ...method });
}

/** A question to the host with its own frame types (host tools, host URIs). */
export interface HostRequestDefinition<Ask = Record<string, unknown>, Answer = unknown, Progress = unknown>
  extends Definition<"host request"> {
  readonly summary: string;
  /** Outbound type; also `name`. */
  readonly ask: z.ZodType<Ask>;
  /** Inbound type that answers, and the shape of that frame without `type` and `id`. */
  readonly answerType: string;
  readonly answer: z.ZodType<Answer>;
  /** What an open request rejects with when its answer does not fit. A misfit for no open request is no answer at all. */
  readonly misfitMessage: string;
  /** Inbound type that reports progress, when there is one. */
  readonly progressType?: string | undefined;
  readonly progress?: z.ZodType<Progress> | undefined;
  /** Outbound type sent with `targetId` when the request is given up. */
  readonly cancelType: string;
  /** Prefix of request ids, e.g. `host`. */
  readonly idPrefix: string;
  /** Rejection text once stdin is closed. */
  readonly disconnectMessage: string;
}

export function defineHostRequest<Ask, Answer, Progress = unknown>(
  request: Omit<HostRequestDefinition<Ask, Answer, Progress>, "kind">,
): HostRequestDefinition<Ask, Answer, Progress> {
  return define({ kind: "host request", ...request });
}
