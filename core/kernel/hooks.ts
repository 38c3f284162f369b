// Hook points and their handlers. The point declares once how its handlers' answers combine; one runner serves all points.
import type { Context } from "./context.ts";
import { type Definition, define, type MaybePromise } from "./definition.ts";

/**
 * How answers combine:
 * `first`: in order, the first answer that is not undefined wins. `chain`: each handler gets the value the one before returned.
 * `series`: one after another, answers ignored. `parallel`: together, answers ignored.
 * `veto`: all run in order, the first `{ block: true }` wins; a handler that throws or hangs blocks. No answer allows.
 */
export type Combine = "first" | "chain" | "series" | "parallel" | "veto";

/** A place where extensions steer. `In` is what handlers get, `Out` what they answer. */
export interface HookPoint<In, Out> {
  readonly name: string;
  readonly combine: Combine;
  /** Budget per handler; time spent in the handler's own dialogs is not counted. Default 30 s. */
  readonly timeoutMs?: number;
  readonly summary: string;
  readonly _types?: (input: In) => Out;
}

/** The answer of a `veto` point. */
export interface Veto {
  block: true;
  /** Told to the model or the host. */
  reason?: string | undefined;
  /** Of a tool call: as `endRun` of the tool's context. */
  endRun?: boolean | undefined;
}

export function defineHookPoint<In, Out = void>(point: {
  name: string;
  combine: Combine;
  summary: string;
  timeoutMs?: number;
}): HookPoint<In, Out> {
  return point;
}

/** A handler at a hook point. Its `name` is the point's name; all handlers of a point are kept. */
export interface HookDefinition extends Definition<"hook"> {
  /** −100 … 100, lower runs first; equal ones in rank and discovery order. */
  readonly priority: number;
  /** Which conversations it sees; pi-style lifecycle hooks see the attached one only (DESIGN §9). */
  readonly attachedOnly?: boolean | undefined;
  run(input: never, ctx: Context): MaybePromise<unknown>;
}

/**
 * Defines a handler. For `chain` points return the new value or undefined to keep it; for `veto` points return
 * `{ block: true, reason }` or undefined.
 */
export function defineHook<In>(
  // On its own so that `{ block: true }` keeps its literal type in code with several returns.
  point: HookPoint<In, Veto>,
  run: (input: In, ctx: Context) => MaybePromise<Veto | undefined | void>,
  options?: { priority?: number; attachedOnly?: boolean },
): HookDefinition;
export function defineHook<In, Out>(
  point: HookPoint<In, Out>,
  run: (input: In, ctx: Context) => MaybePromise<Out | undefined | void>,
  options?: { priority?: number; attachedOnly?: boolean },
): HookDefinition;
export function defineHook<In, Out>(
  point: HookPoint<In, Out>,
  run: (input: In, ctx: Context) => MaybePromise<Out | undefined | void>,
  options: { priority?: number; attachedOnly?: boolean } = {},
): HookDefinition {
  return define({
    kind: "hook",
    name: point.name,
    priority: options.priority ?? 0,
    attachedOnly: options.attachedOnly,
    run: run as HookDefinition["run"],
  });
}
