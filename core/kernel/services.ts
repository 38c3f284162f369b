// Services: one implementation per daemon behind a typed token. Looked up at each call, so a reloaded owner answers at once.
import type { Context } from "./context.ts";
import { type Definition, define, type MaybePromise } from "./definition.ts";

declare const type: unique symbol;

/** The value that names a service and carries its type. */
export interface Token<T> {
  readonly name: string;
  readonly [type]?: T;
}

/** Makes a token. Two tokens of one name are the same service. */
export function createToken<T>(name: string): Token<T> {
  return { name };
}

/**
 * An implementation of a token.
 *
 * `create` runs once per generation at the first `ctx.use(token)`; what it starts belongs to `ctx.scope`.
 * `requires` re-activates this unit when one of those services changes its owner.
 */
export interface ServiceDefinition<T = unknown> extends Definition<"service"> {
  readonly requires?: readonly Token<unknown>[] | undefined;
  create(ctx: Context): T;
}

export function defineService<T>(
  token: Token<T>,
  service: { requires?: readonly Token<unknown>[]; create(ctx: Context): T },
): ServiceDefinition<T> {
  return define({ kind: "service", name: token.name, ...service });
}

export type { MaybePromise };
