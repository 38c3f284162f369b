// Layered configuration. The file format lives in extensions/settings; this is what everybody reads.
import type { SettingDefinition } from "../agent/settings.ts";
import { createToken } from "../kernel/services.ts";

/** Low to high: defaults, RPC host defaults, user file, project file, `--config` overlays, this process. */
export type SettingLayer = "default" | "host" | "user" | "project" | "overlay" | "runtime";

/** A configuration file that cannot be used. `message` names the file and what is wrong with it, on one line, without values. */
export class SettingsFileError extends Error {
  override readonly name = "SettingsFileError";
  readonly file: string;
  constructor(file: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.file = file;
  }
  static is(value: unknown): value is SettingsFileError {
    return value instanceof Error && value.name === "SettingsFileError";
  }
}

export interface Settings {
  /** The effective value. A value that does not fit the schema is reported once and the next lower layer answers. */
  get<T>(setting: SettingDefinition<T>): T;
  /** By dotted path; undefined when no layer and no definition has it. */
  getPath(path: string): unknown;
  /** Which layer answers, and from which file. */
  origin(path: string): { layer: SettingLayer; file?: string | undefined };
  /** For this process only; never written (DESIGN §3 "runtime setters"). */
  setRuntime(path: string, value: unknown): void;
  /** Writes one path into the user's or the project's config.yml, keeping comments and unknown keys. */
  write(layer: "user" | "project", path: string, value: unknown): Promise<void>;
  /** Told of the dotted paths whose effective value changed. */
  onChange(listener: (paths: readonly string[]) => void): () => void;
  /** Everything configured, merged; for `/settings`. */
  all(): Record<string, unknown>;
  /** Names that the project's file sets and that wait until the project is trusted. */
  withheld?(): readonly string[];
  /** Why a `--config` file could not be used at start: the daemon reports it and ends (DESIGN §2 "after ready"). */
  readonly fatal: SettingsFileError | undefined;
}

export const Settings = createToken<Settings>("settings");
