// `pi.events`: one bus for all units of the daemon. A listener that throws is its owner's affair, never the sender's.
import { createToken, defineService } from "mortise/extension";

export interface SharedEvents {
  emit(channel: string, data: unknown): void;
  /** Returns the unsubscription. */
  on(channel: string, listener: (data: unknown) => void): () => void;
}

export const SharedEvents = createToken<SharedEvents>("dialects.events");

export default defineService(SharedEvents, {
  create() {
    const channels = new Map<string, Set<(data: unknown) => void>>();
    return {
      emit(channel, data) {
        // A copy: listeners may unsubscribe while they are told.
        for (const listener of [...(channels.get(channel) ?? [])]) listener(data);
      },
      on(channel, listener) {
        const listeners = channels.get(channel) ?? new Set();
        channels.set(channel, listeners.add(listener));
        return () => {
          listeners.delete(listener);
          if (listeners.size === 0 && channels.get(channel) === listeners) channels.delete(channel);
        };
      },
    };
  },
});
