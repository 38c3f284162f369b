// The whole page: head with its policy, tree, messages, data.
import { createHash } from "node:crypto";
import type { SessionEntry, SessionHeader, TodoPhase, ToolSchema } from "mortise/extension";
import { entryHead, type Rendered, renderEntry, type Tools, todos } from "./_entry.ts";
import { Html, html, jsonForScript, nothing } from "./_html.ts";
import { codeBlock, withCopy } from "./_markdown.ts";
import { slicer } from "./_slice.ts";
import { STYLE } from "./_style.ts";
import { renderTranscripts, type Transcript } from "./_subagents.ts";
import { count, dollars, textOf } from "./_text.ts";
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
    const anchor = anchors[index] ?? `number-${index}`;
    const place = { index, anchor, label: material.labels.get(entry.id), entry, rendered };
    rows.push(row(place));
    articles.push(article(place));
    await slice();
  }
  return [
    HEAD,
    `${head(titleOf(material))}\n<body>\n${sidebar(material, rows)}\n<main id="main" tabindex="-1">\n${intro(material, tools)}\n`,
    ...inChunks(articles),
    `<p id="end">End of the session</p>\n`,
    `${(await renderTranscripts(material.subagents, tools, slice)).text}\n</main>\n<script type="application/json" id="data">`,
    ...(await dataBlock(material, tools, slice)),
    `</script>\n<script>${VIEWER}</script>\n</body>\n</html>\n`,
  ];
}

/** So many entries a browser leaves out of its work together while they are out of sight; to watch each costs more than it saves. */
const CHUNK = 40;

function* inChunks(articles: readonly Html[]): Generator<string> {
  for (let at = 0; at < articles.length; at += CHUNK) {
    const texts = articles.slice(at, at + CHUNK).map((each) => each.text);
    yield `<div class="chunk">\n${texts.join("\n")}\n</div>\n`;
  }
}

interface Place {
  readonly index: number;
  readonly anchor: string;
  readonly label: string | undefined;
  readonly entry: SessionEntry;
  readonly rendered: Rendered;
}

function classes({ rendered }: Place): string {
  return `${rendered.kind}${rendered.kind === "state" ? " minor" : ""}${rendered.failed === true ? " failed" : ""}`;
}

/** A link in the tree, so that it leads somewhere without a script, too. */
function row(place: Place): Html {
  const { label, rendered } = place;
  const badge = label === undefined ? nothing : html`<span class="label">${label}</span>`;
  const labelled = label === undefined ? nothing : html` data-label=""`;
  return html`<li class="row ${classes(place)}"${labelled}><a href="#${encodeURIComponent(place.anchor)}">${badge}<span class="line">${rendered.line}</span></a></li>`;
}

function article(place: Place): Html {
  const { anchor, entry, label, rendered } = place;
  const badge = label === undefined ? nothing : html`<span class="label">${label}</span>`;
  const link = html`<a class="anchor" href="#${encodeURIComponent(anchor)}" title="Link to this entry" aria-label="Link to this entry">#</a>`;
  return html`<article class="entry ${classes(place)}" id="${anchor}" data-index="${place.index}" tabindex="-1">${entryHead(rendered, html`${badge}${timeOf(entry)}${link}`)}${rendered.body}</article>`;
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
<meta http-equiv="x-dns-prefetch-control" content="off">
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
  return html`<a class="skip" href="#main">Skip to the messages</a>
<div id="bar"><button type="button" id="menu" aria-label="Tree and search" aria-controls="sidebar" aria-expanded="false">☰</button><span>${titleOf(material)}</span></div>
<nav id="sidebar" aria-label="Session">
<div class="tools">
<input id="search" type="search" placeholder="Search" aria-label="Search in all entries" autocomplete="off" spellcheck="false">
<div class="filters" role="group" aria-label="Entries to show">${filter("default", "Default")}${filter("talk", "No tools")}${filter("user", "User")}${filter("labelled", "Labelled")}${filter("all", "All")}</div>
</div>
<ol id="tree" aria-label="Entries">${rows}</ol>
<p class="count" id="count" role="status">${count(material.entries.length)} entries</p>
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
  const action = (name: string, text: string, title: string) =>
    html`<button type="button" data-action="${name}" title="${title}">${text}</button>`;
  return html`<div id="intro">
<h1>${titleOf(material)}</h1>
<div class="actions">${action("thinking", "Thinking", "Open or close all thinking")}${action("tools", "Tools", "Open or close all tool calls and results")}${action("theme", "Theme", "Light or dark")}${action("download", "Download JSONL", "The session file, with secrets masked")}</div>
<noscript><p class="note">Without JavaScript all branches are shown one after another, and images are not.</p></noscript>
<dl>${facts.map(([name, value]) => (value === undefined || value === "" ? nothing : html`<dt>${name}</dt><dd>${value}</dd>`))}${totals(material.entries)}</dl>
${material.todos.length === 0 ? nothing : html`<details class="todo-list" open><summary>Todos</summary>${todos(material.todos)}</details>`}
<details><summary>System prompt</summary>${material.systemPrompt.map((block) => withCopy(html`<pre class="output">${block}</pre>`))}</details>
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

function timeOf(entry: SessionEntry): Html {
  const at = new Date(textOf(entry.timestamp));
  if (Number.isNaN(at.getTime())) return nothing;
  const iso = at.toISOString();
  return html`<time datetime="${iso}" title="${iso}">${iso.replace("T", " ").slice(0, 19)}</time>`;
}

/** Names for deep links: the entry's id where it can be one and is the only one, else its number. */
function anchorsOf(entries: readonly SessionEntry[]): string[] {
  const used = new Set<string>();
  return entries.map(({ id }, index) => {
    const wanted = `entry-${id}`;
    const anchor = LINKABLE.test(id) && id.isWellFormed() && !used.has(wanted) ? wanted : `number-${index}`;
    used.add(anchor);
    return anchor;
  });
}

/** Letters of any script, and nothing that is invisible or that an address or an attribute could stumble over. */
const LINKABLE = /^[\p{L}\p{M}\p{N}_.~:-]{1,80}$/u;
