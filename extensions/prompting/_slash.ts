// Running a slash command found in a prompt.
import { type Context, errorMessage, type SlashContext, type SlashDefinition, type SlashOutcome } from "mortise/extension";

export interface SlashMatch {
  definition: SlashDefinition;
  owner: string;
  name: string;
  args: string;
}

/** What a host says of a prompt besides its text. */
export type Manner = Pick<SlashContext, "images" | "delivery">;

/** Extensions' commands leave the lane unless they say otherwise; built-ins stay in it (DESIGN §9). */
export function isConcurrent(match: SlashMatch): boolean {
  return (match.definition.concurrency ?? (isBuiltin(match) ? "serial" : "concurrent")) === "concurrent";
}

function isBuiltin(match: SlashMatch): boolean {
  return match.owner.startsWith("builtin:");
}

/** True for a command whose name is known in `abort_and_prompt` as well: built-ins and skills are not (protocol-facts §1.3). */
export function isUsers(match: SlashMatch): boolean {
  return match.definition.source === "file" || !isBuiltin(match);
}

/**
 * Runs the command on behalf of `ctx`'s request. A failure is reported as an `extension_error` and counts as handled
 * (protocol facts: `command:<name>`); a refusal of a built-in is printed as `command_output`.
 *
 * @throws what a skill or a template throws: its prompt fails, because the text that was to be sent does not exist.
 */
export async function runSlash(ctx: Context, match: SlashMatch, manner: Manner = {}): Promise<SlashOutcome> {
  const entry = ctx.registry.stack("slash command", match.definition.name).find((each) => each.definition === match.definition);
  const scope = entry?.scope ?? ctx.scope;
  const release = scope.lease();
  // The command stays with the conversation it was given to: when that one is closed, its dialogs are cancelled (DESIGN §9).
  const { conversation } = ctx;
  const signal = AbortSignal.any([ctx.signal, conversation.signal]);
  try {
    const own = slashContext(ctx.derive({ scope, signal, locals: { conversation } }), manner);
    return await match.definition.run(own, match.args);
  } catch (error) {
    // A skill or a template that cannot be read is a failed prompt; what other built-ins refuse is said in words.
    if (match.definition.source === "skill" || match.definition.source === "file") throw error;
    if (isBuiltin(match)) output(ctx, errorMessage(error));
    else ctx.reportError(match.owner, `command:${match.name}`, error);
    return undefined;
  } finally {
    release();
  }
}

function slashContext(ctx: Context, { images, delivery }: Manner): SlashContext {
  return Object.assign(Object.create(ctx) as Context, {
    images,
    delivery,
    output: (text: string) => output(ctx, text),
  });
}

/** Waits for the messages a command sent; what they lead to decides whether the prompt stayed local. */
export async function settlePending(ctx: Context): Promise<void> {
  const pending = ctx.invocation?.pending;
  while (pending !== undefined && pending.size > 0) {
    const batch = [...pending];
    await Promise.allSettled(batch);
    for (const each of batch) pending.delete(each);
  }
}

function output(ctx: Context, text: string): void {
  ctx.conversation.emitRaw({ type: "command_output", text });
}
