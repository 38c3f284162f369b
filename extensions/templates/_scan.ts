// Finds the Markdown files that are slash commands.
import type { Dirent } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { errorMessage, listFolder, parseFrontmatter } from "mortise/extension";

export interface Template {
  readonly name: string;
  readonly description: string;
  readonly argumentHint: string | undefined;
  readonly file: string;
}

/** Larger files are no prompts. */
const MAX_CHARS = 1_000_000;

/**
 * The templates of some folders, the first folder wins a name. A folder that does not exist has none; files that cannot be
 * used are told through `warn`.
 */
export async function scanTemplates(folders: readonly string[], warn: (message: string) => void): Promise<Template[]> {
  const found = new Map<string, Template>();
  for (const folder of folders) {
    // A path may name one file.
    for (const file of folder.endsWith(".md") ? [folder] : await listFolder(folder, isTemplate, warn)) {
      const name = basename(file, ".md");
      if (found.has(name)) continue;
      if (/[\s/]/.test(name)) {
        warn(`Prompt file "${file}" is ignored: its name has a blank, so nobody could type it. Rename it`);
        continue;
      }
      try {
        found.set(name, await readTemplate(name, file, warn));
      } catch (error) {
        warn(`Prompt file "${file}" is ignored: ${errorMessage(error)}`);
      }
    }
  }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The text a template gives to the model, before arguments. */
export async function templateBody(file: string): Promise<string> {
  return (await parseFrontmatter(await readFile(file, "utf8"))).body;
}

async function readTemplate(name: string, file: string, warn: (message: string) => void): Promise<Template> {
  const text = await readFile(file, "utf8");
  if (text.length > MAX_CHARS) throw new Error(`it has more than ${MAX_CHARS} characters`);
  const { data, body, warning } = await parseFrontmatter(text);
  if (warning !== undefined) warn(`Head of prompt file "${file}" is read line by line: ${warning}`);
  return {
    name,
    description: textOf(data["description"]) ?? firstLine(body),
    argumentHint: textOf(data["argument-hint"] ?? data["argumentHint"]),
    file,
  };
}

function isTemplate(entry: Dirent): boolean {
  return !entry.isDirectory() && entry.name.endsWith(".md");
}

function textOf(value: unknown): string | undefined {
  if (Array.isArray(value)) return `[${value.map(String).join(", ")}]`;
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}

function firstLine(body: string): string {
  const line = body.split(/\r?\n/).find((each) => each.trim() !== "") ?? "";
  const text = line.trim().replace(/^#+\s*/, "");
  const chars = [...text];
  return chars.length > 60 ? `${chars.slice(0, 60).join("")}…` : text;
}
