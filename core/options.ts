// The command line. Free of libraries: it runs before `ready`, and only checks the grammar and the existence of named files.
import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";

/** What the command line and the environment ask for. Paths are absolute. */
export interface Options {
  mode: "rpc" | "rpc-ui";
  cwd: string;
  model?: string;
  models?: string;
  provider?: string;
  apiKey?: string;
  thinking?: string;
  session?: string;
  continue: boolean;
  noSession: boolean;
  sessionDir?: string;
  config: string[];
  extension: string[];
  noExtensions: boolean;
  systemPrompt?: string;
  appendSystemPrompt?: string;
  tools?: string[];
  name?: string;
  trust: boolean;
  noUi: boolean;
  maxFrameBytes?: number;
  dev: boolean;
  printExtensions: boolean;
  logLevel: "debug" | "info" | "warn" | "error" | "silent";
}

/** Either options to run with, or a text to print and an exit code. `notes` are lines for stderr. */
export type Parsed = { run: Options; notes: string[] } | { print: string; to: "stdout" | "stderr"; code: number };

interface OptionSpec {
  /** Name of the value in the help; absent for flags. */
  value?: string;
  short?: string;
  repeatable?: boolean;
  help: string;
}

const SPECS: Record<string, OptionSpec> = {
  mode: { value: "rpc|rpc-ui", help: "protocol to speak; rpc-ui also gives tools the dialogs" },
  model: { value: "MODEL", help: "provider/id, id, or either with :thinking" },
  models: { value: "LIST", help: "comma-separated models that cycle_model walks" },
  provider: { value: "NAME", help: "provider of --model" },
  "api-key": { value: "KEY", help: "key for the selected provider, this process only" },
  thinking: { value: "LEVEL", help: "off, minimal, low, medium, high, xhigh or max" },
  session: { value: "PATH|ID", help: "open this session" },
  continue: { short: "c", help: "open the newest session of the directory" },
  "no-session": { help: "keep the conversation in memory" },
  "session-dir": { value: "DIR", help: "where session files go" },
  config: { value: "FILE", repeatable: true, help: "settings on top of config.yml; repeatable, later wins" },
  extension: { value: "PATH", short: "e", repeatable: true, help: "load this extension; repeatable" },
  "no-extensions": { help: "load built-ins only" },
  "system-prompt": { value: "TEXT|FILE", help: "replaces the instructions" },
  "append-system-prompt": { value: "TEXT|FILE", help: "added to the system prompt" },
  tools: { value: "A,B", help: "offer only these tools" },
  name: { value: "NAME", help: "name of the session" },
  trust: { help: "use the project's extensions and programs" },
  cwd: { value: "DIR", help: "working directory" },
  "no-ui": { help: "dialogs give their default (rpc only)" },
  "max-frame-bytes": { value: "N", help: "limit of one protocol v1 line, 0 for none" },
  dev: { help: "read built-ins from their sources and watch them" },
  "print-extensions": { help: "print what was loaded and how long it took to stderr" },
  "log-level": { value: "LEVEL", help: "debug, info, warn, error or silent" },
  help: { short: "h", help: "print this" },
  version: { short: "v", help: "print the version" },
};

/** Options of pi, oh-my-pi and veyyon without a meaning here; true when they take a value. */
const FOREIGN: Record<string, boolean> = {
  print: false,
  verbose: false,
  offline: false,
  theme: true,
  "no-themes": false,
  "no-skills": false,
  "no-prompt-templates": false,
  "no-pty": false,
  "no-lsp": false,
  "no-title": false,
  "no-tools": false,
  "allow-home": false,
  profile: true,
  hook: true,
  skill: true,
  "prompt-template": true,
  "plugin-dir": true,
  smol: true,
  slow: true,
  plan: true,
};

const LEVELS = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];
const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;

/** Reads the arguments. Never throws and touches no file beyond asking whether it exists. */
export function parseOptions(argv: readonly string[], env: NodeJS.ProcessEnv, processCwd: string, version: string): Parsed {
  try {
    return read(argv, env, processCwd, version);
  } catch (error) {
    if (error instanceof UsageError) return { print: `Error: ${error.message}\n`, to: "stderr", code: 1 };
    throw error;
  }
}

class UsageError extends Error {}

function read(argv: readonly string[], env: NodeJS.ProcessEnv, processCwd: string, version: string): Parsed {
  const values = new Map<string, string[]>();
  const notes: string[] = [];
  for (let index = 0; index < argv.length; index++) {
    const argument = argv[index] as string;
    if (argument.startsWith("@"))
      throw new UsageError("@file arguments are not supported in RPC mode; send the text in a prompt");
    if (!argument.startsWith("-")) throw new UsageError(`Unexpected argument "${argument}": prompts come as frames on stdin`);
    const { name, inline } = nameOf(argument);
    const spec = SPECS[name];
    const takesValue = spec ? spec.value !== undefined : FOREIGN[name] === true;
    if (spec === undefined && !(name in FOREIGN)) throw new UsageError(`Unknown option "${argument}"${suggestion(name)}`);
    let value = inline ?? "";
    if (takesValue && inline === undefined) {
      const next = argv[++index];
      if (next === undefined) throw new UsageError(`Option "${argument}" needs a value${spec?.value ? `: ${spec.value}` : ""}`);
      value = next;
    } else if (!takesValue && inline !== undefined) {
      throw new UsageError(`Option "--${name}" takes no value, found "${inline}"`);
    }
    if (spec === undefined) {
      notes.push(`Option "--${name}" has no meaning here and is ignored`);
      continue;
    }
    if (!spec.repeatable && values.has(name)) throw new UsageError(`Option "--${name}" is given twice`);
    values.set(name, [...(values.get(name) ?? []), value]);
  }
  if (values.has("help")) return { print: helpText(), to: "stdout", code: 0 };
  if (values.has("version")) return { print: `${version}\n`, to: "stdout", code: 0 };
  if (!values.has("mode")) return { print: helpText(), to: "stderr", code: 1 };
  return { run: toOptions(values, env, processCwd), notes };
}

function nameOf(argument: string): { name: string; inline: string | undefined } {
  const equals = argument.indexOf("=");
  const bare = equals < 0 ? argument : argument.slice(0, equals);
  const inline = equals < 0 ? undefined : argument.slice(equals + 1);
  if (bare.startsWith("--")) return { name: bare.slice(2), inline };
  const short = bare.slice(1);
  const long = Object.keys(SPECS).find((name) => SPECS[name]?.short === short);
  return { name: long ?? short, inline };
}

function toOptions(values: Map<string, string[]>, env: NodeJS.ProcessEnv, processCwd: string): Options {
  const one = (name: string) => values.get(name)?.[0];
  const mode = oneOf("--mode", one("mode") ?? "", ["rpc", "rpc-ui"] as const);
  if (values.has("no-ui") && mode !== "rpc") throw new UsageError("--no-ui requires --mode rpc");
  const cwd = resolve(processCwd, one("cwd") ?? ".");
  if (!isDirectory(cwd)) throw new UsageError(`Working directory "${cwd}" does not exist`);
  const file = (option: string, path: string) => {
    const absolute = resolve(cwd, expandHome(path, env));
    if (!existsSync(absolute)) throw new UsageError(`File of ${option} does not exist: "${absolute}"`);
    return absolute;
  };
  const thinking = one("thinking");
  if (thinking !== undefined) oneOf("--thinking", thinking, LEVELS);
  if (values.has("session") && values.has("continue")) throw new UsageError("--session and --continue cannot be combined");
  const session = one("session");
  const isPath = session !== undefined && /[/\\]|\.jsonl$/.test(session);
  const options: Options = {
    mode,
    cwd,
    continue: values.has("continue"),
    noSession: values.has("no-session"),
    config: (values.get("config") ?? []).map((path) => file("--config", path)),
    extension: (values.get("extension") ?? []).map((path) => file("--extension", path)),
    noExtensions: values.has("no-extensions"),
    trust: values.has("trust"),
    noUi: values.has("no-ui"),
    dev: values.has("dev"),
    printExtensions: values.has("print-extensions"),
    logLevel: oneOf("--log-level", one("log-level") ?? env["MORTISE_LOG_LEVEL"] ?? "warn", LOG_LEVELS),
  };
  assign(options, "model", one("model"));
  assign(options, "models", one("models"));
  assign(options, "provider", one("provider"));
  assign(options, "apiKey", one("api-key"));
  assign(options, "thinking", thinking);
  assign(options, "session", isPath ? file("--session", session) : session);
  assign(
    options,
    "sessionDir",
    one("session-dir") === undefined ? undefined : resolve(cwd, expandHome(one("session-dir") ?? "", env)),
  );
  assign(options, "systemPrompt", one("system-prompt"));
  assign(options, "appendSystemPrompt", one("append-system-prompt"));
  assign(options, "name", one("name"));
  assign(
    options,
    "tools",
    one("tools")
      ?.split(",")
      .map((name) => name.trim())
      .filter((name) => name !== ""),
  );
  assign(options, "maxFrameBytes", byteCount(one("max-frame-bytes") ?? env["MORTISE_MAX_FRAME_BYTES"]));
  return options;
}

function assign<K extends keyof Options>(options: Options, key: K, value: Options[K] | undefined): void {
  if (value !== undefined) options[key] = value;
}

function byteCount(text: string | undefined): number | undefined {
  if (text === undefined || text === "") return undefined;
  if (!/^\d+$/.test(text)) throw new UsageError(`--max-frame-bytes: expected a number of bytes, found "${text}"`);
  const bytes = Number(text);
  if (bytes !== 0 && bytes < 1024) throw new UsageError(`--max-frame-bytes: expected 0 or at least 1024, found "${text}"`);
  return bytes;
}

function oneOf<T extends string>(option: string, value: string, allowed: readonly T[]): T {
  const found = allowed.find((each) => each === value);
  if (found === undefined) throw new UsageError(`${option}: expected ${allowed.join(", ")}, found "${value}"`);
  return found;
}

function expandHome(path: string, env: NodeJS.ProcessEnv): string {
  return path === "~" || path.startsWith("~/") ? (env["HOME"] ?? "~") + path.slice(1) : path;
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

function suggestion(name: string): string {
  let best: { name: string; distance: number } | undefined;
  for (const candidate of Object.keys(SPECS)) {
    const distance = editDistance(name, candidate);
    if (best === undefined || distance < best.distance) best = { name: candidate, distance };
  }
  return best ? `; did you mean "--${best.name}"?` : "";
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(substitution, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** The text of `--help`. */
export function helpText(): string {
  const lines = Object.entries(SPECS).map(([name, spec]) => {
    const left = `${spec.short ? `-${spec.short}, ` : "    "}--${name}${spec.value ? ` ${spec.value}` : ""}`;
    return `  ${left.padEnd(38)} ${spec.help}`;
  });
  return `mortise: a plugin-host daemon for coding agents

Usage: mortise --mode rpc|rpc-ui [options]
       mortise create-extension NAME

Speaks newline-delimited JSON on stdin and stdout; see docs/protocol.md.

Options:
${lines.join("\n")}
`;
}
