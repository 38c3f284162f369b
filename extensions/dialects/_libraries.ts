// What omp and veyyon hand to a factory besides the interface: zod, typebox, a logger and their own package.
import { z } from "mortise/extension";
import { codingAgentModule } from "./_coding-agent.ts";
import type { Runtime } from "./_runtime.ts";

/** Loads typebox: a factory reads `pi.typebox` synchronously. */
export async function injectedLibraries(runtime: Runtime): Promise<Record<string, unknown>> {
  const typebox = await import("typebox");
  const { log } = runtime.scope.ctx;
  const line =
    (level: "debug" | "info" | "warn" | "error") =>
    (message: unknown, fields?: unknown): void =>
      log[level](String(message), {
        extension: runtime.owner,
        ...(typeof fields === "object" && fields !== null ? fields : {}),
      });
  return {
    zod: { ...z, z, default: z },
    typebox,
    logger: { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") },
    pi: codingAgentModule(runtime.traits, runtime.scope.ctx),
    get arktype(): never {
      throw new Error("arktype is not part of mortise: describe parameters with pi.zod or pi.typebox, or install arktype");
    },
  };
}
