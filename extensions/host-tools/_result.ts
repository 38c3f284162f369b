// What a host sent as a tool result, made fit for the conversation.
import { ImageContent, type InputContent, TextContent, ToolError, type ToolResult } from "mortise/extension";

/** Text of one result beyond this many UTF-16 units is cut with a notice; it would be in every later request. */
export const MAX_TEXT = 400_000;

interface HostAnswer {
  result: { content: readonly unknown[]; details?: unknown; isError?: boolean | undefined };
  isError?: unknown;
}

/**
 * Reads a `host_tool_result`: unknown blocks become their JSON text.
 *
 * @throws {ToolError} when the host rejected the call with a top-level `isError`; the text blocks are the message.
 */
export function readHostResult(answer: HostAnswer): ToolResult {
  const content = limitText(answer.result.content.map(toBlock));
  if (answer.isError) {
    const text = content
      .flatMap((block) => (block.type === "text" ? [block.text] : []))
      .join("\n")
      .trim();
    throw new ToolError(text === "" ? "Host tool execution failed" : text);
  }
  const result: ToolResult = { content };
  if (answer.result.details !== undefined) result.details = answer.result.details;
  if (answer.result.isError === true) result.isError = true;
  return result;
}

function toBlock(block: unknown): InputContent {
  const text = TextContent.safeParse(block);
  if (text.success) return text.data;
  const image = ImageContent.safeParse(block);
  if (image.success) return image.data;
  return { type: "text", text: typeof block === "string" ? block : (JSON.stringify(block) ?? String(block)) };
}

function limitText(blocks: InputContent[]): InputContent[] {
  let left = MAX_TEXT;
  return blocks.map((block) => {
    if (block.type !== "text") return block;
    const { text } = block;
    if (text.length <= left) {
      left -= text.length;
      return block;
    }
    // A cut inside a surrogate pair would leave half a character.
    const end = /[\uD800-\uDBFF]/.test(text.charAt(left - 1)) ? left - 1 : left;
    left = 0;
    return {
      type: "text",
      text: `${text.slice(0, Math.max(0, end))}\n[${text.length - end} characters of the host's result cut]`,
    };
  });
}
