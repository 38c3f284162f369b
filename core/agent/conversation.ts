import type { ConversationHandle } from "./conversation-types.ts";

export type Conversation = ConversationHandle;
