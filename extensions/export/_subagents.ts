// Transcripts of subagents. The session says with `subagent_spawn` entries which there were; their files lie in the folder beside
// it, those of their own subagents in folders beside theirs.
import { lstatSync } from "node:fs";
import { basename, join } from "node:path";
import { readFrom, type SessionEntry, z } from "mortise/extension";
import { entryHead, renderEntry, type Tools, transcriptAnchor } from "./_entry.ts";
import { type Html, html, nothing } from "./_html.ts";
import { oneLine } from "./_text.ts";

export interface Transcript {
  readonly id: string;
  readonly agent: string;
  readonly status: string;
  readonly task: string;
  readonly entries: readonly SessionEntry[];
  readonly nested: readonly Transcript[];
}

const Spawn = z.looseObject({
  type: z.literal("subagent_spawn"),
  agentId: z.string(),
  sessionFile: z.string(),
  agentName: z.string().catch(""),
  status: z.string().catch(""),
  task: z.string().catch(""),
});

/** Deeper ones are left out: a page is for reading. */
const MAX_DEPTH = 8;

/** @param folder beside the session; undefined for one that has none. */
export async function transcriptsOf(
  entries: readonly SessionEntry[],
  folder: string | undefined,
  depth = 0,
): Promise<Transcript[]> {
  if (folder === undefined || depth >= MAX_DEPTH) return [];
  const spawned = new Map<string, z.infer<typeof Spawn>>();
  for (const entry of entries) {
    const spawn = entry.type === "subagent_spawn" ? Spawn.safeParse(entry).data : undefined;
    // The last one tells the end; the place in the list is that of the first.
    if (spawn !== undefined) spawned.set(spawn.agentId, spawn);
  }
  const transcripts: Transcript[] = [];
  for (const { agentId: id, agentName: agent, sessionFile, status, task } of spawned.values()) {
    // Whatever a session that came from elsewhere says: only files beside it.
    const file = join(folder, basename(sessionFile));
    const own = await entriesOf(file);
    const nested = await transcriptsOf(own, file.replace(/\.jsonl$/, ""), depth + 1);
    transcripts.push({ id, agent, status, task, entries: own, nested });
  }
  return transcripts;
}

/** Nothing for a file that is gone, is a link, or is no session. */
async function entriesOf(file: string): Promise<SessionEntry[]> {
  if (lstatSync(file, { throwIfNoEntry: false })?.isFile() !== true) return [];
  const entries: SessionEntry[] = [];
  try {
    for (let from = 0; ; ) {
      const read = await readFrom(file, from);
      entries.push(...read.entries.filter((entry): entry is SessionEntry => entry.type !== "session"));
      if (read.nextByte <= from) return entries;
      from = read.nextByte;
    }
  } catch {
    return entries;
  }
}

export async function renderTranscripts(list: readonly Transcript[], tools: Tools, slice: () => Promise<void>): Promise<Html> {
  if (list.length === 0) return nothing;
  const parts: Html[] = [];
  for (const transcript of list) parts.push(await renderOne(transcript, tools, slice));
  return html`<section class="subagents"><h2>Subagents (${list.length})</h2>${parts}</section>`;
}

async function renderOne(transcript: Transcript, tools: Tools, slice: () => Promise<void>): Promise<Html> {
  const { id, agent, status, task, entries, nested } = transcript;
  const said: Html[] = [];
  for (const entry of entries) {
    const rendered = renderEntry(entry, tools);
    if (rendered.kind !== "state") {
      const failed = rendered.failed === true ? " failed" : "";
      said.push(html`<div class="entry ${rendered.kind}${failed}">${entryHead(rendered)}${rendered.body}</div>`);
    }
    await slice();
  }
  const missing = said.length === 0 ? html`<p class="note">Its session file has no messages, or is gone</p>` : nothing;
  const inner = await renderTranscripts(nested, tools, slice);
  return html`<details class="subagent" id="${transcriptAnchor(id)}"><summary><b>${id}</b> <span class="hint">${agent} · ${status} · ${oneLine(task)}</span></summary>${said}${missing}${inner}</details>`;
}
