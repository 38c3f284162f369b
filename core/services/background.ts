// Conversations that go on while the host drives another one (000_…, "Background conversations").
import type { ConversationHandle } from "../agent/conversation-types.ts";
import { createToken } from "../kernel/services.ts";

/** `data.background` of a response after which a conversation is in the background. */
export interface BackgroundMove {
  sessionId: string;
  sessionFile?: string | undefined;
  /** False when it had no turn streaming: it stays only until its jobs are done. */
  streaming: boolean;
  /** Session ids stopped to stay within `session.backgroundLimit`. */
  displaced: string[];
  /** For a person to read. */
  message: string;
}

export interface BackgroundConversations {
  /** Attaches `next`; the conversation driven so far moves to the background, or is closed when nothing of it is going on. */
  moveBehind(next: ConversationHandle): Promise<BackgroundMove | undefined>;
  /** The live background conversation that writes a file. */
  byFile(file: string): ConversationHandle | undefined;
}

export const BackgroundConversations = createToken<BackgroundConversations>("background conversations");
