// omp's `ctx.runEphemeralTurn`: a question to the session's model that sees the conversation and leaves nothing in it.
import { type Context, sideRequest } from "mortise/extension";
import { isObject } from "./_schema.ts";

/** @throws {Error} without a prompt or a model, and whatever the model service answers with. */
export async function runSideTurn(ctx: Context, request: unknown): Promise<{ replyText: string; assistantMessage: unknown }> {
  const { promptText, signal, onTextDelta } = isObject(request) ? request : {};
  if (typeof promptText !== "string" || promptText === "") throw new Error("runEphemeralTurn needs a promptText");
  const { conversation } = ctx;
  const { model, thinkingLevel } = conversation.selection;
  if (model === undefined) throw new Error("No model is selected: choose one with setModel");
  const question = { role: "user" as const, content: [{ type: "text" as const, text: promptText }], timestamp: Date.now() };
  const { text, message } = await sideRequest(ctx, {
    model,
    thinkingLevel,
    systemPrompt: await conversation.systemPrompt(),
    messages: [...conversation.messages, question],
    signal: signal instanceof AbortSignal ? AbortSignal.any([ctx.signal, signal]) : ctx.signal,
  });
  // Nothing of it streams: the whole is the only piece.
  if (typeof onTextDelta === "function" && text !== "") onTextDelta(text);
  return { replyText: text, assistantMessage: message };
}
