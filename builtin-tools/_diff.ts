// What an edit changed, for hosts: numbered lines, the first changed line, and a unified patch.
import { structuredPatch } from "diff";

const CONTEXT = 4;

export interface DiffDetails {
  /** ` 12 kept`, `-13 old`, `+13 new`; `...` between places. */
  diff: string;
  firstChangedLine: number | undefined;
  patch: string;
}

/** Only the region between the first and the last change is compared, so that the cost does not grow with the file. */
export function describeChange(name: string, before: string, after: string): DiffDetails {
  const region = changedRegion(before, after);
  const { hunks } = structuredPatch(name, name, region.before, region.after, undefined, undefined, { context: CONTEXT });
  const lines: string[] = [];
  const patch: string[] = [`--- a/${name}`, `+++ b/${name}`];
  const width = String(
    region.line + hunks.reduce((most, hunk) => Math.max(most, hunk.oldStart + hunk.oldLines, hunk.newStart + hunk.newLines), 0),
  ).length;
  let firstChangedLine: number | undefined;
  hunks.forEach((hunk, index) => {
    let oldLine = hunk.oldStart + region.line;
    let newLine = hunk.newStart + region.line;
    patch.push(`@@ -${oldLine},${hunk.oldLines} +${newLine},${hunk.newLines} @@`);
    if (index > 0) lines.push("...");
    for (const line of hunk.lines) {
      patch.push(line);
      const kind = line[0] ?? " ";
      if (kind === "\\") continue;
      if (kind !== " ") firstChangedLine ??= newLine;
      lines.push(`${kind}${String(kind === "-" ? oldLine : newLine).padStart(width)} ${line.slice(1)}`);
      if (kind !== "+") oldLine++;
      if (kind !== "-") newLine++;
    }
  });
  return { diff: lines.join("\n"), firstChangedLine, patch: `${patch.join("\n")}\n` };
}

/** Both texts without their common beginning and end, but with whole lines and some context; `line` lines stand before. */
function changedRegion(before: string, after: string): { before: string; after: string; line: number } {
  const limit = Math.min(before.length, after.length);
  let head = 0;
  while (head < limit && before.charCodeAt(head) === after.charCodeAt(head)) head++;
  let tail = 0;
  while (tail < limit - head && before.charCodeAt(before.length - 1 - tail) === after.charCodeAt(after.length - 1 - tail)) tail++;
  let start = head;
  for (let lines = 0; lines <= CONTEXT && start > 0; lines++) start = before.lastIndexOf("\n", start - 2) + 1;
  let end = before.length - tail;
  for (let lines = 0; lines <= CONTEXT && end < before.length; lines++) {
    const next = before.indexOf("\n", end);
    end = next < 0 ? before.length : next + 1;
  }
  let line = 0;
  for (let at = before.indexOf("\n"); at >= 0 && at < start; at = before.indexOf("\n", at + 1)) line++;
  return { before: before.slice(start, end), after: after.slice(start, after.length - (before.length - end)), line };
}
