// Folders in which the user and the project keep files that are contributions: rules/, skills/, prompts/, commands/, agents/;
// and those that extensions bring along.
import { type Dirent, existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { z } from "zod";
import type { Context, Logger } from "../kernel/context.ts";
import { type Definition, define } from "../kernel/definition.ts";
import { errorMessage } from "../kernel/errors.ts";
import { watchPaths } from "./watch.ts";

export interface ContentFolder {
  readonly path: string;
  readonly origin: "user" | "project";
}

const Contribution = z.object({
  name: z.string().min(1),
  content: z.enum(["skills", "prompts", "agents"]),
  path: z.string().refine(isAbsolute, { error: "Expected an absolute path" }),
});

/** Skills, prompt files or definitions of agents that an extension brings along. */
export interface ContentFolderDefinition extends Definition<"content folder"> {
  readonly content: "skills" | "prompts" | "agents";
  /** Absolute. Skills: a folder of skills, the folder of one, or its SKILL.md. Others: a folder of `.md` files, or one of them. */
  readonly path: string;
}

/** Brings skills, prompt files or agents along; those of the project and of the user come first. @throws {Error} for a path that is not absolute. */
export function defineContentFolder(folder: Omit<ContentFolderDefinition, "kind">): ContentFolderDefinition {
  const parsed = Contribution.safeParse(folder);
  if (!parsed.success) throw new Error(`A content folder does not fit: ${z.prettifyError(parsed.error)}`);
  return define({ kind: "content folder", ...parsed.data });
}

declare module "../kernel/definition.ts" {
  interface Kinds {
    "content folder": ContentFolderDefinition;
  }
}

/** Paths of what extensions bring along of a content now. */
export function contributedFolders({ registry }: Context, content: ContentFolderDefinition["content"]): string[] {
  const definitions = registry.list("content folder").map(({ definition }) => definition);
  return definitions.flatMap((each) => (each.content === content ? [each.path] : []));
}

/** The folders of a name. The project's comes first: it wins what both have. */
export function contentFolders({ home, cwd }: { home: string; cwd: string }, name: string): ContentFolder[] {
  return [
    { path: join(cwd, ".mortise", name), origin: "project" },
    { path: join(home, name), origin: "user" },
  ];
}

/** Paths of the entries of a folder that are not hidden, sorted; none when there is no folder. Failures are told through `warn`. */
export async function listFolder(
  path: string,
  accepts: (entry: Dirent) => boolean,
  warn: (message: string) => void,
): Promise<string[]> {
  // Most of these folders are never made: spares the round trip through a thread.
  if (!existsSync(path)) return [];
  try {
    const entries = await readdir(path, { withFileTypes: true });
    return entries
      .filter((entry) => !entry.name.startsWith(".") && accepts(entry))
      .map((entry) => join(path, entry.name))
      .sort();
  } catch (error) {
    if (existsSync(path)) warn(`Cannot read folder "${path}": ${errorMessage(error)}`);
    return [];
  }
}

/** Logs each message once: files are read again and again, and what is wrong with one is told when it is first seen. */
export function warnOnce(log: Logger): (message: string) => void {
  const told = new Set<string>();
  return (message) => {
    if (told.has(message)) return;
    told.add(message);
    log.warn(message);
  };
}

export interface FollowOptions {
  /** What to watch, asked again after each scan. */
  paths(): readonly string[];
  /** Never runs twice at a time. */
  scan(): Promise<void>;
  /** Told when a scan after the first one fails. */
  onError(error: unknown): void;
}

export interface Following {
  /** Settles with the first scan. */
  readonly first: Promise<void>;
  /** Scans once more, for another reason than a change on disk. */
  rescan(): void;
  /** Nothing runs after it. */
  close(): void;
}

/** Scans now and after every change. */
export function followFolders({ paths, scan, onError }: FollowOptions): Following {
  let closed = false;
  let watched = paths();
  const rescan = async () => {
    if (closed) return;
    await scan();
    const wanted = paths();
    if (wanted.join("\0") === watched.join("\0")) return;
    watched = wanted;
    watch.update(wanted);
  };
  let scanning = Promise.resolve();
  const rescanLater = () => {
    scanning = scanning.then(rescan).catch(onError);
  };
  // Watched from before the first scan on, so that no change falls between the two.
  const watch = watchPaths(watched, () => rescanLater());
  const first = rescan();
  scanning = first.catch(() => {});
  return {
    first,
    rescan: rescanLater,
    close() {
      closed = true;
      watch.close();
    },
  };
}
