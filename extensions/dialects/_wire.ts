// Running our wire commands for an extension: sessions, names and compaction have one implementation, the host's.
import type { Context } from "mortise/extension";
import { isObject } from "./_schema.ts";

/**
 * Runs a wire command and gives its data.
 *
 * @throws {Error} when the command is not loaded or refuses; with the command's own words.
 */
export async function runCommand(ctx: Context, name: string, params: Record<string, unknown> = {}): Promise<unknown> {
  const entry = ctx.registry.get("command", name);
  if (entry === undefined) throw new Error(`Command "${name}" is not loaded`);
  const parsed = entry.definition.params.safeParse(params);
  if (!parsed.success) {
    throw new Error(`Invalid parameters for "${name}": ${parsed.error.issues.map((issue) => issue.message).join("; ")}`);
  }
  const release = entry.scope.lease();
  try {
    return await entry.definition.run(ctx, parsed.data);
  } finally {
    release();
  }
}

/** Runs a command whose data may say `cancelled`. */
export async function runCancellable(
  ctx: Context,
  name: string,
  params: Record<string, unknown>,
): Promise<{ cancelled: boolean }> {
  const data = await runCommand(ctx, name, params);
  return { cancelled: isObject(data) && data["cancelled"] === true };
}
