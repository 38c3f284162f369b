// A picture that the service refuses must not make every later request fail with it: it is left out from then on.
import {
  type AgentMessage,
  type ConversationHandle,
  contextBuilding,
  defineHook,
  defineSlot,
  notice,
  type ProviderError,
  RetryEnabled,
  turnFailed,
  z,
} from "mortise/extension";

/** Kept in the session: a resumed one would run into the same refusal. */
const refusedSlot = defineSlot({
  name: "providers.refused-images",
  persist: true,
  schema: z.array(z.number()).describe("Time stamps of the messages whose pictures are left out"),
  initial: () => [],
});

const LEFT_OUT = "[Picture left out: the model service refused it]";

const onFailure = defineHook(turnFailed, ({ conversation, error, canRetry }, outer) => {
  if (!isAboutImages(error)) return undefined;
  const refused = suspects(conversation);
  if (refused.length === 0) return undefined;
  conversation.slot(refusedSlot).update((known) => [...known, ...refused.map((message) => message.timestamp)]);
  const text = `The model service refused a picture, which is left out from now on: ${error.message}`;
  conversation.emit(notice, { level: "warning", message: text, source: "providers" });
  const ctx = outer.derive({ locals: { conversation } });
  return canRetry && ctx.setting(RetryEnabled) ? { retry: { delayMs: 0 } } : undefined;
});

/** A refusal that speaks of pictures. Others of the same kind name other parts of the request. */
function isAboutImages({ kind, status, message }: ProviderError): boolean {
  return (
    kind === "fatal" && (status === 400 || status === 415 || status === 422) && /\bimages?\b|image_|\bvision\b/i.test(message)
  );
}

/** Messages with pictures that no answer came to yet, else (after a change of model) all that have some. */
function suspects(conversation: ConversationHandle): AgentMessage[] {
  const refused = new Set(conversation.slot(refusedSlot).get());
  const { messages } = conversation;
  const withImages = (from: number) =>
    messages.slice(from).filter((message) => hasImages(message) && !refused.has(message.timestamp));
  const answered = messages.findLastIndex(
    ({ role, ...message }) => role === "assistant" && "stopReason" in message && !/error|aborted/.test(message.stopReason),
  );
  const fresh = withImages(answered + 1);
  return fresh.length > 0 ? fresh : withImages(0);
}

function hasImages(message: AgentMessage): boolean {
  return "content" in message && typeof message.content !== "string" && message.content.some((block) => block.type === "image");
}

/** Forms by message, so that they stay one object. */
const forms = new WeakMap<AgentMessage, AgentMessage>();

const inContext = defineHook(contextBuilding, (value) => {
  const refused = value.conversation.slot(refusedSlot).get();
  if (refused.length === 0) return undefined;
  const stamps = new Set(refused);
  return {
    ...value,
    messages: value.messages.map((message) => (stamps.has(message.timestamp) ? withoutImages(message) : message)),
  };
});

function withoutImages(message: AgentMessage): AgentMessage {
  if (message.role === "assistant" || !hasImages(message)) return message;
  const form = forms.get(message) ?? made(message);
  forms.set(message, form);
  return form;
}

function made(message: AgentMessage): AgentMessage {
  if (!("content" in message) || message.role === "assistant" || typeof message.content === "string") return message;
  const content = message.content.map((block) => (block.type === "image" ? { type: "text" as const, text: LEFT_OUT } : block));
  return { ...message, content };
}

export default [refusedSlot, onFailure, inContext];
