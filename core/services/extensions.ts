// What is loaded, and how to change it while it runs. Implemented by the composition root over the loader.
import { createToken } from "../kernel/services.ts";

/** One unit as the loader sees it. */
export interface UnitInfo {
  /** Stable across reloads: the unit's real path, or `builtin:<name>`. */
  readonly id: string;
  /** What people call it: the folder or file name without its ending. */
  readonly name: string;
  readonly origin: "builtin" | "package" | "user" | "project" | "cli" | "host";
  readonly state: "active" | "failed" | "disabled" | "untrusted" | "quarantined";
  /** Where its code is; absent for bundled built-ins. */
  readonly path?: string | undefined;
  /** Grows by one with every successful load; 0 before the first. */
  readonly generation: number;
  /** `kind:name` of what it contributes, in order. */
  readonly contributes: readonly string[];
  /** Of the last load that failed; the version before may still be active. */
  readonly error?: string | undefined;
}

/** What one reload did. */
export interface ReloadReport {
  readonly id: string;
  readonly outcome: "loaded" | "unchanged" | "failed" | "removed";
  readonly error?: string | undefined;
  readonly ms?: number | undefined;
}

export interface Extensions {
  /** Every known unit in discovery order, failed and disabled ones included. */
  list(): readonly UnitInfo[];
  /** Loads one unit again, or looks through all folders when no id is given. @throws {CommandError} not_found for an unknown id. */
  reload(id?: string): Promise<readonly ReloadReport[]>;
  /** Takes a unit out, or back in, for this process. @throws {CommandError} not_found for an unknown id. */
  setEnabled(id: string, enabled: boolean): Promise<void>;
}

export const Extensions = createToken<Extensions>("extensions");
