// The session that the command line asks for.
import { CommandError } from "./kernel/errors.ts";
import type { Options } from "./options.ts";
import { SessionLockedError } from "./session/errors.ts";
import { resolveSession, unlockedSessions } from "./session/list.ts";

interface From<Opened> {
  readonly sessionsDir: string;
  open(file: string): Promise<Opened>;
  warn(message: string): void;
}

/**
 * Opens the one that `--session` names, or with `--continue` the last changed one of the working directory that opens; undefined
 * when there is none. @throws {CommandError} when the named one cannot be opened.
 */
export async function storedSession<Opened>(
  cli: Pick<Options, "session" | "continue" | "cwd">,
  { sessionsDir, open, warn }: From<Opened>,
): Promise<Opened | undefined> {
  if (cli.session !== undefined) return open(await resolveSession(cli.session, { cwd: cli.cwd, sessionsDir }));
  if (!cli.continue) return undefined;
  for await (const file of unlockedSessions(sessionsDir, cli.cwd)) {
    try {
      return await open(file);
    } catch (error) {
      if (!CommandError.is(error)) throw error;
      // Another daemon that was started at the same moment may have taken it; anything else is worth a word.
      if (!SessionLockedError.is(error)) warn(error.message);
    }
  }
  return undefined;
}
