// What an export shows, taken from a conversation at one moment and with secrets masked in every field.
import { type Context, type SessionEntry, TodoPhase, type ToolSchema, z } from "mortise/extension";
import { type Mask, maskDeep } from "./_mask.ts";
import type { Material } from "./_page.ts";
import { slicer } from "./_slice.ts";
import { type Transcript, transcriptsOf } from "./_subagents.ts";
import { defaultName } from "./_write.ts";

const PLAN_ENTRY = "slot:todos";

export async function materialOf(ctx: Context, mask: Mask): Promise<Material> {
  const { log } = ctx.conversation;
  const masked = <T>(value: T): T => maskDeep(value, mask) as T;
  // Taken together, before the first wait: entries may come meanwhile.
  const originals = [...log.entries];
  const { leafId, header, name } = log;
  const labels = new Map([...log.labels].map(([id, label]) => [mask(id), mask(label)]));
  const path = log.path();
  const toolSchemas = masked<readonly ToolSchema[]>([...ctx.conversation.toolSchemas()]);
  const index = new Map(originals.map((entry, at) => [entry.id, at]));
  const at = (id: string | null) => (id === null ? -1 : (index.get(id) ?? -1));
  const parents = originals.map((entry) => at(log.parentOf(entry.id)));
  const systemPrompt = masked(await ctx.conversation.systemPrompt());
  const entries: SessionEntry[] = [];
  const slice = slicer();
  for (const entry of originals) {
    entries.push(masked(entry));
    await slice();
  }
  const subagents: Transcript[] = [];
  for (const transcript of await transcriptsOf(originals, log.artifacts.dir)) {
    subagents.push(masked(transcript));
    await slice();
  }
  return {
    header: masked(header),
    entries,
    parents,
    leaf: at(leafId),
    name: name === undefined ? undefined : mask(name),
    labels,
    systemPrompt,
    toolSchemas,
    todos: masked(todosOf(path)),
    subagents,
    downloadName: defaultName(log.file ?? "session", mask).replace(/\.html$/, ".jsonl"),
  };
}

/** The plan at the end of the path. */
function todosOf(path: readonly SessionEntry[]): TodoPhase[] {
  const last = path.findLast((entry) => entry.type === "custom" && entry.customType === PLAN_ENTRY);
  const phases = z.array(TodoPhase).safeParse(last?.type === "custom" ? last.data : []);
  return phases.success ? phases.data : [];
}
