// The parts of docs/extensions.md that are derived: the table of kinds, the table of hook points, and every code block, which is a
// file that is compiled and run.
import { readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { agentHookPoints } from "../core/agent/hook-points.ts";
import type { Kind } from "../core/kernel/definition.ts";
import type { Combine, HookPoint } from "../core/kernel/hooks.ts";
import "../core/extension.ts";
import { sessionBeforeCompact, sessionCompacted, sessionCompactionFailed } from "../core/services/compaction.ts";
import { root } from "./root.ts";

interface KindRow {
  /** The function that makes one. */
  readonly made: string;
  readonly does: string;
  /** How many answer one name. */
  readonly names: "one" | "all";
}

/** A kind that is missing here does not compile. */
const kinds: Record<Kind, KindRow> = {
  tool: { made: "defineTool", does: "Something the model can call", names: "one" },
  "slash command": { made: "defineSlashCommand", does: "Something a person types: `/name …` in a prompt", names: "one" },
  command: { made: "defineCommand", does: "A frame type that hosts may send", names: "one" },
  "command override": { made: "overrideCommand", does: "Other behaviour for a wire command that exists", names: "one" },
  hook: { made: "defineHook", does: "Code that is asked at a point of the agent's work", names: "all" },
  event: { made: "defineFrame", does: "A frame type that the daemon sends", names: "one" },
  "state field": { made: "defineStateField", does: "A field of `get_state`", names: "one" },
  provider: { made: "defineProvider", does: "A model service, with the models it has", names: "one" },
  "login flow": { made: "defineLoginFlow", does: "A way to obtain a provider's credential", names: "one" },
  "search provider": { made: "defineSearchProvider", does: "A service behind the `web_search` tool", names: "one" },
  "uri scheme": { made: "defineUriScheme", does: "Virtual files under `<scheme>://`", names: "one" },
  "prompt section": { made: "definePromptSection", does: "A part of the system prompt", names: "one" },
  setting: { made: "defineSetting", does: "A value people may configure, with schema and default", names: "one" },
  slot: { made: "defineSlot", does: "State of one conversation, kept in its session file if wanted", names: "one" },
  service: { made: "defineService", does: "An object that other extensions find by its token", names: "one" },
  ui: { made: "defineUiMethod", does: "A dialog or notice that hosts can show", names: "one" },
  "host request": { made: "defineHostRequest", does: "A question to the host with frame types of its own", names: "one" },
  agent: { made: "defineAgent", does: "A kind of subagent for the `task` tool", names: "one" },
  "content folder": {
    made: "defineContentFolder",
    does: "Skills, prompt files or agents that come with an extension",
    names: "one",
  },
  dialect: { made: "defineDialect", does: "Another way of writing extensions", names: "one" },
};

const combinations: Record<Combine, string> = {
  first: "first answer",
  chain: "chain",
  series: "one by one",
  parallel: "together",
  veto: "gate",
};

/** The page with its derived parts as they should be. @throws {Error} for a marker without an end. */
export function extensionsPage(current: string): string {
  const tables = between(between(current, "kinds", kindsTable()), "hook points", hooksTable());
  const text = tables.replaceAll(
    /<!-- include (\S+) -->\n[\s\S]*?<!-- end include -->/g,
    (_, path: string) => `<!-- include ${path} -->\n${codeBlock(path)}\n<!-- end include -->`,
  );
  const [begun, ended] = [/<!-- include /g, /<!-- end include -->/g].map((mark) => text.match(mark)?.length);
  if (begun !== ended) throw new Error(`docs/extensions.md has ${begun} includes and ${ended} ends`);
  return text;
}

function between(text: string, name: string, inner: string): string {
  const begin = `<!-- begin ${name} -->`;
  const end = `<!-- end ${name} -->`;
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  if (from < 0 || to < from) throw new Error(`docs/extensions.md lacks the markers of "${name}"`);
  return `${text.slice(0, from + begin.length)}\n${inner}\n${text.slice(to)}`;
}

function kindsTable(): string {
  const rows = Object.entries(kinds).map(
    ([kind, { made, does, names }]) =>
      `| ${kind} | \`${made}\` | ${does} | ${names === "all" ? "all of a name" : "the top one"} |`,
  );
  return ["| Kind | Made with | What it is | Who answers |", "|---|---|---|---|", ...rows].join("\n");
}

function hooksTable(): string {
  const points: readonly HookPoint<never, unknown>[] = [
    ...agentHookPoints,
    sessionBeforeCompact,
    sessionCompacted,
    sessionCompactionFailed,
  ];
  const rows = points.map(({ name, combine, summary, timeoutMs }) => {
    return `| \`${name}\` | ${combinations[combine]} | ${duration(timeoutMs ?? 30_000)} | ${summary} |`;
  });
  return ["| Point | Handlers | Limit | When, and what an answer does |", "|---|---|---|---|", ...rows].join("\n");
}

function duration(ms: number): string {
  if (ms >= 3_600_000) return "a day";
  return ms >= 60_000 ? `${ms / 60_000} min` : `${ms / 1000} s`;
}

const LANGUAGES: Record<string, string> = { ".ts": "ts", ".json": "json", ".yml": "yaml" };

function codeBlock(path: string): string {
  const text = readFileSync(join(root, path), "utf8").trimEnd();
  return `\`\`\`${LANGUAGES[extname(path)] ?? ""}\n${text}\n\`\`\``;
}
