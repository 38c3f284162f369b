// What is loaded, and how to change it while it runs. Implemented by the composition root over the loader.
import { z } from "zod";
import { createToken } from "../kernel/services.ts";

/** A name that two units contribute: `kind:name` and the other unit. */
const Shadow = z.object({ key: z.string().describe("`kind:name`"), owner: z.string().describe("Id of the other unit") });

/** One unit as the loader sees it. */
export const UnitInfo = z
  .object({
    id: z.string().describe("Stable across reloads: the unit's real path, or `builtin:<name>`"),
    name: z.string().describe("What people call it: the folder or file name without its ending"),
    origin: z.enum(["builtin", "package", "user", "project", "cli", "host"]),
    state: z
      .enum(["loading", "active", "failed", "waiting", "disabled", "untrusted", "quarantined"])
      .describe(
        "`untrusted`: code of a project that nobody said yes to, not read; `waiting`: nobody provides a service that it requires",
      ),
    path: z.string().optional().describe("Where its code is; absent for bundled built-ins"),
    generation: z.number().int().describe("Number of the version that answers; 0 when none does"),
    draining: z.number().int().optional().describe("Number of an older version that still finishes its calls"),
    contributes: z.array(z.string()).describe("`kind:name` of what it registered, in order"),
    shadows: z.array(Shadow).describe("What others contribute under its names and that it hides"),
    shadowedBy: z.array(Shadow).describe("What of its own is hidden, and by whom"),
    files: z.array(z.string()).describe("Files whose change loads it anew"),
    timings: z
      .object({ resolve: z.number(), transpile: z.number(), evaluate: z.number(), setup: z.number(), swap: z.number() })
      .describe(
        "Milliseconds of the last load; `resolve` and `transpile` are part of `evaluate`, `swap` is the one synchronous step",
      ),
    handlers: z
      .object({ calls: z.number().int(), p95Ms: z.number() })
      .describe("Calls of its hook handlers, and the 95th percentile of the last 128 without their dialogs, in milliseconds"),
    errors: z.number().int().describe("Failures reported since the daemon started"),
    error: z
      .string()
      .optional()
      .describe("Of the last load that failed, or what it waits for; the version before may still answer"),
  })
  .meta({ id: "ExtensionInfo" });
export type UnitInfo = z.infer<typeof UnitInfo>;

/** What one reload did. */
export const ReloadReport = z
  .object({
    id: z.string(),
    outcome: z.enum(["loaded", "unchanged", "failed", "removed", "waiting"]),
    error: z.string().optional(),
    ms: z.number().optional().describe("Milliseconds of evaluation and set-up"),
  })
  .meta({ id: "ReloadReport" });
export type ReloadReport = z.infer<typeof ReloadReport>;

export interface Extensions {
  /** Every known unit in discovery order, failed and disabled ones included. */
  list(): readonly UnitInfo[];
  /** Loads one unit again, or looks through all folders when no id is given. @throws {CommandError} not_found for an unknown id. */
  reload(id?: string): Promise<readonly ReloadReport[]>;
  /** Takes a unit out, or back in, for this process. @throws {CommandError} not_found for an unknown id. */
  setEnabled(id: string, enabled: boolean): Promise<void>;
}

export const Extensions = createToken<Extensions>("extensions");
