// Agent definitions: Markdown files of the project and the user, then contributions. Read again at every call, so that an
// edited file holds from the next call on.
import type { Dirent } from "node:fs";
import { readFile } from "node:fs/promises";
import {
  type AgentDefinition,
  type AgentSource,
  type Context,
  type ConversationHandle,
  contentFolders,
  errorMessage,
  Launch,
  listFolder,
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

/** By name; the project's before the user's before those of extensions, files first, before the built-in ones. A file that cannot be used is told through `warn`. */
export async function readDefinitions(ctx: Context, conversation: ConversationHandle, warn: (message: string) => void) {
  const found = new Map<string, AgentDefinition>();
  const { home } = ctx.use(Launch);
  const folders: { path: string; source: AgentSource }[] = [
    ...contentFolders({ home, cwd: conversation.cwd }, "agents").map(({ path, origin }) => ({ path, source: origin })),
    ...broughtAlong(ctx),
  ];
  for (const { path, source } of folders) {
    // What an extension brings along may be one file.
    for (const file of path.endsWith(".md") ? [path] : await listFolder(path, isAgentFile, warn)) {
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

function broughtAlong({ registry }: Context): { path: string; source: AgentSource }[] {
  const folders = registry.list("content folder").filter(({ definition }) => definition.content === "agents");
  return folders.map(({ definition, scope }) => ({ path: definition.path, source: SOURCES[scope.owner.origin] ?? "user" }));
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
    const field = String(issue?.path[0] ?? "");
    const isMissing = data[field] === undefined || data[field] === null;
    const what = isMissing
      ? `it needs a "${field}" in its head`
      : `"${field}" in its head ${lower(issue?.message ?? "is wrong")}`;
    warn(`Agent "${file}" is ignored: ${what}${warning === undefined ? "" : ` (${warning})`}`);
    return undefined;
  }
  if (warning !== undefined) warn(`Head of agent "${file}" is read line by line: ${warning}`);
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

function isAgentFile(entry: Dirent): boolean {
  return !entry.isDirectory() && entry.name.endsWith(".md");
}

function optional<K extends string, V>(key: K, value: V | undefined): { [key in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { [key in K]?: V });
}

const lower = (text: string) => text.charAt(0).toLowerCase() + text.slice(1);
