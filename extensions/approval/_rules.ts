// Rules of `tools.approval`, and which of them a call meets. A rule that denies needs one match in any reading of the call; a
// rule that allows must cover all of it.
import { z } from "mortise/extension";
import { matchesCommand, possibleCommands, simpleCommands, wildcard } from "./_commands.ts";
import { isOrdinary, matchesPath, type Subject } from "./_subject.ts";

export type Verdict = "allow" | "deny" | "prompt";

export interface Rule {
  /** As it is written: `bash`, `bash(git status*)`. */
  readonly text: string;
  /** Name of a tool; `*` stands for any text. */
  readonly tool: string;
  readonly pattern: string | undefined;
  readonly verdict: Verdict;
}

/**
 * What a person approved for more than one call: exactly this text, this real path, ordinary files of the project, or with none
 * of them every call of the tool.
 */
export const Approved = z.object({
  tool: z.string(),
  exact: z.string().optional(),
  path: z.string().optional(),
  files: z.literal("project").optional(),
});
export type Approved = z.infer<typeof Approved>;

export interface ToolCall {
  readonly tool: string;
  readonly subject: Subject;
  /** Real path of the conversation's directory. */
  readonly cwd: string;
}

export function rulesOf(setting: Readonly<Record<string, Verdict>>): Rule[] {
  return Object.entries(setting).map(([text, verdict]) => {
    const open = text.indexOf("(");
    if (open < 0) return { text, tool: text.trim(), pattern: undefined, verdict };
    return { text, tool: text.slice(0, open).trim(), pattern: text.slice(open + 1).replace(/\)\s*$/, ""), verdict };
  });
}

/** The first rule that any part of the call meets. */
export function findTouching(rules: readonly Rule[], call: ToolCall): Rule | undefined {
  return rules.find((rule) => wildcard(rule.tool, call.tool) && (rule.pattern === undefined || touches(rule.pattern, call)));
}

function touches(pattern: string, { subject, cwd }: ToolCall): boolean {
  switch (subject.kind) {
    case "command":
      return possibleCommands(subject.command).some((text) => matchesCommand(pattern, text));
    case "paths":
      return subject.paths.some(({ absolute, real }) => matchesPath(pattern, absolute, cwd) || matchesPath(pattern, real, cwd));
    case "url":
      return wildcard(pattern, subject.url);
    case "text":
      return wildcard(pattern, subject.text);
  }
}

/** Whether the rules together cover all of the call. */
export function covers(rules: readonly Rule[], approved: readonly Approved[], call: ToolCall): boolean {
  const own = rules.filter((rule) => wildcard(rule.tool, call.tool));
  if (own.some((rule) => rule.pattern === undefined || rule.pattern === "*")) return true;
  const given = approved.filter((each) => each.tool === call.tool);
  const patterns = own.flatMap((rule) => rule.pattern ?? []);
  const { subject, cwd } = call;
  if (subject.kind === "command") {
    const exact = new Set(given.map((each) => each.exact));
    if (exact.has(subject.command)) return true;
    const commands = simpleCommands(subject.command);
    if (commands === undefined || commands.length === 0) return false;
    return commands.every((text) => exact.has(text) || patterns.some((pattern) => matchesCommand(pattern, text)));
  }
  if (given.some(({ exact, path, files }) => exact === undefined && path === undefined && files === undefined)) return true;
  if (subject.kind === "paths") {
    return subject.paths.every(({ real }) => {
      const approvedPath = given.some(({ path, files }) => path === real || (files === "project" && isOrdinary(cwd, real)));
      return approvedPath || patterns.some((pattern) => matchesPath(pattern, real, cwd));
    });
  }
  const text = subject.kind === "url" ? subject.url : subject.text;
  return given.some((each) => each.exact === text) || patterns.some((pattern) => wildcard(pattern, text));
}
