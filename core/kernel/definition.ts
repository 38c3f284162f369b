// What a contribution is: a branded value with a kind and a name. Everything derived (validation, schema, docs, client types,
// contract tests) is read from it. Kinds of higher layers (tools, providers, …) are added by declaration merging.
import type { z } from "zod";
import type { Frame } from "../../protocol/frame.ts";
import type { Context } from "./context.ts";
import type { HookDefinition } from "./hooks.ts";
import type { HostRequestDefinition, UiMethodDefinition } from "./host-requests.ts";
import type { ServiceDefinition } from "./services.ts";

const brand: unique symbol = Symbol.for("mortise.definition") as never;

/** Kind name → definition type. Higher layers merge theirs in. */
export interface Kinds {
  command: CommandDefinition;
  "command override": CommandOverride;
  event: FrameDefinition;
  ui: UiMethodDefinition;
  "host request": HostRequestDefinition;
  hook: HookDefinition;
  service: ServiceDefinition;
}
export type Kind = keyof Kinds;
export type AnyDefinition = Kinds[Kind];

/** The members every definition has. */
export interface Definition<K extends string = string> {
  readonly kind: K;
  readonly name: string;
}

/** Brands a definition. Used by the `define*` functions only. */
export function define<D extends Definition>(definition: D): D {
  Object.defineProperty(definition, brand, { value: true });
  return definition;
}

/** True for what a `define*` call returned, whichever copy of the package made it. */
export function isDefinition(value: unknown): value is AnyDefinition {
  return typeof value === "object" && value !== null && (value as Record<symbol, unknown>)[brand] === true;
}

export type MaybePromise<T> = T | Promise<T>;

/**
 * A frame type a host may send.
 *
 * `serial` commands run one after another in arrival order and must finish promptly; `concurrent` ones leave the lane after
 * their synchronous part (DESIGN §3 "scheduling").
 */
export interface CommandDefinition<P = unknown, R = unknown> extends Definition<"command"> {
  /** Heading in the protocol reference, e.g. "Model". */
  readonly group: string;
  /** One sentence in the present tense. */
  readonly summary: string;
  /** Parameters without `id` and `type`; unknown keys are dropped. */
  readonly params: z.ZodType<P>;
  /** `data` of the success response; absent when the response carries none. */
  readonly result?: z.ZodType<R> | undefined;
  readonly concurrency: "serial" | "concurrent";
  /** True for commands no extension may override (`abort*`, `negotiate_protocol`, extension management). */
  readonly sealed?: boolean | undefined;
  /** Where the rule comes from: "000", "002" or "mortise". Used by the coverage table of docs/protocol.md. */
  readonly source?: "000" | "002" | "both" | "mortise" | undefined;
  readonly example: {
    readonly params: Record<string, unknown>;
    readonly result?: unknown;
    /** An error text this command gives. */
    readonly failure?: string | undefined;
  };
  run(ctx: Context, params: P): MaybePromise<R>;
}

/** Defines a command. `run` returns the response's `data`; throw CommandError to refuse. */
export function defineCommand<P, R>(command: Omit<CommandDefinition<P, R>, "kind">): CommandDefinition<P, R> {
  return define({ kind: "command", ...command });
}

/** Replaces a command's behaviour and keeps its schema, result and concurrency (DESIGN §9). */
export interface CommandOverride extends Definition<"command override"> {
  run(ctx: Context, params: never, next: () => Promise<unknown>): MaybePromise<unknown>;
}

/** Overrides a wire command. A throw before `next` lets the shadowed command answer. */
export function overrideCommand<P = Record<string, unknown>>(
  name: string,
  override: { run(ctx: Context, params: P, next: () => Promise<unknown>): MaybePromise<unknown> },
): CommandOverride {
  return define({ kind: "command override", name, run: override.run as CommandOverride["run"] });
}

/** An outbound frame type that is not a response: a session event or a process-level notice. */
export interface FrameDefinition<T = Record<string, unknown>> extends Definition<"event"> {
  readonly summary: string;
  /** The frame's fields without `type`. */
  readonly fields: z.ZodType<T>;
  /**
   * `conversation`: sent only while its conversation is attached. `process`: always sent (DESIGN §9 "Background").
   */
  readonly scope: "conversation" | "process";
  readonly source?: "000" | "002" | "both" | "mortise" | undefined;
  readonly example: Record<string, unknown>;
}

/** Defines an outbound frame. Emit it with `conversation.emit(definition, fields)` or `ctx.send(definition, fields)`. */
export function defineFrame<T>(frame: Omit<FrameDefinition<T>, "kind">): FrameDefinition<T> {
  return define({ kind: "event", ...frame });
}

/** Builds the frame of a definition. */
export function frameOf<T>(definition: FrameDefinition<T>, fields: T): Frame {
  return { type: definition.name, ...fields };
}

/** What a unit's default export may hold besides definitions. */
export interface ExtensionDefinition extends Definition<"extension"> {
  readonly contributes: readonly AnyDefinition[];
  /** The only kinds the unit may contribute; a statement of intent that is held to, not a sandbox. */
  readonly permissions?: readonly Kind[] | undefined;
  readonly setup?: ((scope: SetupScope) => MaybePromise<void>) | undefined;
}

/** The door an extension's `setup` gets: everything added here is owned by the generation and undone with it. */
export interface SetupScope {
  /** The unit's id, as shown in errors. */
  readonly owner: string;
  /** Aborted when the generation is disposed. */
  readonly signal: AbortSignal;
  readonly ctx: Context;
  /** Adds a contribution; it goes live with the swap, or at once when set-up is over. Returns its removal. */
  add(...definitions: AnyDefinition[]): () => void;
  /** Replaces the named set of contributions as a whole (host tools, MCP tools). */
  replace(set: string, definitions: readonly AnyDefinition[]): void;
  /** Runs `undo` when the generation is disposed, last one first. Returns a function that undoes it now. */
  own(undo: () => MaybePromise<void>, label?: string): () => Promise<void>;
  /** State handed from the previous generation to this one; structured-cloneable values only. */
  readonly hot: { data: unknown; version?: string | number | undefined };
  /** Runs once the swap has made this generation live: `reload` when an earlier generation of the unit was live before. */
  onLive?(run: (reason: "startup" | "reload") => MaybePromise<void>): void;
  /** Runs when this generation retires: after its last call, before its scope is disposed; bounded, its failure is reported. */
  onRetire?(run: (reason: "reload" | "unload" | "shutdown") => MaybePromise<void>): void;
}

/** Defines an extension with set-up code. A single definition, or an array of them, is an extension as well. */
export function defineExtension(extension: {
  name: string;
  contributes?: readonly AnyDefinition[];
  permissions?: readonly Kind[];
  setup?(scope: SetupScope): MaybePromise<void>;
}): ExtensionDefinition {
  return define({
    kind: "extension",
    name: extension.name,
    contributes: extension.contributes ?? [],
    permissions: extension.permissions,
    setup: extension.setup,
  });
}

/** True for the value `defineExtension` returned. */
export function isExtension(value: unknown): value is ExtensionDefinition {
  return isDefinition(value) && (value as Definition).kind === "extension";
}
