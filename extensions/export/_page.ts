// The whole page: head with its policy, tree, messages, data.
import { createHash } from "node:crypto";
import type { SessionEntry, SessionHeader, TodoPhase, ToolSchema } from "mortise/extension";
import { count, dollars, renderEntry, type Tools, todos } from "./_entry.ts";
import { Html, html, jsonForScript, nothing } from "./_html.ts";
import { codeBlock } from "./_markdown.ts";
import { slicer } from "./_slice.ts";
import { STYLE } from "./_style.ts";
import { renderTranscripts, type Transcript } from "./_subagents.ts";
import { VIEWER } from "./_viewer.ts";
import { HEAD } from "./_write.ts";

/** Everything an export shows, secrets masked already. */
export interface Material {
  readonly header: SessionHeader;
  readonly entries: readonly SessionEntry[];
  /** Index of the parent by index of the entry; −1 for roots. */
  readonly parents: readonly number[];
  /** Index of the entry the conversation stands at; −1 when there is none. */
  readonly leaf: number;
  readonly name: string | undefined;
  readonly labels: ReadonlyMap<string, string>;
  readonly systemPrompt: readonly string[];
  readonly toolSchemas: readonly ToolSchema[];
  readonly todos: readonly TodoPhase[];
  readonly subagents: readonly Transcript[];
  readonly downloadName: string;
}

/** The file in pieces. */
export async function renderPage(material: Material, tools: Tools): Promise<string[]> {
  const rows: Html[] = [];
  const articles: Html[] = [];
  const anchors = anchorsOf(material.entries);
  const slice = slicer();
  for (const [index, entry] of material.entries.entries()) {
    const rendered = renderEntry(entry, tools);
    const label = material.labels.get(entry.id);
    const badge = label === undefined ? nothing : html`<span class="label">${label}</span>`;
    const marks = `${rendered.kind === "state" ? " minor" : ""}${rendered.failed === true ? " failed" : ""}`;
    const anchor = anchors[index] ?? `n${index}`;
    rows.push(
      html`<li class="row ${rendered.kind}${marks}" data-index="${index}"${label === undefined ? nothing : html` data-label=""`}><button type="button">${badge}<span class="line">${rendered.line}</span></button></li>`,
    );
    articles.push(
      html`<article class="entry ${rendered.kind}${marks}" id="${anchor}" data-index="${index}"><header><h3>${rendered.title}</h3>${badge}<time>${timeOf(entry)}</time><a class="anchor" href="#${anchor}" title="Link to this entry">#</a></header>${rendered.body}</article>`,
    );
    await slice();
  }
  return [
    HEAD,
    `${head(titleOf(material))}\n<body>\n${sidebar(material, rows)}\n<main>\n${intro(material, tools)}\n`,
    ...articles.map((article) => `${article.text}\n`),
    `<p id="end">End of the session</p>\n`,
    `${(await renderTranscripts(material.subagents, tools, slice)).text}\n</main>\n<script type="application/json" id="data">`,
    ...(await dataBlock(material, tools, slice)),
    `</script>\n<script>${VIEWER}</script>\n</body>\n</html>\n`,
  ];
}

/** The JSON of the data block in pieces. Images come last: the lines collect them. */
async function dataBlock(material: Material, tools: Tools, slice: () => Promise<void>): Promise<string[]> {
  const { parents, leaf, downloadName } = material;
  const pieces = [`{"parents":${JSON.stringify(parents)},"leaf":${leaf},"fileName":${jsonForScript(downloadName)},"lines":[`];
  for (const [index, entry] of [material.header, ...material.entries].entries()) {
    pieces.push(`${index === 0 ? "" : ","}${jsonForScript(tools.images.replaceIn(entry))}`);
    await slice();
  }
  pieces.push('],"images":[');
  for (const [index, image] of tools.images.list.entries()) {
    pieces.push(`${index === 0 ? "" : ","}${jsonForScript(image)}`);
    await slice();
  }
  pieces.push("]}");
  return pieces;
}

function head(title: string): Html {
  const hash = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  const policy = [
    "default-src 'none'",
    `script-src ${hash(VIEWER)}`,
    `style-src ${hash(STYLE)}`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  return html`<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<title>${title}</title>
<style>${new Html(STYLE)}</style>
</head>`;
}

function titleOf({ name, header }: Material): string {
  return name ?? `Session ${header.id}`;
}

function sidebar(material: Material, rows: Html[]): Html {
  const filter = (value: string, text: string) => html`<button type="button" data-filter="${value}">${text}</button>`;
  return html`<nav id="sidebar" aria-label="Session tree">
<div class="tools">
<input id="search" type="search" placeholder="Search" aria-label="Search" autocomplete="off">
<div class="filters" role="group" aria-label="Filter">${filter("default", "Default")}${filter("talk", "No tools")}${filter("user", "User")}${filter("labelled", "Labelled")}${filter("all", "All")}</div>
</div>
<ol id="tree">${rows}</ol>
<p class="count" id="count">${count(material.entries.length)} entries</p>
</nav>
<div id="shade"></div>`;
}

function intro(material: Material, tools: Tools): Html {
  const { header } = material;
  const facts: [string, string | undefined][] = [
    ["Session", header.id],
    ["Started", header.timestamp],
    ["Directory", header.cwd],
    ["Comes from", header.parentSession],
  ];
  return html`<div id="intro">
<div class="bar"><button type="button" id="menu" aria-label="Show the tree">☰</button><h1>${titleOf(material)}</h1></div>
<div class="bar actions"><button type="button" data-action="thinking">Thinking</button><button type="button" data-action="tools">Tools</button><button type="button" data-action="theme">Theme</button><button type="button" data-action="download">Download JSONL</button></div>
<noscript><p class="note">Without JavaScript all branches are shown one after another, and images are not.</p></noscript>
<dl>${facts.map(([name, value]) => (value === undefined || value === "" ? nothing : html`<dt>${name}</dt><dd>${value}</dd>`))}${totals(material.entries)}</dl>
${material.todos.length === 0 ? nothing : html`<details class="todo-list" open><summary>Todos</summary>${todos(material.todos)}</details>`}
<details><summary>System prompt</summary>${material.systemPrompt.map((block) => html`<pre class="output">${block}</pre>`)}</details>
<details><summary>Tools (${material.toolSchemas.length})</summary>${material.toolSchemas.map((tool) => html`<details><summary><b>${tool.name}</b></summary><p class="plain">${tool.description}</p>${codeBlock(JSON.stringify(tool.parameters, null, 2), "json", tools.highlight)}</details>`)}</details>
</div>`;
}

function totals(entries: readonly SessionEntry[]): Html {
  const sum = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cost: 0 };
  const counts = new Map<string, number>();
  for (const entry of entries) {
    if (entry.type !== "message") continue;
    counts.set(entry.message.role, (counts.get(entry.message.role) ?? 0) + 1);
    if (entry.message.role !== "assistant") continue;
    // Sessions of other programs may lack it.
    const usage: Partial<typeof entry.message.usage> | undefined = entry.message.usage;
    sum.input += numberOf(usage?.input);
    sum.output += numberOf(usage?.output);
    sum.cacheRead += numberOf(usage?.cacheRead);
    sum.cacheWrite += numberOf(usage?.cacheWrite);
    sum.cost += numberOf(usage?.cost?.total);
  }
  const of = (role: string) => count(counts.get(role) ?? 0);
  const messages = `${of("user")} user, ${of("assistant")} assistant, ${of("toolResult")} tool results`;
  const tokens = `${count(sum.input)} in, ${count(sum.output)} out, ${count(sum.cacheRead)} cache read, ${count(sum.cacheWrite)} cache written`;
  return html`<dt>Messages</dt><dd>${messages}</dd><dt>Tokens</dt><dd>${tokens}</dd><dt>Cost</dt><dd>${dollars(sum.cost)}</dd>`;
}

function numberOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

function timeOf(entry: SessionEntry): string {
  const at = new Date(entry.timestamp);
  return Number.isNaN(at.getTime()) ? "" : at.toISOString().replace("T", " ").slice(0, 19);
}

/** Names for deep links: the entry's id where it is plain and the only one, else its number. */
function anchorsOf(entries: readonly SessionEntry[]): string[] {
  const used = new Set<string>();
  return entries.map(({ id }, index) => {
    const wanted = `entry-${id}`;
    const anchor = /^[\w-]{1,80}$/.test(id) && !used.has(wanted) ? wanted : `number-${index}`;
    used.add(anchor);
    return anchor;
  });
}
