// Bundles the doors and the entry into dist/ with lazy chunks, and prints their types. Run by `prepare`.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = dirname(fileURLToPath(import.meta.url));
const BANNER =
  'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);';
const ifPossible = process.argv.includes("--if-possible");
/** `--outdir NAME` builds beside dist/, for tests of sources that are newer than it. */
const outdir = process.argv.includes("--outdir") ? process.argv[process.argv.indexOf("--outdir") + 1] : "dist";

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

/**
 * Node gives a CommonJS module named exports when it is imported; a bundled dynamic import gives only the default. This puts the
 * names back, so that `await import("yaml")` means the same in the bundle as from the sources.
 */
const namedExports = {
  name: "named-exports-of-commonjs",
  setup(build) {
    build.onResolve({ filter: /^[^./]/ }, async (args) => {
      if (args.kind !== "dynamic-import" || args.pluginData === "plain" || args.path.startsWith("node:")) return undefined;
      const { resolveDir } = args;
      const found = await build.resolve(args.path, { kind: "import-statement", resolveDir, pluginData: "plain" });
      if (found.errors.length > 0 || found.external || !isCommonJs(found.path)) return undefined;
      return { path: args.path, namespace: "named", pluginData: { resolveDir } };
    });
    build.onLoad({ filter: /.*/, namespace: "named" }, async (args) => {
      const names = Object.keys(await import(args.path)).filter((name) => name !== "default" && /^[a-zA-Z_$][\w$]*$/.test(name));
      const specifier = JSON.stringify(args.path);
      const lines = [`import all from ${specifier};`, "export default all;"];
      for (const [index, name] of names.entries())
        lines.push(`const v${index} = all.${name};`, `export { v${index} as ${name} };`);
      return { contents: lines.join("\n"), resolveDir: args.pluginData.resolveDir };
    });
  },
};

/**
 * zod's namespace holds the messages of fifty languages, more than half of what starting would have to parse. English stays in
 * the bundle; the others are read from the installed package when somebody asks for one.
 */
const lazyLocales = {
  name: "lazy-locales",
  setup(build) {
    build.onLoad({ filter: /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, (args) => {
      const listed = readFileSync(args.path, "utf8").matchAll(/export \{ default as (\w+) \} from "\.\/([\w-]+)\.js"/g);
      const lines = ['import { createRequire } from "node:module";', "const installed = createRequire(import.meta.url);"];
      for (const [, name, file] of listed) {
        if (name === "en") lines.push('export { default as en } from "./en.js";');
        else lines.push(`export const ${name} = () => installed("zod/v4/locales/${file}.cjs")();`);
      }
      if (lines.length < 20) return { errors: [{ text: `${args.path}: no list of languages was found` }] };
      return { contents: lines.join("\n"), resolveDir: dirname(args.path) };
    });
  },
};

function isCommonJs(file) {
  if (file.endsWith(".mjs") || file.endsWith(".cjs")) return file.endsWith(".cjs");
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    const manifest = join(folder, "package.json");
    if (existsSync(manifest)) return JSON.parse(readFileSync(manifest, "utf8")).type !== "module";
    if (folder === dirname(folder)) return true;
  }
}

async function loadEsbuild() {
  if (!existsSync(join(root, "node_modules/esbuild"))) return undefined;
  return import("esbuild");
}

if (existsSync(join(root, "node_modules/esbuild"))) restorePlatformBinaries();
const esbuild = await loadEsbuild();
if (process.argv.includes("--types-only")) {
  printTypes();
} else if (esbuild === undefined) {
  const built = existsSync(join(root, "dist/main.js"));
  console.log(
    `build: esbuild is not installed (development packages left out); ${built ? "keeping dist/ as it is" : "nothing is built"}`,
  );
  if (!ifPossible) process.exitCode = 1;
} else {
  rmSync(join(root, outdir), { recursive: true, force: true });
  const { metafile } = await esbuild.build({
    absWorkingDir: root,
    entryPoints: {
      main: "core/main.ts",
      client: "protocol/index.ts",
      protocol: "protocol/protocol.ts",
      extension: "core/extension.ts",
      testing: "core/testing.ts",
      "isolate-child": "core/isolate-child.ts",
    },
    outdir,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node20",
    chunkNames: "chunks/[name]-[hash]",
    sourcemap: false,
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: "linked",
    external: ["node-pty", "sharp", "jiti", "@vscode/ripgrep"],
    metafile: true,
    banner: { js: BANNER },
    plugins: [namedExports, lazyLocales],
    logLevel: "warning",
  });
  // Beside the chunks, because the loader looks for it beside itself.
  copyFileSync(join(root, "core/loader/transform-worker.mjs"), join(root, outdir, "chunks/transform-worker.mjs"));
  copyFileSync(join(root, "core/compiled-chunks.mjs"), join(root, outdir, "chunks/compiled-chunks.mjs"));
  for (const [path, output] of Object.entries(metafile.outputs)) {
    if (dirname(path) === join(outdir, "chunks") && path.endsWith(".js")) await toScript(esbuild, path, output.exports);
  }
  if (!(await warm(join(root, outdir)))) {
    console.error("build: no code cache could be made; dist/ works without one, and starts slower");
  }
  if (!process.argv.includes("--no-types")) printTypes();
}

/**
 * Makes a chunk the script and the module that core/compiled-chunks.mjs describes. A wrapper's parameters stand for what an ES
 * module has from itself.
 */
async function toScript(esbuild, path, names) {
  const file = join(root, path);
  const name = basename(path, ".js");
  const { code, warnings } = await esbuild.transform(await withOwnImport(readFileSync(file, "utf8").replace(BANNER, "")), {
    format: "cjs",
    platform: "node",
    target: "node20",
    minifySyntax: true,
    minifyWhitespace: true,
    define: { "import.meta.url": "__url", "import.meta.resolve": "__resolve" },
    logLevel: "silent",
  });
  // Exports of such modules change after the evaluation, which the module of the old name could not follow.
  if (code.includes("__esm(")) throw new Error(`build: ${path} holds a module that is evaluated late`);
  if (warnings.length > 0) throw new Error(`build: ${path} cannot be a script: ${warnings[0].text}`);
  writeFileSync(join(dirname(file), `${name}.code`), `(function(exports,require,module,__url,__resolve,__import){${code}\n})`);
  const lines = ['import { load } from "./compiled-chunks.mjs";', `const chunk = load(${JSON.stringify(name)});`];
  for (const [index, exported] of names.entries())
    lines.push(`const v${index} = chunk.${exported};`, `export { v${index} as ${exported} };`);
  writeFileSync(file, `${lines.join("\n")}\n`);
}

/** A script has no `import()` of its own: each becomes a call of `__import`. */
async function withOwnImport(code) {
  const { init, parse } = await import("es-module-lexer");
  await init;
  const dynamic = parse(code)[0].filter(({ d }) => d >= 0);
  let rewritten = "";
  let done = 0;
  for (const { ss } of dynamic) {
    rewritten += `${code.slice(done, ss)}__`;
    done = ss;
  }
  return rewritten + code.slice(done);
}

/** Runs a daemon of the new bundle through a turn and keeps what V8 compiled for it. False when that did not work. */
async function warm(folder) {
  const chunks = pathToFileURL(join(folder, "chunks/compiled-chunks.mjs")).href;
  const saving = `import { saveCaches } from ${JSON.stringify(chunks)}; process.on("exit", () => saveCaches());`;
  const home = mkdtempSync(join(tmpdir(), "mortise-build-"));
  const hook = `data:text/javascript,${encodeURIComponent(saving)}`;
  const args = ["--import", hook, join(folder, "main.js"), "--mode", "rpc", "--model", "offline/echo", "--no-session"];
  const env = { ...process.env, MORTISE_HOME: home };
  const daemon = spawn(process.execPath, args, { cwd: home, env, stdio: ["pipe", "pipe", "ignore"] });
  const limit = setTimeout(() => daemon.kill(), 60_000);
  daemon.stdin.on("error", () => {});
  daemon.stdin.write(`${JSON.stringify({ type: "get_state" })}\n${JSON.stringify({ type: "prompt", message: "hello" })}\n`);
  let output = "";
  daemon.stdout.setEncoding("utf8").on("data", (text) => {
    output += text;
    if (output.includes('"type":"agent_end"')) daemon.stdin.end();
  });
  const [code] = await once(daemon, "close");
  clearTimeout(limit);
  rmSync(home, { recursive: true, force: true });
  return code === 0;
}

/** Types of the doors, with what built-ins merge into them: `ctx.ui.input` is typed where extensions/ui defines it. */
function printTypes() {
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const types = join(resolve(root, outdir), "types");
  const result = spawnSync(process.execPath, [compiler, "-p", join(root, "tsconfig.types.json"), "--outDir", types], {
    stdio: "inherit",
  });
  if (result.status !== 0) {
    console.error("build: the types could not be printed; dist/ works without them");
    if (!ifPossible) process.exitCode = 1;
    return;
  }
  const door = join(types, "core/extension.d.ts");
  const merging = readdirSync(types, { recursive: true, encoding: "utf8" })
    .filter(
      (file) => file.endsWith(".d.ts") && readFileSync(join(types, file), "utf8").includes('declare module "mortise/extension"'),
    )
    .map((file) => `/// <reference path="../${file}" />\n`);
  writeFileSync(door, `${merging.sort().join("")}${readFileSync(door, "utf8")}`);
}
