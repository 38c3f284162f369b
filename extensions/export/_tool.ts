// Calls of tools and what came of them, and commands that the user ran.
import { extname } from "node:path";
import { type AgentMessage, type AssistantContent, type ToolResultMessage, z } from "mortise/extension";
import type { Rendered, Tools } from "./_entry.ts";
import { type Html, html, nothing } from "./_html.ts";
import { codeBlock, withCopy } from "./_markdown.ts";
import { clip, count, inputText, oneLine } from "./_text.ts";

type Arguments = Readonly<Record<string, unknown>>;

const OPEN_LINES = 12;
/** Arguments that say most about a call, the best first. */
const TELLING = ["path", "command", "pattern", "query", "url", "task"];

export function toolCall(block: Extract<AssistantContent, { type: "toolCall" }>, tools: Tools): Html {
  const hint = oneLine(callHint(block.arguments));
  // Its result says what it belongs to.
  tools.calls.set(block.id, hint);
  return html`<details class="call"><summary><b>${block.name}</b> <span class="hint">${hint}</span></summary>${callArguments(block.arguments, tools)}</details>`;
}

function callHint(args: Arguments): string {
  for (const key of TELLING) {
    const value = args[key];
    if (typeof value === "string" && value !== "") return value;
  }
  return "";
}

/** Texts of several lines stand as they are, changes as a diff; the rest is JSON. */
function callArguments(args: Arguments, tools: Tools): Html {
  const rest: [string, unknown][] = [];
  const blocks: Html[] = [];
  const change = changeOf(args);
  for (const [key, value] of Object.entries(args)) {
    const changes = Array.isArray(value) ? value.map(changeOf) : [];
    if (changes.length > 0 && changes.every((each) => each !== undefined)) {
      blocks.push(html`<p class="note">${key}</p>${diff(changes.join("\n...\n"))}`);
    } else if (change !== undefined && CHANGE_KEYS.has(key)) {
      // Shown as a diff below.
    } else if (typeof value === "string" && value.includes("\n")) {
      blocks.push(html`<p class="note">${key}</p>${codeBlock(clip(value), languageOf(key, args), tools.highlight)}`);
    } else rest.push([key, value]);
  }
  if (change !== undefined) blocks.push(diff(change));
  const json = JSON.stringify(Object.fromEntries(rest), null, 2);
  const first = rest.length === 0 && blocks.length > 0 ? nothing : codeBlock(clip(json), "json", tools.highlight);
  return html`${first}${blocks}`;
}

function languageOf(key: string, args: Arguments): string | undefined {
  if (key === "command") return "bash";
  return typeof args["path"] === "string" ? extname(args["path"]).slice(1) : undefined;
}

/** What editing tools of the family call the text before and after. */
const CHANGES = [
  z.looseObject({ oldText: z.string(), newText: z.string() }).transform((at) => [at.oldText, at.newText] as const),
  z.looseObject({ old_text: z.string(), new_text: z.string() }).transform((at) => [at.old_text, at.new_text] as const),
  z.looseObject({ old_string: z.string(), new_string: z.string() }).transform((at) => [at.old_string, at.new_string] as const),
];
const CHANGE_KEYS = new Set(["oldText", "newText", "old_text", "new_text", "old_string", "new_string"]);

function changeOf(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  for (const shape of CHANGES) {
    const found = shape.safeParse(value);
    if (!found.success) continue;
    const [before, after] = found.data;
    const lines = (text: string, mark: string) => (text === "" ? [] : text.split("\n").map((line) => `${mark}${line}`));
    return [...lines(before, "-"), ...lines(after, "+")].join("\n");
  }
  return undefined;
}

const Diff = z.looseObject({ diff: z.string().optional().catch(undefined), patch: z.string().optional().catch(undefined) });

export function toolResult(message: ToolResultMessage, tools: Tools): Rendered {
  const title = `${message.toolName}${message.isError ? " (failed)" : ""}`;
  const details = Diff.safeParse(message.details);
  const change = details.success ? (details.data.diff ?? details.data.patch) : undefined;
  const parts = message.content.map((block) => (block.type === "image" ? tools.images.show(block) : output(block.text)));
  const body = html`${change === undefined ? nothing : diff(change)}${parts.length === 0 ? output("") : parts}`;
  const hint = tools.calls.get(message.toolCallId) ?? "";
  const line = `${oneLine(title)}: ${hint || oneLine(inputText(message.content)) || "(no output)"}`;
  return { kind: "tool", failed: message.isError, title, hint, line, body };
}

function output(text: string): Html {
  if (text.trim() === "") return html`<p class="note">(no output)</p>`;
  const lines = text.split("\n");
  const shown = withCopy(html`<pre class="output">${clip(text)}</pre>`);
  if (lines.length <= OPEN_LINES) return shown;
  return html`<details class="result"><summary>${oneLine(lines.find((line) => line.trim() !== "") ?? "")} <span class="hint">${count(lines.length)} lines</span></summary>${shown}</details>`;
}

function diff(text: string): Html {
  const lines = clip(text)
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => html`<span class="${lineKind(line)}">${line}\n</span>`);
  return withCopy(html`<pre class="diff">${lines}</pre>`);
}

function lineKind(line: string): string {
  if (/^(?:@@|\.\.\.$|--- a\/|\+\+\+ b\/)/.test(line)) return "place";
  return line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "same";
}

export function bashExecution(message: Extract<AgentMessage, { role: "bashExecution" }>, tools: Tools): Rendered {
  const failed = typeof message.exitCode === "number" && message.exitCode !== 0;
  const notes = [
    ...(message.cancelled ? ["cancelled"] : []),
    ...(failed ? [`exit code ${message.exitCode}`] : []),
    ...(message.truncated ? ["output truncated"] : []),
    ...(message.excludeFromContext === true ? ["not in context"] : []),
  ];
  const note = notes.length === 0 ? nothing : html`<p class="note">${notes.join(", ")}</p>`;
  const body = html`${codeBlock(message.command, "bash", tools.highlight)}${output(message.output)}${note}`;
  return { kind: "bash", title: "User ran", line: `$ ${oneLine(message.command)}`, body, failed };
}
