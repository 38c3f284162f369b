// `pi.registerCommand`, as a slash command.
import { defineSlashCommand, isAbort, type SlashContext, type SlashOutcome, StaleExtensionError } from "mortise/extension";
import { rememberPrompt } from "./_context.ts";
import type { Runtime } from "./_runtime.ts";
import { isObject } from "./_schema.ts";
import { createCommandContext } from "./_session-control.ts";

/**
 * Turns a command of the families into ours. A failing handler is reported and counts as handled.
 *
 * @throws {Error} when there is no handler.
 */
export function toSlashCommand(runtime: Runtime, name: unknown, options: unknown) {
  if (typeof name !== "string" || name.trim() === "" || /\s/.test(name)) {
    throw new Error(`registerCommand needs a name without spaces, found ${JSON.stringify(name)}`);
  }
  if (!isObject(options) || typeof options["handler"] !== "function") {
    throw new Error(`Command "${name}" has no handler function`);
  }
  const { handler, description } = options;
  return defineSlashCommand({
    name: name.replace(/^\//, ""),
    description: typeof description === "string" ? description : "",
    source: "extension",
    concurrency: "concurrent",
    run: (ctx, args) => run(runtime, name, handler as (args: string, ctx: object) => unknown, ctx, args),
  });
}

async function run(
  runtime: Runtime,
  name: string,
  handler: (args: string, ctx: object) => unknown,
  ctx: SlashContext,
  args: string,
): Promise<SlashOutcome> {
  try {
    await rememberPrompt(ctx);
    const answer = await runtime.run(ctx, () => handler(args, createCommandContext(runtime, ctx)));
    // omp: a command that gives back a text sends it to the model.
    return typeof answer === "string" && answer.trim() !== "" ? { prompt: answer } : undefined;
  } catch (error) {
    if (!isAbort(error, ctx.signal) && !StaleExtensionError.is(error)) runtime.report(`command:${name}`, error);
    return undefined;
  }
}
