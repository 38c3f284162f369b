// Which events of the attached conversation the host wants. Process-wide; implemented by the composition root.
import { createToken } from "../kernel/services.ts";

export interface EventFilter {
  /** Only conversation frames of these types are sent from now on; null lifts the filter. Responses and process-level frames always are. */
  set(events: readonly string[] | null): void;
}

export const EventFilter = createToken<EventFilter>("event filter");
