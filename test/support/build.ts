// Where the built entry is for tests that start a process: dist/ as `npm ci` left it, or, when a source is newer, a build of its
// own beside it that other runs do not disturb.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { threadId } from "node:worker_threads";

const root = fileURLToPath(new URL("../..", import.meta.url));
const STALE_MS = 15 * 60_000;

/** Path of an entry that is as new as the sources; builds when it has to. */
export function builtEntry(): string {
  const sources = sourceFiles();
  const built = statSync(join(root, "dist/main.js"), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (built > Math.max(...sources.map((file) => file.mtimeMs))) return join(root, "dist/main.js");
  const hash = createHash("sha256").update(JSON.stringify(sources)).digest("hex").slice(0, 12);
  const folder = `dist-test-${hash}`;
  if (!existsSync(join(root, folder))) {
    removeStale();
    // Workers are threads of one process, and two may build at once.
    const scratch = `dist-test-tmp-${process.pid}-${threadId}`;
    execFileSync(process.execPath, [join(root, "build.mjs"), "--no-types", "--outdir", scratch], { cwd: root, stdio: "inherit" });
    try {
      renameSync(join(root, scratch), join(root, folder));
    } catch {
      // Another run was first.
      rmSync(join(root, scratch), { recursive: true, force: true });
    }
  }
  return join(root, folder, "main.js");
}

function sourceFiles(): { path: string; mtimeMs: number }[] {
  const found = ["protocol", "core", "extensions", "builtin-tools"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((path) => /\.(ts|mjs|json)$/.test(path))
      .map((path) => join(folder, path)),
  );
  return [...found, "build.mjs"].sort().map((path) => ({ path, mtimeMs: statSync(join(root, path)).mtimeMs }));
}

function removeStale(): void {
  for (const name of readdirSync(root)) {
    if (name.startsWith("dist-test-") && Date.now() - statSync(join(root, name)).mtimeMs > STALE_MS) {
      rmSync(join(root, name), { recursive: true, force: true });
    }
  }
}
