// Whether code and commands that a project brings along may be used (DESIGN §3 "project code").
import { createToken } from "../kernel/services.ts";

export interface Trust {
  /** True when the person in front of the host said yes to this directory, or the daemon was started with `--trust`. */
  isTrusted(dir: string): boolean;
  /** Told when an answer changes. Returns the unsubscription. */
  onChange(listener: () => void): () => void;
}

export const Trust = createToken<Trust>("trust");
