// The catalogue of built-ins: which tracked modules are units, printed as static imports so that a bundle holds them. What the
// printed file lists is built in; any other module in `extensions/` is a user's.
import { basename } from "node:path";
import { isIgnoredName } from "./discover.ts";

/** One built-in unit and its modules, relative to the repository. */
export interface CatalogueUnit {
  /** `builtin:models`, `builtin:tool/read`. */
  readonly id: string;
  readonly name: string;
  /** Folder or file. */
  readonly sources: string;
  readonly modules: readonly string[];
}

/** Groups tracked files into units: a folder of `extensions/` is one, a module of `builtin-tools/` is one. */
export function catalogueUnits(files: readonly string[]): CatalogueUnit[] {
  const folders = new Map<string, string[]>();
  const tools: CatalogueUnit[] = [];
  for (const file of [...files].sort()) {
    const parts = file.split("/");
    const name = basename(file, ".ts");
    if (!file.endsWith(".ts") || isIgnoredName(basename(file))) continue;
    const [top, folder] = parts;
    if (top === "builtin-tools" && parts.length === 2) {
      tools.push({ id: `builtin:tool/${name}`, name, sources: file, modules: [file] });
    } else if (top === "extensions" && parts.length === 3 && folder !== undefined && !isIgnoredName(folder)) {
      folders.set(folder, [...(folders.get(folder) ?? []), file]);
    }
  }
  const units = [...folders].map(([folder, modules]) => ({
    id: `builtin:${folder}`,
    name: folder,
    sources: `extensions/${folder}`,
    modules,
  }));
  return [...units, ...tools];
}

/** The text of `builtins.generated.ts`, as the formatter would leave it. */
export function renderCatalogue(units: readonly CatalogueUnit[]): string {
  const modules = units.flatMap((unit) => unit.modules).sort();
  const names = new Map(modules.map((module, index) => [module, `m${index}`]));
  const imports = modules.map((module) => `import ${names.get(module)} from "../../${module}";`);
  const entries = units.map((unit) => {
    const list = unit.modules.map((module) => names.get(module)).join(", ");
    const { id, name, sources } = unit;
    const fields = `id: ${JSON.stringify(id)}, name: ${JSON.stringify(name)}, sources: ${JSON.stringify(sources)}`;
    return `  { ${fields}, definitions: () => [${list}] },`;
  });
  return [
    "// Written by docs/generate.ts from the tracked files of extensions/ and builtin-tools/. Do not edit.",
    "// biome-ignore-all format lint assist: generated",
    'import type { BuiltinUnit } from "./host.ts";',
    ...imports,
    "",
    "/** Every built-in unit; `sources` are relative to the repository. */",
    "export const builtins: readonly BuiltinUnit[] = [",
    ...entries,
    "];",
    "",
  ].join("\n");
}
