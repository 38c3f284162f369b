// The system prompt of each conversation as the last model call sent it: `ctx.getSystemPrompt()` of the families answers at
// once, ours is built when asked.
import {
  type ConversationHandle,
  createToken,
  defineExtension,
  defineHook,
  defineService,
  providerRequest,
} from "mortise/extension";

export interface PromptMemory {
  get(conversation: ConversationHandle): readonly string[];
  set(conversation: ConversationHandle, blocks: readonly string[]): void;
}

export const PromptMemory = createToken<PromptMemory>("dialects.prompt-memory");

const memory = defineService(PromptMemory, {
  create() {
    const prompts = new WeakMap<object, readonly string[]>();
    return {
      get: (conversation) => prompts.get(conversation) ?? [],
      set: (conversation, blocks) => {
        prompts.set(conversation, blocks);
      },
    };
  },
});

const watch = defineHook(
  providerRequest,
  ({ conversation, request }, ctx) => ctx.use(PromptMemory).set(conversation, request.systemPrompt),
  // Last, so that it sees what the others made of it.
  { priority: 100 },
);

export default defineExtension({ name: "prompt-memory", contributes: [memory, watch] });
