// One entry of a session as HTML, and the line that stands for it in the tree.
import {
  type AgentMessage,
  type AssistantContent,
  type AssistantMessage,
  type InputContent,
  messageOf,
  type SessionEntry,
  TodoPhase,
  type ToolResultMessage,
  z,
} from "mortise/extension";
import type { Highlight } from "./_highlight.ts";
import { type Html, html, nothing } from "./_html.ts";
import type { Images } from "./_images.ts";
import { codeBlock, type Markdown } from "./_markdown.ts";

export interface Tools {
  readonly markdown: Markdown;
  readonly highlight: Highlight;
  readonly images: Images;
}

export interface Rendered {
  /** For CSS and filters: user, assistant, tool, summary, bash, note, state. */
  readonly kind: "user" | "assistant" | "tool" | "summary" | "bash" | "note" | "state";
  readonly title: string;
  readonly body: Html;
  /** One line for the tree. */
  readonly line: string;
  readonly failed?: boolean;
}

const LINE_CHARS = 100;
const OPEN_LINES = 12;
const MAX_OUTPUT_CHARS = 200_000;

export function renderEntry(entry: SessionEntry, tools: Tools): Rendered {
  const message = messageOf(entry);
  if (entry.type === "compaction") return compaction(entry, tools);
  if (message !== undefined) return renderMessage(message, tools);
  switch (entry.type) {
    case "model_change": {
      const model = entry.model ?? `${entry.provider ?? "?"}/${entry.modelId ?? "?"}`;
      return state(`Model: ${model}`);
    }
    case "thinking_level_change":
      return state(`Thinking: ${entry.thinkingLevel}`);
    case "label":
      return state(entry.label === undefined ? "Label removed" : `Label: ${entry.label}`);
    case "session_info":
      return state(`Name: ${entry.name ?? ""}`);
    case "title_change":
      return state(`Name: ${entry.title ?? ""}`);
    case "custom": {
      const phases = entry.customType === "slot:todos" ? z.array(TodoPhase).safeParse(entry.data) : undefined;
      if (phases?.success === true) return { kind: "state", title: "Todos", line: "Todos", body: todos(phases.data) };
      return { ...state(entry.customType), body: json("Data", entry.data, tools) };
    }
    default:
      return { ...state(String(entry.type)), body: json("Entry", entry, tools) };
  }
}

function state(text: string): Rendered {
  return { kind: "state", title: text, line: oneLine(text), body: nothing };
}

function renderMessage(message: AgentMessage, tools: Tools): Rendered {
  switch (message.role) {
    case "user":
      return said("user", message.steering === true ? "User (steering)" : "User", message.content, tools);
    case "developer":
      return said("note", "Developer", message.content, tools);
    case "custom":
      return said("note", message.customType, message.content, tools);
    case "assistant":
      return assistant(message, tools);
    case "toolResult":
      return toolResult(message, tools);
    case "bashExecution":
      return bash(message, tools);
    case "branchSummary":
      return summary("Summary of a branch", message.summary, nothing, tools);
    case "compactionSummary":
      return summary("Compaction", message.summary, nothing, tools);
  }
}

function said(kind: "user" | "note", title: string, content: string | readonly InputContent[], tools: Tools): Rendered {
  const parts = typeof content === "string" ? [tools.markdown(content)] : content.map((block) => inputBlock(block, tools));
  return { kind, title, line: proseLine(inputText(content)) || title, body: html`${parts}` };
}

function inputBlock(block: InputContent, tools: Tools): Html {
  return block.type === "image" ? tools.images.show(block) : tools.markdown(block.text);
}

function assistant(message: AssistantMessage, tools: Tools): Rendered {
  const failure =
    message.errorMessage === undefined ? nothing : html`<p class="failure">${message.stopReason}: ${message.errorMessage}</p>`;
  const calls = message.content.flatMap((block) => (block.type === "toolCall" ? [block.name] : []));
  const text = message.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join(" ");
  const line = proseLine(text) || (calls.length > 0 ? `→ ${oneLine(calls.join(", "))}` : (message.errorMessage ?? "(empty)"));
  const body = html`${message.content.map((block) => answerBlock(block, tools))}${failure}${usage(message)}`;
  return { kind: "assistant", title: "Assistant", line: oneLine(line), body, failed: message.stopReason === "error" };
}

function answerBlock(block: AssistantContent, tools: Tools): Html {
  switch (block.type) {
    case "text":
      return tools.markdown(block.text);
    case "thinking":
      return html`<details class="thinking"><summary>Thinking</summary>${tools.markdown(block.thinking)}</details>`;
    case "redactedThinking":
      return html`<p class="note">[thinking withheld by the service]</p>`;
    case "toolCall": {
      const args = JSON.stringify(block.arguments, null, 2);
      const hint = oneLine(callHint(block.arguments));
      return html`<details class="call"><summary><b>${block.name}</b> <span class="hint">${hint}</span></summary>${codeBlock(clip(args), "json", tools.highlight)}</details>`;
    }
  }
}

/** The argument that says most about a call. */
function callHint(args: Readonly<Record<string, unknown>>): string {
  for (const key of ["path", "command", "pattern", "query", "url", "task"]) {
    const value = args[key];
    if (typeof value === "string" && value !== "") return value;
  }
  return "";
}

function usage(message: AssistantMessage): Html {
  const { input, output, cacheRead, cacheWrite, cost } = message.usage;
  const parts = [
    `${message.provider}/${message.model}`,
    `${count(input)} in`,
    `${count(output)} out`,
    ...(cacheRead > 0 ? [`${count(cacheRead)} cached`] : []),
    ...(cacheWrite > 0 ? [`${count(cacheWrite)} written to cache`] : []),
    ...(cost.total > 0 ? [dollars(cost.total)] : []),
    ...(message.duration === undefined ? [] : [`${(message.duration / 1000).toFixed(1)} s`]),
  ];
  return html`<p class="usage">${parts.join(" · ")}</p>`;
}

const Diff = z.looseObject({ diff: z.string().optional(), patch: z.string().optional() });

function toolResult(message: ToolResultMessage, tools: Tools): Rendered {
  const title = `${message.toolName}${message.isError ? " (failed)" : ""}`;
  const details = Diff.safeParse(message.details);
  const change = details.success ? (details.data.diff ?? details.data.patch) : undefined;
  const parts = message.content.map((block) => (block.type === "image" ? tools.images.show(block) : output(block.text)));
  const text = inputText(message.content);
  const body = html`${change === undefined ? nothing : diff(change)}${parts}`;
  return { kind: "tool", failed: message.isError, title, line: `${oneLine(title)}: ${oneLine(text) || "(no output)"}`, body };
}

function output(text: string): Html {
  if (text.trim() === "") return html`<p class="note">(no output)</p>`;
  const lines = text.split("\n");
  const shown = html`<pre class="output">${clip(text)}</pre>`;
  if (lines.length <= OPEN_LINES) return shown;
  return html`<details class="result"><summary>${oneLine(lines.find((line) => line.trim() !== "") ?? "")} <span class="hint">${count(lines.length)} lines</span></summary>${shown}</details>`;
}

function diff(text: string): Html {
  const lines = clip(text)
    .split("\n")
    .map((line) => {
      const kind = line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : line.startsWith("@@") ? "place" : "same";
      return html`<span class="${kind}">${line}\n</span>`;
    });
  return html`<pre class="diff">${lines}</pre>`;
}

function bash(message: Extract<AgentMessage, { role: "bashExecution" }>, tools: Tools): Rendered {
  const notes = [
    ...(message.cancelled ? ["cancelled"] : []),
    ...(message.exitCode === undefined || message.exitCode === 0 ? [] : [`exit code ${message.exitCode}`]),
    ...(message.truncated ? ["output truncated"] : []),
    ...(message.excludeFromContext === true ? ["not in context"] : []),
  ];
  const body = html`${codeBlock(message.command, "bash", tools.highlight)}${output(message.output)}${notes.length === 0 ? nothing : html`<p class="note">${notes.join(", ")}</p>`}`;
  return { kind: "bash", title: "User ran", line: `$ ${oneLine(message.command)}`, body };
}

const Files = z.looseObject({ readFiles: z.array(z.string()).catch([]), modifiedFiles: z.array(z.string()).catch([]) });

function compaction(entry: Extract<SessionEntry, { type: "compaction" }>, tools: Tools): Rendered {
  const files = Files.safeParse(entry.details);
  const list = (title: string, names: readonly string[]) =>
    names.length === 0
      ? nothing
      : html`<details><summary>${title} (${names.length})</summary><ul>${names.map((name) => html`<li>${name}</li>`)}</ul></details>`;
  const tail = files.success
    ? html`${list("Files changed", files.data.modifiedFiles)}${list("Files read", files.data.readFiles)}`
    : nothing;
  const before = typeof entry.tokensBefore === "number" ? ` of ${count(entry.tokensBefore)} tokens` : "";
  return summary(`Compaction${before}`, entry.summary, tail, tools);
}

function summary(title: string, text: string, tail: Html, tools: Tools): Rendered {
  const body = html`<details class="summary" open><summary>What came before, summed up</summary>${tools.markdown(text)}</details>${tail}`;
  return { kind: "summary", title, line: oneLine(title), body };
}

const MARKS = { pending: "☐", in_progress: "▶", completed: "☑", abandoned: "✕" } as const;

export function todos(phases: readonly TodoPhase[]): Html {
  const one = ({ name, tasks }: TodoPhase) =>
    html`<h4>${name}</h4><ul class="todos">${tasks.map((task) => html`<li class="${task.status}">${MARKS[task.status]} ${task.content}</li>`)}</ul>`;
  return html`${phases.map(one)}`;
}

function json(title: string, value: unknown, tools: Tools): Html {
  if (value === undefined) return nothing;
  return html`<details><summary>${title}</summary>${codeBlock(clip(JSON.stringify(value, null, 2)), "json", tools.highlight)}</details>`;
}

/** A line of Markdown without its most common marks. */
function proseLine(text: string): string {
  return oneLine(text.slice(0, LINE_CHARS * 8).replace(/^\s*#{1,6}\s+|\*\*|`+/gm, ""));
}

export function oneLine(text: string): string {
  const line = text
    .slice(0, LINE_CHARS * 4)
    .replace(/\s+/g, " ")
    .trim();
  return line.length <= LINE_CHARS ? line : `${line.slice(0, LINE_CHARS - 1)}…`;
}

export function inputText(content: string | readonly InputContent[]): string {
  return typeof content === "string"
    ? content
    : content.map((block) => (block.type === "text" ? block.text : "[image]")).join(" ");
}

function clip(text: string): string {
  if (text.length <= MAX_OUTPUT_CHARS) return text;
  return `${text.slice(0, MAX_OUTPUT_CHARS)}\n[… ${count(text.length - MAX_OUTPUT_CHARS)} more characters: see the JSONL]`;
}

export function count(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

export function dollars(value: number): string {
  return `$${value.toFixed(value < 0.1 ? 4 : 2)}`;
}
