// One generation's view of the shared bus: its listeners are owned by the scope and fall silent when it retires.
import type { Runtime } from "./_runtime.ts";
import { SharedEvents } from "./shared-events.ts";

/** `pi.events`. Subscriptions and sendings made while the extension loads happen when it goes live, in order. */
export function createBus(runtime: Runtime): {
  emit(channel: string, data?: unknown): void;
  on(channel: string, listener: (data: unknown) => unknown): () => void;
  off(channel: string, listener: (data: unknown) => unknown): void;
} {
  const subscriptions = new Map<string, Map<unknown, () => void>>();

  const on = (channel: string, listener: (data: unknown) => unknown): (() => void) => {
    runtime.assertUsable("events.on");
    let stopped = false;
    let unsubscribe: (() => void) | undefined;
    runtime.whenLive(() => {
      if (stopped) return;
      unsubscribe = runtime.scope.ctx.use(SharedEvents).on(channel, (data) => {
        // A retiring generation gets no new calls; its successor listens already.
        if (runtime.scope.ctx.scope.state === "active") runtime.contain(`events:${channel}`, () => listener(data));
      });
    });
    const undo = runtime.scope.own(() => unsubscribe?.(), `listener of ${channel}`);
    const stop = (): void => {
      if (stopped) return;
      stopped = true;
      subscriptions.get(channel)?.delete(listener);
      runtime.background(`events:${channel}`, undo());
    };
    const listeners = subscriptions.get(channel) ?? new Map<unknown, () => void>();
    subscriptions.set(channel, listeners.set(listener, stop));
    return stop;
  };

  return {
    on,
    off: (channel, listener) => subscriptions.get(channel)?.get(listener)?.(),
    emit: (channel, data) => {
      runtime.assertUsable("events.emit");
      runtime.whenLive(() => runtime.scope.ctx.use(SharedEvents).emit(channel, data));
    },
  };
}
