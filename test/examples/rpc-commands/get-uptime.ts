// A wire command of its own: hosts send {"type":"get_uptime"} and get {"seconds": …}. Wrong parameters are refused before `run`, and
// the result is part of the contract: schema, documentation and client types are read from this one definition.
import { CommandError, defineCommand, z } from "mortise/extension";

const UNITS = { seconds: 1, minutes: 60 };

export default defineCommand({
  name: "get_uptime",
  group: "Process",
  summary: "How long the daemon has been running.",
  params: z.object({ unit: z.string().optional() }),
  result: z.object({ value: z.number(), unit: z.string() }),
  // Finishes at once, so it may run in the lane. What waits for a process, a model or a person is "concurrent".
  concurrency: "serial",
  example: { params: { unit: "minutes" }, result: { value: 12, unit: "minutes" }, failure: "Unknown unit: days" },
  run(_ctx, { unit = "seconds" }) {
    const length = Object.entries(UNITS).find(([name]) => name === unit)?.[1];
    // A refusal for a reason the host can act on; the message reaches it word for word.
    if (length === undefined) throw new CommandError(`Unknown unit: ${unit}`, "invalid_params");
    return { value: Math.floor(process.uptime() / length), unit };
  },
});
