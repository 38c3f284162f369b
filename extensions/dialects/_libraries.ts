// What omp and veyyon hand to a factory besides the interface: zod, typebox, a logger and their own package.
import { type Logger, z } from "mortise/extension";
import { codingAgentModule } from "./_coding-agent.ts";
import type { Runtime } from "./_runtime.ts";
import { isObject } from "./_schema.ts";

/** Loads typebox: a factory reads `pi.typebox` synchronously. */
export async function injectedLibraries(runtime: Runtime): Promise<Record<string, unknown>> {
  const typebox = await import("typebox");
  return {
    zod: { ...z, z, default: z },
    typebox,
    logger: createLogger(runtime.scope.ctx.log, runtime.owner),
    pi: codingAgentModule(runtime.traits, runtime.scope.ctx),
    get arktype(): never {
      throw new Error("arktype is not part of mortise: describe parameters with pi.zod or pi.typebox, or install arktype");
    },
  };
}

/** The forks' logger: a message with optional fields, into our log. */
export function createLogger(log: Logger, owner: string): Record<string, unknown> {
  const line =
    (level: "debug" | "info" | "warn" | "error") =>
    (message: unknown, fields?: unknown): void =>
      log[level](String(message), { extension: owner, ...(isObject(fields) ? fields : {}) });
  return { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
}
