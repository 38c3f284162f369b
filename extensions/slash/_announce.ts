// Frames that tell a host what a slash command changed (protocol-facts §2.5).
import type { Context, Model } from "mortise/extension";
import configUpdate from "./config-update.ts";
import sessionInfoUpdate from "./session-info-update.ts";

export function announceConfig({ conversation }: Context): void {
  const { model, thinkingLevel } = conversation.selection;
  conversation.emit(configUpdate, { ...(model === undefined ? {} : { model }), thinkingLevel });
}

export function announceSession({ conversation }: Context): void {
  const { id, name } = conversation.log;
  conversation.emit(sessionInfoUpdate, { ...(name === undefined ? {} : { title: name }), sessionId: id });
}

export function modelName(model: Model | undefined): string {
  return model === undefined ? "none" : `${model.provider}/${model.id}`;
}
