// One entry of a session as HTML, and the line that stands for it in the tree.
import {
  type AgentMessage,
  type AssistantContent,
  type AssistantMessage,
  type InputContent,
  messageOf,
  type SessionEntry,
  TodoPhase,
  z,
} from "mortise/extension";
import type { Highlight } from "./_highlight.ts";
import { type Html, html, nothing } from "./_html.ts";
import type { Images } from "./_images.ts";
import { codeBlock, type Markdown } from "./_markdown.ts";
import { clip, count, dollars, inputText, oneLine, proseLine, textOf } from "./_text.ts";
import { bashExecution, toolCall, toolResult } from "./_tool.ts";

export interface Tools {
  readonly markdown: Markdown;
  readonly highlight: Highlight;
  readonly images: Images;
  /** Id of a tool call → what says most about it. */
  readonly calls: Map<string, string>;
}

export interface Rendered {
  /** For CSS and filters: user, assistant, tool, summary, bash, note, state. */
  readonly kind: "user" | "assistant" | "tool" | "summary" | "bash" | "note" | "state";
  readonly title: string;
  /** Stands beside the title. */
  readonly hint?: string;
  readonly body: Html;
  /** One line for the tree. */
  readonly line: string;
  readonly failed?: boolean;
}

/** The line over an entry; `more` stands at its end. */
export function entryHead({ title, hint }: Rendered, more: Html = nothing): Html {
  const beside = hint === undefined || hint === "" ? nothing : html`<span class="hint">${hint}</span>`;
  return html`<header><h2>${title}</h2>${beside}${more}</header>`;
}

/** Never throws: an entry that is not what its type promises is shown as the data it is. */
export function renderEntry(entry: SessionEntry, tools: Tools): Rendered {
  try {
    return renderSound(entry, tools);
  } catch {
    return { ...state(`${textOf(entry.type)} (damaged)`), body: json("Entry", entry, tools) };
  }
}

function renderSound(entry: SessionEntry, tools: Tools): Rendered {
  const message = messageOf(entry);
  if (entry.type === "compaction") return compaction(entry, tools);
  if (message !== undefined) return renderMessage(message, tools);
  switch (entry.type) {
    case "message":
      return { ...state(`Message of ${textOf(entry.message.role)}`), body: json("Entry", entry, tools) };
    case "model_change":
      return state(`Model: ${textOf(entry.model ?? `${textOf(entry.provider) || "?"}/${textOf(entry.modelId) || "?"}`)}`);
    case "thinking_level_change":
      return state(`Thinking: ${textOf(entry.thinkingLevel)}`);
    case "label":
      return state(textOf(entry.label) === "" ? "Label removed" : `Label: ${textOf(entry.label)}`);
    case "session_info":
      return state(`Name: ${textOf(entry.name)}`);
    case "title_change":
      return state(`Name: ${textOf(entry.title)}`);
    case "subagent_spawn":
      return spawned(entry, tools);
    case "custom": {
      const phases = entry.customType === "slot:todos" ? z.array(TodoPhase).safeParse(entry.data) : undefined;
      if (phases?.success === true) return { kind: "state", title: "Todos", line: "Todos", body: todos(phases.data) };
      return { ...state(textOf(entry.customType)), body: json("Data", entry.data, tools) };
    }
    default:
      return { ...state(textOf(entry.type)), body: json("Entry", entry, tools) };
  }
}

function state(text: string): Rendered {
  return { kind: "state", title: text, line: oneLine(text), body: nothing };
}

/** Where the transcript of a subagent stands on the page. */
export function transcriptAnchor(id: string): string {
  return `agent:${encodeURIComponent(id.toWellFormed())}`;
}

function spawned(entry: Readonly<Record<string, unknown>>, tools: Tools): Rendered {
  const id = textOf(entry["agentId"]);
  const hint = [entry["agentName"], entry["status"]].map(textOf).filter(Boolean).join(" · ");
  const link = html`<p><a href="#${encodeURIComponent(transcriptAnchor(id))}">Transcript</a></p>`;
  const title = `Subagent ${id}`;
  return { kind: "state", title, hint, line: oneLine(`${title} · ${hint}`), body: html`${link}${json("Entry", entry, tools)}` };
}

function renderMessage(message: AgentMessage, tools: Tools): Rendered {
  switch (message.role) {
    case "user":
      return said("user", message.steering === true ? "User (steering)" : "User", message.content, tools);
    case "developer":
      return said("note", "Developer", message.content, tools);
    case "custom":
      return said("note", textOf(message.customType), message.content, tools);
    case "assistant":
      return assistant(message, tools);
    case "toolResult":
      return toolResult(message, tools);
    case "bashExecution":
      return bashExecution(message, tools);
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

/** What is said of an answer that did not end well. */
const ENDINGS = new Map<string, string>([
  ["error", "Failed"],
  ["aborted", "Aborted"],
  ["length", "Cut off: the answer was longer than the model may give"],
]);

function assistant(message: AssistantMessage, tools: Tools): Rendered {
  const ending = ENDINGS.get(message.stopReason);
  const problem = textOf(message.errorMessage);
  const said = [ending ?? (problem === "" ? "" : message.stopReason), problem].filter(Boolean).join(": ");
  const calls = message.content.flatMap((block) => (block.type === "toolCall" ? [block.name] : []));
  const text = message.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join(" ");
  const line = proseLine(text) || (calls.length > 0 ? `→ ${oneLine(calls.join(", "))}` : said || "(empty)");
  const note = said === "" ? nothing : html`<p class="failure">${said}</p>`;
  const body = html`${message.content.map((block) => answerBlock(block, tools))}${note}${usage(message)}`;
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
    case "toolCall":
      return toolCall(block, tools);
  }
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
    ...(typeof message.duration === "number" ? [`${(message.duration / 1000).toFixed(1)} s`] : []),
  ];
  return html`<p class="usage">${parts.join(" · ")}</p>`;
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
