// What the command line said. Provided by the composition root; extensions read it, nobody writes it.
import { createToken } from "../kernel/services.ts";

export interface Launch {
  /** MORTISE_HOME, absolute. */
  readonly home: string;
  /** The working directory the daemon was started for, absolute. */
  readonly cwd: string;
  /** Where session files go; undefined with `--no-session`. */
  readonly sessionsDir?: string | undefined;
  /** Options by their camel-case name; the named ones are read by the model services. */
  readonly options: Readonly<Record<string, unknown>> & {
    readonly model?: string | undefined;
    readonly provider?: string | undefined;
    readonly apiKey?: string | undefined;
    readonly thinking?: string | undefined;
    readonly models?: string | undefined;
  };
  readonly env: NodeJS.ProcessEnv;
}

export const Launch = createToken<Launch>("launch");
