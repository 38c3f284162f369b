// The stack an author is shown: his lines, and what they called. How the daemon came to run them is nothing he can act on, and
// names files he does not have; the log keeps it.
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { PACKAGE_ROOT } from "./extension-roots.ts";

const ROOT = `${PACKAGE_ROOT}/`;
/** Where the daemon's code lies below its package, as sources and built. */
const OWN_FOLDERS = /^(core|protocol|extensions|builtin-tools|dist[^/]*)\//;
/** File names of the built chunks (`compiled-chunks.mjs`). */
const CHUNKS = "mortise/";

/** A stack without the frames of the daemon. That of a built-in stays whole: its author is the daemon's. */
export function authorStack(stack: string, owner: string): string {
  if (!owner.startsWith("/")) return stack;
  const kept: string[] = [];
  // From the outermost frame inwards: Node's and our packages' stand for whoever called them.
  let caller: Side = "daemon";
  for (const line of stack.split("\n").reverse()) {
    const file = fileOf(line);
    if (file === undefined) {
      kept.push(line);
      continue;
    }
    caller = sideOf(file, owner) ?? caller;
    if (caller === "author") kept.push(line);
  }
  return kept.reverse().join("\n");
}

type Side = "author" | "daemon";

/** Undefined for what both use. */
function sideOf(file: string, owner: string): Side | undefined {
  if (file.startsWith(CHUNKS)) return "daemon";
  if (!file.startsWith("/") || isOurPackage(file)) return undefined;
  return isOurs(file, dirname(owner)) ? "daemon" : "author";
}

/** An installation has its packages in its own folder or beside it. */
function isOurPackage(file: string): boolean {
  if (file.startsWith(`${ROOT}node_modules/`)) return true;
  const beside = `${dirname(PACKAGE_ROOT)}/`;
  return beside.endsWith("/node_modules/") && file.startsWith(beside) && !file.startsWith(ROOT);
}

/** A user's unit may lie in the checkout, beside the built-ins. */
function isOurs(file: string, folder: string): boolean {
  if (!file.startsWith(ROOT) || !OWN_FOLDERS.test(file.slice(ROOT.length))) return false;
  return !(folder.startsWith(ROOT) && file.startsWith(`${folder}/`));
}

/** The file a line of a stack names, with what follows it; undefined for a line of text. */
function fileOf(line: string): string | undefined {
  // The last bracket: code that was made by an `eval` belongs to whoever made it.
  const found = /^\s+at (?:.*\((.*)\)|(?:async )?(.*))$/.exec(line);
  const place = found?.[1] ?? found?.[2];
  if (!place?.startsWith("file://")) return place;
  try {
    return fileURLToPath(place);
  } catch {
    return place;
  }
}
