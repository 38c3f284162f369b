import { CommandError, defineCommand, EventFilter, z } from "mortise/extension";

export default defineCommand({
  name: "set_event_filter",
  group: "State",
  summary: "Sends only events of these types; null sends all again. Responses and process-level frames are always sent.",
  concurrency: "serial",
  source: "mortise",
  params: z.object({ events: z.unknown().describe("Frame types, or null") }),
  result: z.object({ events: z.array(z.string()).nullable() }),
  example: {
    params: { events: ["agent_start", "agent_end"] },
    result: { events: ["agent_start", "agent_end"] },
    failure: "events must be null or an array of non-empty event type strings",
  },
  run(ctx, { events }) {
    const parsed = z.array(z.string().min(1)).nullable().safeParse(events);
    if (!parsed.success) {
      throw new CommandError("events must be null or an array of non-empty event type strings", "invalid_params");
    }
    ctx.use(EventFilter).set(parsed.data);
    return { events: parsed.data };
  },
});
