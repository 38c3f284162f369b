// What was found wrong in a session file, in words for a person.
import type { ReadReport } from "./read.ts";

const MAX_PLACES = 3;
/** Repairs that lose nothing are no reason to disturb anybody. */
const LOSSES = new Set<string>(["unreadable", "partly unreadable", "torn end", "too long", "not an entry"]);

/** Undefined when every line was taken in. Holds no content of the file. */
export function damageText(file: string, report: ReadReport): string | undefined {
  if (report.lostLines === 0) return undefined;
  const places = report.damage.filter(({ reason }) => LOSSES.has(reason)).slice(0, MAX_PLACES);
  const where = places.map(({ offset, reason }) => `byte ${offset} (${reason})`);
  if (report.lostLines > places.length) where.push("...");
  const lines = report.lostLines === 1 ? "1 damaged line was" : `${report.lostLines} damaged lines were`;
  return `${lines} skipped in session "${file}": ${where.join(", ")}. The file was not modified`;
}
