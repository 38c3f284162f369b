// Where sessions live: <sessionsDir>/<encoded cwd>/<file-safe ISO time>_<id>.jsonl.
import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { isAbsolute, join, relative, resolve, sep } from "node:path";

const MAX_FOLDER_LENGTH = 200;

/** The folder name of a working directory: symbolic links resolved, so that aliases share one bucket. */
export function encodeCwd(cwd: string): string {
  const real = realCwd(cwd);
  const encoded = `--${dashed(real.replace(/^[/\\]/, ""))}--`;
  if (Buffer.byteLength(encoded) <= MAX_FOLDER_LENGTH) return encoded;
  const hash = createHash("sha256").update(real).digest("hex").slice(0, 8);
  return `${[...encoded].slice(0, MAX_FOLDER_LENGTH / 4).join("")}-${hash}--`;
}

/** Every folder name that sessions of a working directory may lie under, ours first: oh-my-pi and veyyon shorten some. */
export function bucketsOf(cwd: string): string[] {
  const real = realCwd(cwd);
  const home = below(homedir(), real);
  const temporary = below(tmpdir(), real);
  return [
    encodeCwd(cwd),
    ...(home === undefined ? [] : [`-${dashed(home)}`]),
    ...(temporary === undefined ? [] : [temporary === "" ? "-tmp" : `-tmp-${dashed(temporary)}`]),
  ];
}

function dashed(path: string): string {
  return path.replace(/[/\\:]/g, "-");
}

/** The way from one directory down to another; undefined when that is not below it. */
function below(base: string, path: string): string | undefined {
  const way = relative(realCwd(base), path);
  return way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way) ? undefined : way;
}

/** The directory with its symbolic links resolved, or as given when it does not exist. */
export function realCwd(cwd: string): string {
  try {
    return realpathSync(cwd);
  } catch {
    return resolve(cwd);
  }
}

/** The id is made safe: the name never leaves its folder. */
export function sessionFileName(id: string, at: Date): string {
  const safeId = id.replace(/[^A-Za-z0-9-]/g, "_").slice(0, 100);
  return `${at.toISOString().replace(/[:.]/g, "-")}_${safeId}.jsonl`;
}

/** The file a new session will have. */
export function sessionFilePath(sessionsDir: string, cwd: string, id: string, at: Date): string {
  return join(sessionsDir, encodeCwd(cwd), sessionFileName(id, at));
}
