// Slash commands do their work through the host's commands, so that both behave the same and an override holds for both.
import { CommandError, type Context } from "mortise/extension";

/** Runs a host command on behalf of `ctx`. @throws {CommandError} what the command refuses, or that nothing provides it. */
export async function runCommand(ctx: Context, name: string, params: Record<string, unknown>): Promise<unknown> {
  const entry = ctx.registry.get("command", name);
  if (entry === undefined) throw new CommandError(`No extension provides the command "${name}"`, "not_found");
  const parsed = entry.definition.params.safeParse(params);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new CommandError(`${issue?.path.map(String).join(".") ?? name}: ${issue?.message ?? "invalid"}`, "invalid_params");
  }
  const release = entry.scope.lease();
  try {
    return await entry.definition.run(ctx.derive({ scope: entry.scope }), parsed.data);
  } finally {
    release();
  }
}
