// `pi.on`: which of our hook points stands behind each event of the families, and how their answers are read.
// Lifecycle events are those of the attached conversation; tool gates see all (DESIGN §9 "Extensions").
import {
  AgentMessage,
  beforeAgentStart,
  type Context,
  type ConversationHandle,
  contextBuilding,
  defineHook,
  input,
  messageEnded,
  providerRequest,
  runEnded,
  sessionBeforeBranch,
  sessionBeforeSwitch,
  sessionBranched,
  sessionSwitched,
} from "mortise/extension";
import { createContext, familyPrompt } from "./_context.ts";
import { toolCallHooks, toolResultHook } from "./_gates.ts";
import { storable, toContent, toImages, toPromptBlocks } from "./_results.ts";
import type { Handler, Runtime } from "./_runtime.ts";
import { isObject } from "./_schema.ts";
import { PromptMemory } from "./prompt-memory.ts";

type Hook = ReturnType<typeof defineHook>;
type Answer = Record<string, unknown>;
const attachedOnly = { attachedOnly: true } as const;

/** Calls a handler on behalf of `ctx`. A failure is reported under the event's own name and is no answer, as is no object. */
export async function call(runtime: Runtime, ctx: Context, handler: Handler, event: Answer): Promise<Answer | undefined> {
  try {
    const answer = await runtime.run(ctx, () => handler(event, createContext(runtime, ctx)));
    return isObject(answer) ? answer : undefined;
  } catch (error) {
    runtime.report(String(event["type"]), error);
    return undefined;
  }
}

/** Event → the hooks of one handler. Events that are not here are frames of the same name. */
export const HOOKS: Readonly<Record<string, (runtime: Runtime, handler: Handler) => Hook[]>> = {
  tool_call: toolCallHooks,
  tool_result: (runtime, handler) => [toolResultHook(runtime, handler)],
  input: (runtime, handler) => [inputHook(runtime, handler)],
  before_agent_start: (runtime, handler) => [beforeAgentStartHook(runtime, handler)],
  context: (runtime, handler) => [contextHook(runtime, handler)],
  before_provider_request: (runtime, handler) => [providerRequestHook(runtime, handler)],
  after_provider_response: (runtime, handler) => [providerResponseHook(runtime, handler)],
  session_before_switch: (runtime, handler) => [beforeSwitchHook(runtime, handler)],
  session_before_fork: (runtime, handler) => [beforeBranchHook(runtime, handler, "session_before_fork")],
  session_before_branch: (runtime, handler) => [beforeBranchHook(runtime, handler, "session_before_branch")],
  session_switch: (runtime, handler) => switchHooks(runtime, handler),
  session_fork: (runtime, handler) => [branchedHook(runtime, handler, "session_fork")],
  session_branch: (runtime, handler) => [branchedHook(runtime, handler, "session_branch")],
  agent_before_settle: (runtime, handler) => [runEndedHook(runtime, handler, "agent_before_settle")],
  session_stop: (runtime, handler) => [runEndedHook(runtime, handler, "session_stop")],
};

function inputHook(runtime: Runtime, handler: Handler): Hook {
  return defineHook(
    input,
    async (value, ctx) => {
      if (value.handled === true) return undefined;
      const answer = await call(runtime, ctx, handler, {
        type: "input",
        text: value.text,
        images: [...value.images],
        source: value.attribution === "user" ? "rpc" : "extension",
        ...(value.delivery === "prompt" ? {} : { streamingBehavior: value.delivery }),
      });
      if (answer === undefined || answer["action"] === "continue") return undefined;
      if (answer["action"] === "handled" || answer["handled"] === true) return { ...value, handled: true };
      const images = toImages(answer["images"]);
      return {
        ...value,
        ...(typeof answer["text"] === "string" ? { text: answer["text"] } : {}),
        ...(images === undefined ? {} : { images }),
      };
    },
    attachedOnly,
  );
}

function beforeAgentStartHook(runtime: Runtime, handler: Handler): Hook {
  return defineHook(
    beforeAgentStart,
    async (plan, ctx) => {
      if (plan.prompt === undefined) return undefined;
      ctx.tryUse(PromptMemory)?.set(plan.conversation, plan.systemPrompt);
      const systemPromptOptions = promptOptions(ctx, plan.conversation);
      const answer = await call(runtime, ctx, handler, {
        type: "before_agent_start",
        ...promptOf(plan.prompt),
        systemPrompt: familyPrompt(runtime, plan.systemPrompt),
        systemPromptOptions,
      });
      const message = answer === undefined ? undefined : toCustomMessage(answer["message"]);
      const blocks = answer === undefined ? undefined : toPromptBlocks(answer["systemPrompt"]);
      const sections = Object.values(systemPromptOptions.sections).filter((section) => typeof section === "string");
      if (message === undefined && blocks === undefined && sections.length === 0) return undefined;
      const systemPrompt = blocks === undefined ? plan.systemPrompt : keepingBlocks(plan.systemPrompt, blocks);
      return {
        ...plan,
        systemPrompt: [...systemPrompt, ...sections],
        ...(message === undefined ? {} : { extraMessages: [...plan.extraMessages, message] }),
      };
    },
    attachedOnly,
  );
}

/** What the prompt is made of, as far as the families tell. Sections that a handler sets are added at the end. */
export function promptOptions(ctx: Context, conversation: ConversationHandle) {
  const offered = conversation.toolSchemas().map((tool) => tool.name);
  const definitions = offered.flatMap((name) => ctx.registry.get("tool", name)?.definition ?? []);
  const sections: Record<string, unknown> = {};
  return {
    cwd: conversation.cwd,
    selectedTools: offered,
    toolSnippets: Object.fromEntries(
      definitions.flatMap(({ name, promptSnippet }) => (promptSnippet === undefined ? [] : [[name, promptSnippet]])),
    ),
    promptGuidelines: definitions.flatMap(({ promptGuidelines }) => promptGuidelines ?? []),
    contextFiles: [],
    skills: [],
    sections,
  };
}

/** A prompt that only got longer keeps its first blocks, so that the provider's cache holds. */
function keepingBlocks(before: readonly string[], after: readonly string[]): readonly string[] {
  const joined = before.join("\n\n");
  const [only, ...more] = after;
  if (only === undefined || more.length > 0 || joined === "" || !only.startsWith(joined)) return after;
  const added = only.slice(joined.length).replace(/^\n+/, "");
  return added === "" ? before : [...before, added];
}

function promptOf(message: AgentMessage): { prompt: string; images?: unknown[] } {
  const content = "content" in message ? message.content : "";
  if (typeof content === "string") return { prompt: content };
  const texts = content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  const images = content.filter((block) => block.type === "image");
  return { prompt: texts.join("\n"), ...(images.length > 0 ? { images } : {}) };
}

/** A custom message of an extension, complete. */
export function toCustomMessage(value: unknown): AgentMessage | undefined {
  if (!isObject(value)) return undefined;
  const { customType, content, display, details } = value;
  return {
    role: "custom",
    customType: typeof customType === "string" ? customType : "extension",
    content: typeof content === "string" ? content : toContent(content),
    display: display !== false,
    ...(details === undefined ? {} : { details: storable(details) }),
    timestamp: Date.now(),
  };
}

function contextHook(runtime: Runtime, handler: Handler): Hook {
  return defineHook(
    contextBuilding,
    async (value, ctx) => {
      // Copies, because handlers change messages in place; two levels, because a deep copy of a long session blocks the loop.
      const originals = new Map<unknown, AgentMessage>();
      const copies = value.messages.map((message) => {
        const copy = { ...message };
        if ("content" in copy && Array.isArray(copy.content)) Object.assign(copy, { content: copy.content.map(copyOf) });
        originals.set(copy, message);
        return copy;
      });
      const answer = await call(runtime, ctx, handler, { type: "context", messages: copies });
      const messages = answer?.["messages"];
      if (!Array.isArray(messages)) return undefined;
      return { ...value, messages: messages.map((message) => unchanged(message, originals) ?? AgentMessage.parse(message)) };
    },
    attachedOnly,
  );
}

function copyOf<T>(block: T): T {
  return isObject(block) ? { ...block } : block;
}

/** The stored message behind an untouched copy: parsing thousands of messages again would be slow. */
function unchanged(message: unknown, originals: ReadonlyMap<unknown, AgentMessage>): AgentMessage | undefined {
  const original = originals.get(message);
  if (original === undefined || !isObject(message)) return undefined;
  const same = Object.entries(original).every(([key, value]) => {
    const copy = message[key];
    if (!Array.isArray(value) || !Array.isArray(copy)) return copy === value;
    return copy.length === value.length && value.every((block, index) => sameBlock(block, copy[index]));
  });
  return same && Object.keys(message).length === Object.keys(original).length ? original : undefined;
}

function sameBlock(a: unknown, b: unknown): boolean {
  if (!isObject(a) || !isObject(b)) return a === b;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}

function providerRequestHook(runtime: Runtime, handler: Handler): Hook {
  return defineHook(
    providerRequest,
    async (value, ctx) => {
      const { signal, apiKey, headers, ...payload } = value.request;
      const answer = await call(runtime, ctx, handler, { type: "before_provider_request", payload: { ...payload } });
      if (answer === undefined) return undefined;
      const system = toPromptBlocks(answer["systemPrompt"]);
      const { maxTokens } = answer;
      return {
        ...value,
        request: {
          ...value.request,
          ...(system === undefined ? {} : { systemPrompt: system }),
          ...(typeof maxTokens === "number" && maxTokens > 0 ? { maxTokens } : {}),
        },
      };
    },
    attachedOnly,
  );
}

function providerResponseHook(runtime: Runtime, handler: Handler): Hook {
  return defineHook(
    messageEnded,
    async ({ message }, ctx) => {
      if (message.role !== "assistant" || message.stopReason === "aborted") return;
      const failed = message.stopReason === "error";
      // A failure without a status never got a response.
      if (failed && message.errorStatus === undefined) return;
      await call(runtime, ctx, handler, { type: "after_provider_response", status: message.errorStatus ?? 200, headers: {} });
    },
    attachedOnly,
  );
}

function beforeSwitchHook(runtime: Runtime, handler: Handler): Hook {
  return defineHook(
    sessionBeforeSwitch,
    async (change, ctx) => {
      if (change.reason === "startup") return undefined;
      const answer = await call(runtime, ctx, handler, {
        type: "session_before_switch",
        reason: change.reason === "resume" ? "resume" : "new",
        ...(change.target === undefined ? {} : { targetSessionFile: change.target }),
      });
      return answer?.["cancel"] === true ? { cancel: true } : undefined;
    },
    attachedOnly,
  );
}

function beforeBranchHook(runtime: Runtime, handler: Handler, type: string): Hook {
  return defineHook(
    sessionBeforeBranch,
    async ({ entryId }, ctx) => {
      const answer = await call(runtime, ctx, handler, { type, entryId, position: "before" });
      return answer?.["cancel"] === true ? { cancel: true } : undefined;
    },
    attachedOnly,
  );
}

/** omp tells of a branch as a switch as well. */
function switchHooks(runtime: Runtime, handler: Handler): Hook[] {
  const told = (reason: string) => (previousFile: string | undefined, ctx: Context) =>
    call(runtime, ctx, handler, { type: "session_switch", reason, ...previous(previousFile) });
  const switched = defineHook(
    sessionSwitched,
    async ({ reason, previousFile }, ctx) => {
      if (reason !== "startup") await told(reason === "resume" ? "resume" : "new")(previousFile, ctx);
    },
    attachedOnly,
  );
  if (!runtime.traits.promptBlocks) return [switched];
  const branched = defineHook(
    sessionBranched,
    async ({ previousFile }, ctx) => {
      await told("fork")(previousFile, ctx);
    },
    attachedOnly,
  );
  return [switched, branched];
}

function branchedHook(runtime: Runtime, handler: Handler, type: string): Hook {
  return defineHook(
    sessionBranched,
    async ({ previousFile }, ctx) => {
      await call(runtime, ctx, handler, { type, ...previous(previousFile) });
    },
    attachedOnly,
  );
}

export function previous(previousFile: string | undefined): { previousSessionFile?: string } {
  return previousFile === undefined ? {} : { previousSessionFile: previousFile };
}

/** The run is about to end; an answer that asks to continue is queued as a follow-up. */
function runEndedHook(runtime: Runtime, handler: Handler, type: string): Hook {
  return defineHook(
    runEnded,
    async ({ status, messages, conversation, signal }, ctx) => {
      const answer = await call(runtime, ctx, handler, { type, status, messages: [...messages], signal });
      const text = answer?.["message"] ?? answer?.["additionalContext"] ?? answer?.["reason"];
      if (answer?.["continue"] !== true || typeof text !== "string" || status === "aborted") return;
      await conversation.submit(text, { delivery: "followUp", attribution: "agent" });
    },
    attachedOnly,
  );
}
