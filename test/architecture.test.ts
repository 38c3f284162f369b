import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));

interface Import {
  readonly from: string;
  /** A path under the root, or a bare specifier. */
  readonly to: string;
  readonly typeOnly: boolean;
}

/** Every import and re-export of the TypeScript files of some folders. */
function importsOf(...folders: string[]): Import[] {
  return folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".ts") && !path.endsWith(".generated.ts"))
      .flatMap((path) => importsOfFile(join(folder, path))),
  );
}

function importsOfFile(file: string): Import[] {
  const text = readFileSync(join(root, file), "utf8");
  const found: Import[] = [];
  const statement =
    /^\s*(?:import|export)\s+(type\s+)?(?:[\w*{}\s,$]+?\s+from\s+)?["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']\s*\)/gm;
  for (const match of text.matchAll(statement)) {
    const specifier = match[2] ?? match[3] ?? "";
    const to = specifier.startsWith(".") ? relative(root, resolve(root, dirname(file), specifier)) : specifier;
    found.push({ from: file, to, typeOnly: match[1] !== undefined });
  }
  return found;
}

const layerOf = (path: string): string | undefined =>
  [
    "protocol/",
    "core/kernel/",
    "core/loader/",
    "core/session/",
    "core/agent/",
    "core/services/",
    "extensions/",
    "builtin-tools/",
  ].find((layer) => path.startsWith(layer));

/** What each layer may import besides itself. Services and the agent know each other's types: tokens name both. */
const ALLOWED: Record<string, string[]> = {
  "protocol/": [],
  "core/kernel/": ["protocol/"],
  "core/loader/": ["protocol/", "core/kernel/"],
  "core/session/": ["protocol/", "core/kernel/"],
  "core/agent/": ["protocol/", "core/kernel/", "core/session/", "core/services/"],
  "core/services/": ["protocol/", "core/kernel/", "core/session/", "core/agent/"],
};

describe("Architecture", () => {
  it("has imports that point one way", () => {
    const wrong = importsOf("protocol", "core")
      .filter(({ from, to }) => {
        const layer = layerOf(from);
        const target = layerOf(to);
        if (layer === undefined || target === undefined || layer === target) return false;
        return !ALLOWED[layer]?.includes(target);
      })
      .map(({ from, to }) => `${from} → ${to}`);
    expect(wrong).toEqual([]);
  });

  it("lets nothing below the composition root import it or the authors' door", () => {
    const wrong = importsOf("protocol", "core")
      .filter(({ from, to }) => layerOf(from) !== undefined && /^core\/[\w-]+\.ts$/.test(to))
      .map(({ from, to }) => `${from} → ${to}`);
    expect(wrong).toEqual([]);
  });

  it("lets built-ins import the authors' door, Node, their own folder and outside libraries only", () => {
    const own = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Record<string, Record<string, string>>;
    const libraries = Object.keys({ ...own["dependencies"], ...own["optionalDependencies"] });
    const wrong = importsOf("extensions", "builtin-tools")
      .filter(({ from, to }) => {
        if (to === "mortise/extension" || to.startsWith("node:")) return false;
        if (libraries.some((library) => to === library || to.startsWith(`${library}/`))) return false;
        const folder = from.startsWith("builtin-tools/") ? "builtin-tools/" : `${from.split("/").slice(0, 2).join("/")}/`;
        return !to.startsWith(folder);
      })
      .map(({ from, to }) => `${from} → ${to}`);
    expect(wrong).toEqual([]);
  });

  it("keeps models and files out of the kernel", () => {
    const outside = importsOf("core/kernel")
      .filter(({ from, to }) => /^(node:fs|@anthropic-ai|openai)/.test(to) && !from.startsWith("core/kernel/transport/"))
      .map(({ from, to }) => `${from} → ${to}`);
    expect(outside).toEqual([]);
  });

  it("gives hosts a client that needs nothing but Node", () => {
    const seen = new Set<string>();
    const outside: string[] = [];
    const visit = (file: string) => {
      if (seen.has(file)) return;
      seen.add(file);
      for (const { to, typeOnly } of importsOfFile(file)) {
        if (typeOnly || to.startsWith("node:")) continue;
        if (to.startsWith("protocol/")) visit(to);
        else outside.push(`${file} → ${to}`);
      }
    };
    visit("protocol/index.ts");
    expect(outside).toEqual([]);
  });

  it("pins the names of the authors' doors: adding one is a decision", async () => {
    const doors = {
      extension: Object.keys(await import("../core/extension.ts")).sort(),
      testing: Object.keys(await import("../core/testing.ts")).sort(),
    };
    const pinned: unknown = JSON.parse(readFileSync(join(root, "test/support/door-names.json"), "utf8"));
    expect(doors).toEqual(pinned);
    expect(readFileSync(join(root, "core/extension.ts"), "utf8")).not.toContain("export *");
  });

  it("has the top-level folders of the design and no others", () => {
    const folders = readdirSync(root, { withFileTypes: true })
      .filter(
        (entry) => entry.isDirectory() && !entry.name.startsWith(".") && !/^(node_modules|dist.*|coverage)$/.test(entry.name),
      )
      .map((entry) => entry.name);
    expect(folders.sort()).toEqual(["builtin-tools", "core", "docs", "extensions", "protocol", "test"]);
  });
});
