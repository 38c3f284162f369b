import { type AgentMessage, defineSlashCommand } from "mortise/extension";

/** The conversation as plain text, for people who copy it somewhere. `/export` writes a page for reading. */
export default defineSlashCommand({
  name: "dump",
  description: "Print the conversation as plain text, as the model sees it",
  source: "builtin",
  run(ctx) {
    const parts = ctx.conversation.messages.map(textOf).filter((text) => text !== "");
    ctx.output(parts.length === 0 ? "There is nothing to print: the session has no messages" : parts.join("\n\n"));
  },
});

function textOf(message: AgentMessage): string {
  switch (message.role) {
    case "assistant":
      return section("assistant", [
        ...message.content.map((block) => {
          if (block.type === "text") return block.text;
          if (block.type === "toolCall") return `[calls ${block.name} (${block.id}): ${JSON.stringify(block.arguments)}]`;
          return block.type === "thinking" && block.thinking !== "" ? `[thinks: ${block.thinking}]` : "";
        }),
        message.errorMessage === undefined ? "" : `[${message.stopReason}: ${message.errorMessage}]`,
      ]);
    case "toolResult": {
      const state = message.isError ? ", failed" : "";
      return section(`result of ${message.toolName} (${message.toolCallId}${state})`, contentOf(message.content));
    }
    case "bashExecution":
      return section("bash", [`$ ${message.command}`, message.output]);
    case "branchSummary":
    case "compactionSummary":
      return section("summary of what was before", [message.summary]);
    case "custom":
      return section(message.customType, contentOf(message.content));
    default:
      return section(message.role, contentOf(message.content));
  }
}

function contentOf(content: string | readonly { type: string; text?: string; mimeType?: string }[]): string[] {
  if (typeof content === "string") return [content];
  return content.map((block) => block.text ?? `[${block.type} ${block.mimeType ?? ""}]`);
}

function section(title: string, parts: readonly string[]): string {
  const text = parts.filter((part) => part !== "").join("\n");
  return text === "" ? "" : `## ${title}\n${text}`;
}
