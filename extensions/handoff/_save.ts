// The account as a file of its own, for people.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Context, errorMessage, notice } from "mortise/extension";
import { saveDocument } from "./settings.ts";

/** Path of the file in the session's side-car folder; undefined when it is off, the session is in memory or the disk refuses. */
export async function savedDocument(ctx: Context, document: string): Promise<string | undefined> {
  const { dir } = ctx.conversation.log.artifacts;
  if (!ctx.setting(saveDocument) || dir === undefined) return undefined;
  const path = join(dir, `handoff-${new Date().toISOString().replace(/[:.]/g, "-")}.md`);
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    await writeFile(path, `${document}\n`, { mode: 0o600, flag: "wx" });
    return path;
  } catch (error) {
    const message = `The account could not be saved: ${errorMessage(error)}`;
    ctx.conversation.emit(notice, { level: "warning", message, source: "handoff" });
    return undefined;
  }
}
