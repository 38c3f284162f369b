// Shell commands as rules see them. Two readings: a strict one for rules that allow, which gives up where a command could do
// more than its text shows, and a generous one for rules that deny, which rather finds too much.

/** Output thrown away or joined with the other stream: the only redirections that cannot touch a file. */
const harmless = /(?:[12]|&)?>(?:&[12]|[ \t]*\/dev\/null)(?=[\s;&|]|$)/y;

/**
 * The simple commands that bash would run one after another, blanks joined. Undefined when the text holds anything that runs
 * or expands further commands, or writes to files: substitution, redirection, groups, comments, `$'…'`, unclosed quotes.
 */
export function simpleCommands(command: string): string[] | undefined {
  const found: string[] = [];
  let text = "";
  const end = () => {
    if (text.trim() !== "") found.push(text.trim());
    text = "";
  };
  let at = 0;
  while (at < command.length) {
    const character = command[at] ?? "";
    harmless.lastIndex = at;
    const previous = text.at(-1);
    if ((previous === undefined || previous === " ") && harmless.test(command)) {
      at = harmless.lastIndex;
    } else if (character === "\\") {
      const next = command[at + 1];
      if (next === undefined) return undefined;
      if (next !== "\n") text += character + next;
      at += 2;
    } else if (character === "'" || character === '"') {
      const close = quoteEnd(command, at);
      if (close === undefined || previous === "$") return undefined;
      text += command.slice(at, close + 1);
      at = close + 1;
    } else if (/[`(){}<>#]/.test(character) || expands(command, at)) {
      return undefined;
    } else if (/[;&|\n]/.test(character)) {
      end();
      at++;
    } else if (character === " " || character === "\t") {
      if (previous !== " ") text += " ";
      at++;
    } else {
      text += character;
      at++;
    }
  }
  end();
  return found;
}

/** Index of the closing quote; undefined when there is none, or when double quotes hold a substitution. */
function quoteEnd(command: string, open: number): number | undefined {
  const quote = command[open];
  for (let at = open + 1; at < command.length; at++) {
    const character = command[at];
    if (character === quote) return at;
    if (quote === "'") continue;
    if (character === "\\") at++;
    else if (character === "`" || expands(command, at)) return undefined;
  }
  return undefined;
}

const expands = (command: string, at: number) => command[at] === "$" && /[({[]/.test(command[at + 1] ?? "");

/** Words in front of a command that are not the command. */
const wrapper =
  /^(?:sudo|doas|pkexec|runuser|env|command|builtin|exec|nohup|nice|ionice|chrt|taskset|setsid|time|timeout|xargs|parallel|stdbuf|unbuffer|watch|busybox|toybox|chroot|unshare|nsenter|systemd-run|flock|strace|ltrace|chronic)$/;
/** Those of them that put further words behind the command. */
const appends = /^(?:xargs|parallel)$/;
/** Of `find`: a command follows. */
const runs = /^-(?:exec|execdir|ok|okdir)$/;
const keyword = /^(?:then|do|else|elif|if|while|until|time|!|coproc)$/;
const assignment = /^[A-Za-z_]\w*\+?=/;
const interpreter =
  /(?:^|[\s/;&|(])(?:sh|bash|dash|zsh|ksh|eval|ssh|su|runuser|xargs|find|watch|script|source|trap|alias|parallel)(?:\s|$)/;
/** A redirection with what it names, wherever it stands in a command. */
const redirection = /(?:\d{1,3}|&)?(?:<<<|<>|>>|>\||[<>]&?)[ \t]*[^\s;&|<>(){}]+/g;
/** How many options are looked behind. */
const MAX_OPTIONS = 20;

/** Everything in the text that may be a command, with quotes, paths and words in front taken off; the text itself comes first. */
export function possibleCommands(command: string): string[] {
  const joined = command.replaceAll("\\\n", "");
  const found = new Set<string>([joined.trim()]);
  const separators = interpreter.test(joined) ? /[;&|\n(){}`<>'"]/ : /[;&|\n(){}`<>]/;
  const pieces = [...joined.split(separators), ...joined.replace(redirection, " ").split(separators)];
  for (const piece of [...pieces, ...(simpleCommands(command) ?? [])]) {
    for (const text of commandsIn(piece)) found.add(text);
  }
  found.delete("");
  return [...found];
}

/** The command of a piece of text, and those behind words such as `sudo`, each also without the options in front of what it is to do. */
function commandsIn(piece: string): string[] {
  const found: string[] = [];
  const words = piece.trim().split(/\s+/).slice(0, 200).map(bare);
  let place: "first" | "wrapped" | "appended" | "searching" = "first";
  for (const [index, word] of words.entries()) {
    if (place === "searching") {
      if (runs.test(word)) place = "appended";
      continue;
    }
    const name = word.split("/").at(-1) ?? word;
    const rest = words.slice(index + 1);
    const tails = [rest, ...withoutOptions(rest), ...(place === "appended" ? [[...rest, "{}"]] : [])];
    found.push(...tails.map((tail) => [name, ...tail].join(" ").trim()));
    if (name === "find") place = "searching";
    else if (appends.test(name)) place = "appended";
    // After a wrapper its options and their values cannot be told from the command.
    else if (wrapper.test(name)) place = place === "first" ? "wrapped" : place;
    else if (place === "first" && !keyword.test(name) && !assignment.test(word)) break;
  }
  return found;
}

/** `-C dir push` may be `push` or `dir push`: which options take a value is not known. */
function withoutOptions(words: readonly string[]): string[][] {
  const starts = new Set<number>([0]);
  for (const start of starts) {
    if (start >= MAX_OPTIONS || !words[start]?.startsWith("-")) continue;
    starts.add(start + 1).add(start + 2);
  }
  starts.delete(0);
  return [...starts].filter((start) => start < words.length).map((start) => words.slice(start));
}

const bare = (word: string) => word.replace(/["'\\]/g, "");

/** `*` stands for any text; `:*` at the end for nothing or a blank and any text. */
export function matchesCommand(pattern: string, text: string): boolean {
  if (pattern.endsWith(":*")) {
    const start = pattern.slice(0, -2);
    return wildcard(start, text) || wildcard(`${start} *`, text);
  }
  return wildcard(pattern, text);
}

/** Greedy, so that many `*` cost no more than one. */
export function wildcard(pattern: string, text: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return pattern === text;
  if (!text.startsWith(first)) return false;
  const last = rest.pop() ?? "";
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return text.length - last.length >= at && text.endsWith(last);
}
