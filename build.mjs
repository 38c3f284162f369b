// Bundles the doors and the entry into dist/ with lazy chunks, and prints their types. Run by `prepare`.
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(fileURLToPath(import.meta.url));
const ifPossible = process.argv.includes("--if-possible");

/**
 * esbuild, TypeScript, vite and ripgrep ship their binaries as optional dependencies of their own. After
 * `npm ci --omit=optional` they are missing although only node-pty and sharp were meant to be left out: fetch exactly those.
 */
function restorePlatformBinaries() {
  const ours = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).optionalDependencies ?? {};
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const glibc = process.report?.getReport().header.glibcVersionRuntime !== undefined;
  const missing = Object.entries(lock.packages).filter(([path, entry]) => {
    if (!path.startsWith("node_modules/") || !entry.optional || !entry.os?.includes(process.platform)) return false;
    if (!entry.cpu?.includes(process.arch)) return false;
    if (entry.libc !== undefined && process.platform === "linux" && !entry.libc.includes(glibc ? "glibc" : "musl")) return false;
    const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
    if (name in ours || name.startsWith("@img/")) return false;
    return existsSync(join(root, parentOf(lock, name))) && !existsSync(join(root, path));
  });
  for (const [path, entry] of missing) {
    const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
    const scratch = mkdtempSync(join(tmpdir(), "mortise-build-"));
    console.log(`build: fetching ${name}@${entry.version}, left out with the optional packages`);
    try {
      const file = execFileSync("npm", ["pack", "--silent", "--pack-destination", scratch, `${name}@${entry.version}`], {
        encoding: "utf8",
        shell: false,
      }).trim();
      mkdirSync(join(root, path), { recursive: true });
      execFileSync("tar", ["-xzf", join(scratch, file), "--strip-components=1", "-C", join(root, path)]);
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
  }
}

/** Path of an installed package that lists `name` among its optional dependencies. */
function parentOf(lock, name) {
  const found = Object.entries(lock.packages).find(
    ([path, entry]) => path !== "" && entry.optionalDependencies?.[name] !== undefined && existsSync(join(root, path)),
  );
  return found?.[0] ?? "node_modules/.absent";
}

async function loadEsbuild() {
  if (!existsSync(join(root, "node_modules/esbuild"))) return undefined;
  return import("esbuild");
}

if (existsSync(join(root, "node_modules/esbuild"))) restorePlatformBinaries();
const esbuild = await loadEsbuild();
if (esbuild === undefined) {
  const built = existsSync(join(root, "dist/main.js"));
  console.log(
    `build: esbuild is not installed (development packages left out); ${built ? "keeping dist/ as it is" : "nothing is built"}`,
  );
  if (!ifPossible) process.exitCode = 1;
} else {
  rmSync(join(root, "dist"), { recursive: true, force: true });
  await esbuild.build({
    absWorkingDir: root,
    entryPoints: {
      main: "core/main.ts",
      client: "protocol/index.ts",
      protocol: "protocol/protocol.ts",
      extension: "core/extension.ts",
      testing: "core/testing.ts",
    },
    outdir: "dist",
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node20",
    chunkNames: "chunks/[name]-[hash]",
    sourcemap: false,
    minifySyntax: true,
    minifyWhitespace: true,
    keepNames: true,
    legalComments: "linked",
    external: ["node-pty", "sharp", "jiti", "@vscode/ripgrep"],
    banner: {
      js: 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);',
    },
    logLevel: "warning",
  });
  // Beside the chunks, because the loader looks for it beside itself.
  copyFileSync(join(root, "core/loader/transform-worker.mjs"), join(root, "dist/chunks/transform-worker.mjs"));
  if (!process.argv.includes("--no-types")) printTypes();
}

function printTypes() {
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const result = spawnSync(process.execPath, [compiler, "-p", join(root, "tsconfig.types.json")], { stdio: "inherit" });
  if (result.status !== 0) {
    console.error("build: the types could not be printed; dist/ works without them");
    if (!ifPossible) process.exitCode = 1;
  }
}
