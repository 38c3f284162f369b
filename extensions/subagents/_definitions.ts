// Agent definitions: Markdown files of the project and the user, then contributions. Read again at every call, so that an
// edited file holds from the next call on.
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type AgentDefinition,
  type AgentSource,
  type Context,
  type ConversationHandle,
  errorMessage,
  Launch,
  parseFrontmatter,
  ThinkingLevel,
  z,
} from "mortise/extension";

const NAME = /^[\p{L}\p{N}][\p{L}\p{N}_-]*$/u;
const words = z
  .union([z.array(z.string()), z.string().transform((text) => text.split(","))])
  .transform((list) => list.map((word) => word.trim()).filter((word) => word !== ""));
const Head = z.looseObject({
  name: z.string().regex(NAME, 'must be letters, digits, "_" and "-"'),
  description: z
    .string()
    .transform((text) => text.replace(/\s+/g, " ").trim())
    .refine((text) => text !== "", "must not be empty"),
  tools: words.optional(),
  spawns: z.union([z.literal("*"), words]).optional(),
  model: words.optional(),
  thinkingLevel: ThinkingLevel.optional(),
  output: z.record(z.string(), z.unknown()).optional(),
  blocking: z.boolean().optional(),
});

const SOURCES: Readonly<Record<string, AgentSource>> = { builtin: "bundled", package: "bundled", project: "project" };

/** By name; the project's before the user's before contributed ones. A file that cannot be used is told through `warn`. */
export async function readDefinitions(ctx: Context, conversation: ConversationHandle, warn: (message: string) => void) {
  const found = new Map<string, AgentDefinition>();
  const folders: [string, AgentSource][] = [[join(conversation.cwd, ".mortise", "agents"), "project"]];
  const home = ctx.tryUse(Launch)?.home;
  if (home !== undefined) folders.push([join(home, "agents"), "user"]);
  for (const [folder, source] of folders) {
    for (const file of await markdownFiles(folder, warn)) {
      const definition = await readDefinition(file, source, warn);
      if (definition !== undefined && !found.has(definition.name)) found.set(definition.name, definition);
    }
  }
  for (const { name, definition, scope } of ctx.registry.list("agent")) {
    const { kind: _, ...template } = definition;
    if (!found.has(name)) found.set(name, { ...template, source: SOURCES[scope.owner.origin] ?? "user" });
  }
  return found;
}

async function readDefinition(
  file: string,
  source: AgentSource,
  warn: (message: string) => void,
): Promise<AgentDefinition | undefined> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    warn(`Agent "${file}" is ignored: ${errorMessage(error)}`);
    return undefined;
  }
  const { data, body, warning } = await parseFrontmatter(text);
  const head = Head.safeParse(data);
  if (!head.success) {
    const [issue] = head.error.issues;
    const why = warning ?? `"${issue?.path.join(".")}" in its head ${lower(issue?.message ?? "is wrong")}`;
    warn(`Agent "${file}" is ignored: ${why}`);
    return undefined;
  }
  const { name, description, tools, spawns, model, thinkingLevel, output, blocking } = head.data;
  return {
    name,
    description,
    source,
    file,
    ...(tools === undefined ? {} : { tools }),
    // Whoever is given the task tool is meant to use it; an agent with all tools is as free as its parent.
    ...optional("spawns", spawns ?? (tools === undefined || tools.includes("task") ? "*" : undefined)),
    ...optional("models", model),
    ...optional("thinkingLevel", thinkingLevel),
    ...optional("output", output),
    ...optional("blocking", blocking),
    systemPrompt: body.trim(),
  };
}

async function markdownFiles(folder: string, warn: (message: string) => void): Promise<string[]> {
  // Asked before every request, and mostly there is none: spares the round trip through a thread.
  if (!existsSync(folder)) return [];
  try {
    const names = await readdir(folder);
    return names
      .filter((name) => name.endsWith(".md") && !name.startsWith("."))
      .sort()
      .map((name) => join(folder, name));
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code !== "ENOENT" && code !== "ENOTDIR") warn(`Cannot read folder "${folder}": ${errorMessage(error)}`);
    return [];
  }
}

function optional<K extends string, V>(key: K, value: V | undefined): { [key in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { [key in K]?: V });
}

const lower = (text: string) => text.charAt(0).toLowerCase() + text.slice(1);
