// The YAML block between `---` lines at the start of a Markdown file (skills, prompts, agents, rules).

export interface Frontmatter {
  /** Empty when the file has no block. */
  readonly data: Readonly<Record<string, unknown>>;
  /** The text after the block, without leading blank lines. */
  readonly body: string;
  /** Why the block was read line by line instead of as YAML; without its values. */
  readonly warning: string | undefined;
}

const BLOCK = /^---[ \t]*\r?\n(?:([\s\S]*?)\r?\n)??---[ \t]*(?:\r?\n|$)/;

/** Never throws: what is not YAML is read as plain `key: value` lines, and a block without an end is text. */
export async function parseFrontmatter(text: string): Promise<Frontmatter> {
  const source = text.startsWith("\uFEFF") ? text.slice(1) : text;
  const block = BLOCK.exec(source);
  if (block === null) return { data: {}, body: source, warning: undefined };
  const body = source.slice(block[0].length).replace(/^(?:[ \t]*\r?\n)+/, "");
  const yaml = block[1] ?? "";
  const simple = simpleLines(yaml);
  if (simple !== undefined) return { data: simple, body, warning: undefined };
  const { parseDocument } = await import("yaml");
  const document = parseDocument(yaml, { logLevel: "silent" });
  const [first] = document.errors;
  if (first !== undefined) {
    return { data: plainLines(yaml), body, warning: first.message.split("\n", 1)[0]?.replace(/:$/, "") };
  }
  try {
    const data: unknown = document.toJS({ maxAliasCount: 100 });
    if (typeof data === "object" && data !== null && !Array.isArray(data)) {
      return { data: data as Record<string, unknown>, body, warning: undefined };
    }
    return { data: {}, body, warning: data === null ? undefined : 'Expected "name: value" lines' };
  } catch (error) {
    return { data: plainLines(yaml), body, warning: error instanceof Error ? error.message : String(error) };
  }
}

/**
 * A block of plain `name: words` lines, which is what most files have, without loading a YAML parser at start-up. Undefined when
 * a line could mean anything else in YAML.
 */
function simpleLines(yaml: string): Record<string, unknown> | undefined {
  const data: Record<string, unknown> = {};
  for (const line of yaml.split(/\r?\n/)) {
    const [, key, value] = /^([A-Za-z][\w-]*): +([A-Za-z(/][^:#\p{Cc}]*?) *$/u.exec(line) ?? [];
    if (key === undefined || value === undefined || Object.hasOwn(data, key)) return undefined;
    if (value === "true" || value === "false") data[key] = value === "true";
    else if (/^(?:true|false|null)$/i.test(value)) return undefined;
    else data[key] = value;
  }
  return data;
}

function plainLines(yaml: string): Record<string, unknown> {
  const data: Record<string, unknown> = {};
  for (const line of yaml.split(/\r?\n/)) {
    const pair = /^([A-Za-z][\w-]*):[ \t]+(.*\S)[ \t]*$/.exec(line);
    const [, key, value] = pair ?? [];
    if (key !== undefined && value !== undefined) data[key] = value.replace(/^(["'])(.*)\1$/, "$2");
  }
  return data;
}
