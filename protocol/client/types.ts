// The shapes that a host writes: handlers, tools, schemes, options.
import type { InputContent } from "../content.ts";
import type { Frame } from "../frame.ts";
import type { CommandMap, EventMap } from "../generated/commands.ts";

export type CommandName = keyof CommandMap & string;
export type EventName = keyof EventMap & string;
export type Params<Name extends CommandName> = CommandMap[Name]["params"];
export type Result<Name extends CommandName> = CommandMap[Name]["result"];

/** Parameters may be left out when none is required. */
export type RequestArguments<Name extends CommandName> =
  Record<never, never> extends Params<Name>
    ? [params?: Params<Name>, options?: RequestOptions]
    : [params: Params<Name>, options?: RequestOptions];

export interface RequestOptions {
  /** Give up waiting after this many milliseconds (HostError `timeout`). Default: wait for ever. */
  readonly timeoutMs?: number | undefined;
  /** Give up waiting (HostError `cancelled`). The daemon is not told; use `abort()` for that. */
  readonly signal?: AbortSignal | undefined;
}

/** Given to every handler: fires when the daemon no longer wants an answer. */
export interface HandlerContext {
  readonly signal: AbortSignal;
}

type Answer<T> = T | undefined | Promise<T | undefined>;

/** Answers to dialogs. Undefined, an exception or a missing handler mean "cancelled". */
export interface UiHandlers {
  select?(
    request: { title: string; options: readonly string[]; optionDetails?: readonly { description?: string }[]; timeout?: number },
    context: HandlerContext,
  ): Answer<string>;
  confirm?(request: { title: string; message: string; timeout?: number }, context: HandlerContext): Answer<boolean>;
  input?(request: { title: string; placeholder?: string; timeout?: number }, context: HandlerContext): Answer<string>;
  editor?(request: { title: string; prefill?: string; promptStyle?: boolean }, context: HandlerContext): Answer<string>;
  notify?(request: { message: string; notifyType?: string }): void;
  setStatus?(request: { statusKey: string; statusText?: string }): void;
  setWidget?(request: { widgetKey: string; widgetLines?: readonly string[]; widgetPlacement?: string }): void;
  setTitle?(request: { title: string }): void;
  set_editor_text?(request: { text: string }): void;
  open_url?(request: { url: string; launchUrl?: string; instructions?: string; credential?: string }): void;
}

/** What a host tool gives back. A string is one text block. */
export type HostToolOutput =
  | string
  | { readonly content: readonly InputContent[]; readonly details?: unknown; readonly isError?: boolean };

export interface HostToolContext extends HandlerContext {
  /** The model's id of the call. */
  readonly toolCallId: string;
  /** Shows progress. */
  readonly update: (partial: HostToolOutput) => void;
}

/** A tool of the host. An exception of `run` becomes an error result for the model. */
export interface HostTool {
  readonly name: string;
  readonly label?: string | undefined;
  readonly description: string;
  /** JSON Schema of an object. The daemon checks arguments against it before it calls. */
  readonly parameters: Record<string, unknown>;
  readonly hidden?: boolean | undefined;
  run(args: Record<string, unknown>, context: HostToolContext): HostToolOutput | Promise<HostToolOutput>;
}

/** What reading a host URI gives. A string is plain text. */
export type HostUriOutput =
  | string
  | {
      readonly content: string;
      readonly contentType?: string | undefined;
      readonly notes?: readonly string[] | undefined;
      readonly immutable?: boolean | undefined;
    };

/** A URL scheme of the host. `write` makes it writable. */
export interface HostUriScheme {
  readonly scheme: string;
  readonly description?: string | undefined;
  readonly immutable?: boolean | undefined;
  read(url: string, context: HandlerContext): HostUriOutput | Promise<HostUriOutput>;
  write?(url: string, content: string, context: HandlerContext): void | Promise<void>;
}

export interface ClientOptions {
  readonly ui?: UiHandlers | undefined;
  /** 1 keeps the client on protocol v1. Default: 2 when the daemon offers it. */
  readonly protocolVersion?: 1 | 2 | undefined;
  /** Milliseconds to wait for the `ready` frame. Default 30 s. */
  readonly readyTimeoutMs?: number | undefined;
  /** A handler of the host threw, or a request failed after it had been answered (code, command and text in the error). */
  readonly onError?: ((error: Error) => void) | undefined;
}

export interface SpawnOptions extends ClientOptions {
  /** Program to start. Default: Node with the daemon that belongs to this client. */
  readonly command?: string | undefined;
  /** With `command`: all arguments. Without: those after `--mode`. */
  readonly args?: readonly string[] | undefined;
  /** Mode of the default program. Default `rpc-ui` when dialogs are handled, else `rpc`. */
  readonly mode?: "rpc" | "rpc-ui" | undefined;
  readonly cwd?: string | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** What the daemon writes to stderr. It is read in any case; the end of it is put into errors. */
  readonly onStderr?: ((text: string) => void) | undefined;
}

export interface PromptOptions {
  readonly images?: readonly { type: "image"; data: string; mimeType: string }[] | undefined;
  readonly streamingBehavior?: "steer" | "followUp" | undefined;
  /** Stop waiting after this many milliseconds (HostError `timeout`); the run goes on. */
  readonly timeoutMs?: number | undefined;
  /** Aborts the run; the outcome is then that of the aborted run. */
  readonly signal?: AbortSignal | undefined;
}

/** How a prompt ended. */
export interface PromptOutcome {
  /** False when the prompt was handled locally (a slash command) and no model turn ran. */
  readonly agentInvoked: boolean;
  /** `status` of `prompt_result`, when the daemon sent one first. */
  readonly status: string | undefined;
  /** The messages of the run, complete also when the daemon shortened `agent_end`. */
  readonly messages: readonly Record<string, unknown>[];
}

/** How the daemon's process ended; both undefined for attached streams. */
export interface ExitStatus {
  readonly code: number | null | undefined;
  readonly signal: NodeJS.Signals | null | undefined;
}

export type FramePredicate = (frame: Frame) => boolean;
