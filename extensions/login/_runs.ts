// Logins that are going on. They take no conversation; `abort` ends them (DESIGN §9).
import { CommandError, createToken } from "mortise/extension";

export interface LoginRuns {
  /** Runs one login of a provider at a time. @throws {CommandError} busy when there is one. */
  run<T>(provider: string, login: (signal: AbortSignal) => Promise<T>): Promise<T>;
  abortAll(reason: string): void;
}

export const LoginRuns = createToken<LoginRuns>("login runs");

export function createLoginRuns(): LoginRuns {
  const running = new Map<string, AbortController>();
  return {
    async run(provider, login) {
      if (running.has(provider)) throw new CommandError(`A login to ${provider} is going on: answer it, or send abort`, "busy");
      const controller = new AbortController();
      running.set(provider, controller);
      try {
        return await login(controller.signal);
      } finally {
        running.delete(provider);
      }
    },
    abortAll(reason) {
      for (const controller of running.values())
        controller.abort(new CommandError(`Login was cancelled: ${reason}`, "cancelled"));
    },
  };
}
