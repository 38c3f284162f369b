// What a conversation has read: so that a write can tell that a file changed since. A slot: per conversation, not stored.
import { stat } from "node:fs/promises";
import { defineSlot, type ToolContext, z } from "mortise/extension";
import { realPath } from "./_path.ts";

const FilesSeen = defineSlot({
  name: "files seen",
  schema: z.map(z.string(), z.string()),
  initial: () => new Map<string, string>(),
});

/** Oldest entries go first beyond this. */
const MAX_FILES = 5000;

/** Which version of a file this is: modification time in ns, size and inode. */
export async function versionOf(path: string): Promise<string | undefined> {
  try {
    const { mtimeNs, size, ino } = await stat(path, { bigint: true });
    return `${mtimeNs}:${size}:${ino}`;
  } catch {
    return undefined;
  }
}

/** Remembers the version of a file as the one the model knows. */
export async function markSeen(ctx: ToolContext, path: string, version?: string): Promise<void> {
  const real = await realPath(path);
  const current = version ?? (await versionOf(real));
  if (current === undefined) return;
  ctx.conversation.slot(FilesSeen).update((files) => {
    files.delete(real);
    files.set(real, current);
    const oldest = files.size > MAX_FILES ? files.keys().next().value : undefined;
    if (oldest !== undefined) files.delete(oldest);
    return files;
  });
}

/** The version the model knows, or undefined when it has not read the file. */
export function seenVersion(ctx: ToolContext, real: string): string | undefined {
  return ctx.conversation.slot(FilesSeen).get().get(real);
}
