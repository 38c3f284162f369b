// Which files the replaced messages read and changed: kept over all compactions, because a summary forgets paths first.
import { type AgentMessage, z } from "mortise/extension";

export interface FileLists {
  readonly readFiles: readonly string[];
  readonly modifiedFiles: readonly string[];
}

const Details = z.looseObject({ readFiles: z.array(z.string()).catch([]), modifiedFiles: z.array(z.string()).catch([]) });
const HEADING = "## Files";
/** Files named in the summary; the details hold all. */
const MAX_NAMED = 100;

/** Adds what the messages did to the lists of an earlier compaction; a changed file counts as changed only. */
export function fileLists(messages: readonly AgentMessage[], earlierDetails: unknown): FileLists {
  const earlier = Details.safeParse(earlierDetails);
  const read = new Set(earlier.success ? earlier.data.readFiles : []);
  const modified = new Set(earlier.success ? earlier.data.modifiedFiles : []);
  for (const message of messages) {
    if (message.role !== "assistant") continue;
    for (const block of message.content) {
      if (block.type !== "toolCall") continue;
      // Not a schema: a history holds many calls of other tools, and a failed parse costs a hundred times as much.
      const { path } = block.arguments;
      if (typeof path !== "string" || path === "") continue;
      if (block.name === "read") read.add(path);
      else if (block.name === "write" || block.name === "edit") modified.add(path);
    }
  }
  return { readFiles: [...read].filter((file) => !modified.has(file)), modifiedFiles: [...modified] };
}

/** The section that closes a summary; empty without files. */
export function filesSection({ readFiles, modifiedFiles }: FileLists): string {
  const lines = [...namedFiles("Changed", modifiedFiles), ...namedFiles("Read", readFiles)];
  return lines.length === 0 ? "" : `\n\n${HEADING}\n${lines.join("\n")}`;
}

/** The summary without that section: it is made anew each time. */
export function withoutFiles(summary: string): string {
  const at = summary.lastIndexOf(`\n\n${HEADING}\n`);
  return at < 0 ? summary : summary.slice(0, at);
}

function namedFiles(verb: string, files: readonly string[]): string[] {
  if (files.length === 0) return [];
  const newest = files.slice(-MAX_NAMED);
  const more = files.length - newest.length;
  return [`${verb}:`, ...newest.map((file) => `- ${file}`), ...(more > 0 ? [`- and ${more} earlier ones`] : [])];
}
