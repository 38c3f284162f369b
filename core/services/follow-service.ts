// Services that come, change and go while a unit lives: the settings may be read from disk while others are live already.
import type { SetupScope } from "../kernel/definition.ts";
import type { Token } from "../kernel/services.ts";

/**
 * Calls `connect` with the service: with the unit's own swap where there is one by then, else as soon as it comes, and again with
 * each that takes its place. What `connect` returns is undone before the next one and when the unit ends.
 */
export function followService<T>(scope: SetupScope, token: Token<T>, connect: (service: T) => (() => void) | void): void {
  const { ctx } = scope;
  scope.onLive?.(() => {
    let current: T | undefined;
    let undo: (() => void) | void;
    const look = () => {
      const service = scope.signal.aborted ? undefined : ctx.tryUse(token);
      if (service === current) return;
      undo?.();
      current = service;
      undo = service === undefined ? undefined : connect(service);
    };
    const stop = ctx.registry.onChange((diff) => {
      // A swap is not changed from within.
      if (diff.touches("service", token.name)) queueMicrotask(look);
    });
    scope.own(() => {
      stop();
      undo?.();
      undo = undefined;
    }, `following ${token.name}`);
    look();
  });
}
