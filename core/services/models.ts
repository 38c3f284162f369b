// Which models exist, which credential a request uses. Implemented by extensions/models.
import type { Model, ThinkingLevel } from "../../protocol/model.ts";
import { createToken } from "../kernel/services.ts";

export interface ResolvedKey {
  /** Absent for keyless providers. */
  readonly apiKey?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface Models {
  /** Models whose provider is enabled and has a credential or needs none, in catalogue order. */
  available(): Model[];
  /** Every known model. */
  all(): Model[];
  find(provider: string, id: string): Model | undefined;
  /** `provider/id`, `id`, or either with `:level`; exact first, then unique prefix. */
  resolve(selector: string): { model: Model; thinkingLevel?: ThinkingLevel | undefined } | undefined;
  /** The list `cycle_model` walks: `--models` or the `enabledModels` setting, else undefined. */
  scoped(): Model[] | undefined;
  /** What a new conversation starts with: command line, saved default, first available; undefined when there is none. */
  initial(): { model: Model; thinkingLevel?: ThinkingLevel | undefined } | undefined;
  hasKey(provider: string): boolean;
  /** Resolves the credential per request. @throws {ProviderError} kind `auth`, naming where a key can be put. */
  key(model: Model): Promise<ResolvedKey>;
  /** The service refused the credential: renews a login that can be renewed. False when there is nothing to renew or it fails. */
  renew?(model: Model): Promise<boolean>;
  /** Clamps a level to what the model supports; `off` for models without reasoning. */
  clamp(model: Model, level: ThinkingLevel): ThinkingLevel;
  /** Re-reads models.yml, discovery and contributed providers. */
  refresh(): Promise<void>;
}

export const Models = createToken<Models>("models");

/** One stored credential of auth.json. */
export type Credential =
  | { type: "api_key"; key: string }
  | { type: "oauth"; access: string; refresh?: string | undefined; expires?: number | undefined; [extra: string]: unknown };

/** auth.json: mode 0600, written atomically under a lock, shared by concurrent daemons. */
export interface Credentials {
  get(provider: string): Credential | undefined;
  set(provider: string, credential: Credential): Promise<void>;
  remove(provider: string): Promise<boolean>;
  /** Providers with a stored credential. */
  list(): string[];
  /** Runs `refresh` for one provider across all daemons at once and stores what it returns. */
  refresh(provider: string, refresh: (current: Credential) => Promise<Credential>): Promise<Credential>;
  /** Every secret known to this process, for redaction. */
  secrets(): readonly string[];
}

export const Credentials = createToken<Credentials>("credentials");
