// The hand-over document: one request with the conversation as it is, so that a cached prefix serves it.
import {
  type AgentMessage,
  type Context,
  contextBuilding,
  type Model,
  ProviderError,
  type SideAnswer,
  sideRequest,
} from "mortise/extension";

const INSTRUCTION = `Stop working on the task now. Another agent takes over in a new session and sees nothing of this one but the document you write now.

Write that document. Do not call tools and do not go on with the work. State, each under its own heading and only where there is something to say:
- the goal: what the user wants, in the user's terms;
- constraints and preferences the user has named;
- what is done, with the exact paths and names of everything that was created or changed;
- what is in progress, and its state;
- decisions, each with its reason;
- what did not work, with exact error texts;
- the next steps, in order;
- facts that would be costly to find out again: commands, values, places in the code.`;

/** Empty when the model wrote nothing. @throws {ProviderError} kind `aborted` when `signal` ended it. */
export async function writeDocument(
  ctx: Context,
  model: Model,
  customInstructions: string | undefined,
  signal: AbortSignal,
): Promise<string> {
  const { conversation } = ctx;
  const systemPrompt = await conversation.systemPrompt();
  const focus = customInstructions?.trim();
  const content = focus ? `${INSTRUCTION}\n\nPay special attention to this:\n${focus}` : INSTRUCTION;
  // What the conversation itself would send: what was left out there has no room or no taker here either.
  const context = await ctx.hook(contextBuilding, { conversation, messages: [...conversation.messages] }, { signal });
  const sent = context?.messages ?? conversation.messages;
  const messages: AgentMessage[] = [...sent, { role: "user", content, timestamp: Date.now() }];
  const request = {
    model,
    systemPrompt,
    messages,
    tools: conversation.toolSchemas(),
    thinkingLevel: conversation.selection.thinkingLevel,
    sessionId: conversation.id,
    signal,
  };
  try {
    // A service that knows no such choice is asked again without; the instruction says the same in words.
    return documentOf(await sideRequest(ctx, { ...request, toolChoice: "none" }));
  } catch (error) {
    if (!ProviderError.is(error) || error.kind !== "overflow") throw error;
    const text = `The conversation is too long for an account of it; compact it first (${error.message})`;
    throw new ProviderError(text, "overflow", { cause: error });
  }
}

function documentOf({ text, message }: SideAnswer): string {
  const cut = text !== "" && message.stopReason === "length";
  return cut ? `${text}\n[This account was cut off at the output limit.]` : text;
}

/** What the new session begins with. */
export function seed(document: string): string {
  return `<handoff-context>\n${document.replaceAll("</handoff-context", "< /handoff-context")}\n</handoff-context>\n\nThe text above was written at the end of an earlier session. Go on from there.`;
}
