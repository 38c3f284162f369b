// Whether code and commands that a project brings along may be used (DESIGN §3 "project code").
import { createToken } from "../kernel/services.ts";

export interface Trust {
  /**
   * True when the person in front of the host said yes to this directory, or the daemon was started with `--trust`.
   * With `file`, also that this file is not one the agent wrote since and nobody said yes to.
   */
  isTrusted(dir: string, file?: string): boolean;
  /** Told when an answer changes. Returns the unsubscription. */
  onChange(listener: () => void): () => void;
}

export const Trust = createToken<Trust>("trust");

/** Code that is not used for want of a yes. */
export interface TrustCase {
  /** `new`: never asked. `changed`: other content than the one trusted. `written`: the agent wrote it into a trusted project. */
  readonly reason: "new" | "changed" | "written";
  /** Relative to the project. */
  readonly files: readonly string[];
  /** Differs whenever a file or its content does. */
  readonly key: string;
}

/**
 * The questions about the code of the working directory. Nothing here says yes: the answer is read from the host's own
 * response, so no extension and no model can give it.
 */
export interface ProjectCode {
  /** What waits for a yes now. `settings` says whether its config.yml sets anything that needs one. */
  pending(settings: boolean): TrustCase | undefined;
  /** Asks the host and acts on a yes. `changed`: the files became others while the question was read, so that a yes was not for them. */
  ask(settings: boolean, signal: AbortSignal): Promise<"yes" | "no" | "changed">;
  /** Code in another directory than the working directory, relative to it: it is used in no case. */
  elsewhere(dir: string): readonly string[];
  /** Takes the yes back. */
  revoke(): void;
  /** Told before a tool of the daemon writes a file. */
  writing(realPath: string): void;
  /** Told when the agent wrote code of the trusted project. Returns the unsubscription. */
  onWritten(listener: () => void): () => void;
  /** Paths to watch for what `pending` tells. */
  readonly watched: readonly string[];
}

export const ProjectCode = createToken<ProjectCode>("project code");
