// The service takes thinking back only as it was, and from newer models only behind exactly what stood in front of it when it was
// thought: system prompt, tools, messages (platform.claude.com, "Prefix checks on thinking blocks"). A compaction, another tool or
// an edited prompt makes such blocks worthless, and a request with them is refused for ever. Leaving all of them out is always right.
import { type ModelMessage, z } from "mortise/extension";

/** Answers whose thinking was refused. A version of this file that is loaded later learns it again from one refusal. */
const refused = new WeakSet<ModelMessage>();
let refusals = 0;

const Refusal = z.object({ status: z.literal(400), message: z.string().regex(/thinking`? block/i) });

/** True when the request was refused because of thinking that was sent back. */
export function isAboutThinking(error: unknown): boolean {
  return Refusal.safeParse(error instanceof Error ? { ...error, message: error.message } : error).success;
}

/** From now on goes without the thinking of these messages. False when they had none that was sent. */
export function dropThinking(messages: readonly ModelMessage[]): boolean {
  let dropped = false;
  for (const message of messages) {
    if (message.role !== "assistant" || refused.has(message)) continue;
    if (!message.content.some(({ type }) => type === "thinking" || type === "redactedThinking")) continue;
    refused.add(message);
    refusals++;
    dropped = true;
  }
  return dropped;
}

/** Changes when `keepsThinking` does, for any message. */
export function refusalsSoFar(): number {
  return refusals;
}

export function keepsThinking(message: ModelMessage): boolean {
  return !refused.has(message);
}
