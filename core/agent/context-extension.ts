// What the agent layer adds to every context.
import type { ConversationHandle } from "./conversation-types.ts";
import type { SettingDefinition } from "./settings.ts";

declare module "../kernel/context.ts" {
  interface Context {
    /** The conversation of the call at hand, else the attached one. */
    readonly conversation: ConversationHandle;
    /** The effective value of a setting. */
    setting<T>(setting: SettingDefinition<T>): T;
  }
  interface ContextLocals {
    /** The conversation a call works for. */
    conversation: ConversationHandle;
  }
}
