// Which tool calls need a yes. A gate at the seal: other gates have spoken, the arguments are final, and a call that something
// else has blocked asks nobody. Order: deny rules, mode, allow rules and earlier answers, the person.
import { realpath } from "node:fs/promises";
import { join } from "node:path";
import {
  type Context,
  defineHook,
  defineSlot,
  errorMessage,
  Launch,
  notice,
  type ToolCallValue,
  ToolsApproval,
  ToolsApprovalMode,
  toolSeal,
  type Veto,
  z,
} from "mortise/extension";
import { simpleCommands } from "./_commands.ts";
import { Approved, covers, findTouching, rulesOf, type ToolCall } from "./_rules.ts";
import { approvedIn, remember } from "./_store.ts";
import { isOrdinary, subjectOf } from "./_subject.ts";

/** 5 minutes: DESIGN §9 "a gate's dialog". */
const DIALOG_MS = 300_000;
const MAX_SHOWN = 4000;
const APPROVE = "Approve";
const FOR_SESSION = "Approve for this session";
const FOR_PROJECT = "Always in this project";
const DENY = "Deny";

const ApprovedHere = defineSlot({ name: "approvals", schema: z.array(Approved), initial: (): Approved[] => [] });

type Mode = "plan" | "ask" | "auto-edit" | "yolo";

const gate = defineHook(
  toolSeal,
  async (value, ctx): Promise<Veto | undefined> => {
    const mode: Mode = ctx.setting(ToolsApprovalMode);
    const rules = rulesOf(ctx.setting(ToolsApproval));
    if (mode === "yolo" && rules.length === 0) return undefined;
    const cwd = await realpath(value.conversation.cwd).catch(() => value.conversation.cwd);
    const call: ToolCall = { tool: value.toolName, subject: await subjectOf(value.toolName, value.args, cwd), cwd };
    const of = (verdict: string) => rules.filter((rule) => rule.verdict === verdict);
    const denied = findTouching(of("deny"), call);
    if (denied !== undefined) return block(`Tool call denied by the rule ${denied.text} of tools.approval`);
    const prompts = of("prompt");
    const named = findTouching(
      prompts.filter((rule) => rule.pattern !== undefined),
      call,
    );
    const asked = named ?? findTouching(prompts, call);
    const byMode = modeSays(mode, value, call, ctx);
    if (byMode === "block")
      return block(`Tool call denied: in plan mode only reading is possible, and ${call.tool} is more than that`);
    if (byMode === "pass" && asked === undefined) return undefined;
    const earlier = await approvedEarlier(ctx, value, call);
    // What a person approved covers all rules that ask; an allow rule covers only those without a pattern.
    if (covers(named === undefined ? of("allow") : [], earlier, call)) return undefined;
    return askPerson(ctx, value, call, asked?.text ?? `tools.approvalMode ${mode}`);
  },
  { priority: 100 },
);

export default [ApprovedHere, gate];

/** `pass`, `block`, or undefined: somebody has to say yes. */
function modeSays(mode: Mode, value: ToolCallValue, call: ToolCall, ctx: Context): "pass" | "block" | undefined {
  const { subject } = call;
  const web = call.tool === "web_search" || (subject.kind === "url" && /^https?:/i.test(subject.url));
  const { readOnly } = ctx.registry.get("tool", call.tool)?.definition ?? {};
  const reads = typeof readOnly === "function" ? readOnly(value.args) : readOnly === true;
  if (mode === "plan") return !reads ? "block" : web ? undefined : "pass";
  // The call that started a subagent was approved (agent-semantics §3.5 "approval mode bypass").
  if (mode === "yolo" || value.conversation.isSubagent) return "pass";
  if (reads && !web) return "pass";
  const edits = mode === "auto-edit" && (call.tool === "write" || call.tool === "edit") && subject.kind === "paths";
  return edits && subject.paths.length > 0 && subject.paths.every(({ real }) => isOrdinary(call.cwd, real)) ? "pass" : undefined;
}

async function approvedEarlier(ctx: Context, value: ToolCallValue, call: ToolCall): Promise<Approved[]> {
  const here = value.conversation.slot(ApprovedHere).get();
  try {
    return [...here, ...(await approvedIn(storeOf(ctx), call.cwd))];
  } catch (error) {
    ctx.log.warn("Approvals of projects cannot be read", { error: errorMessage(error) });
    return [...here];
  }
}

async function askPerson(ctx: Context, value: ToolCallValue, call: ToolCall, why: string): Promise<Veto | undefined> {
  const { conversation } = value;
  if (!ctx.hasUI || !conversation.isAttached) {
    return block(`Tool call denied: ${call.tool} needs approval (${why}), and nobody can answer`);
  }
  const lasting = lastingApproval(call);
  const scope = lasting.map(describe).join("; ");
  const options = [APPROVE, FOR_SESSION, FOR_PROJECT, DENY];
  const optionDetails = [
    { description: "This call only" },
    { description: `Until the session ends: ${scope}` },
    { description: `From now on in ${call.cwd}: ${scope}` },
    { description: "The model is told that the call was denied" },
  ];
  const title = `Allow ${call.tool}?\n${shownArguments(call, value.args)}`;
  const answer = await ctx.ui.select({ title, options, optionDetails }, { timeout: DIALOG_MS, signal: value.signal });
  if (answer === FOR_SESSION || answer === FOR_PROJECT) {
    conversation.slot(ApprovedHere).update((known) => [...known, ...lasting]);
  }
  if (answer === FOR_PROJECT) {
    await remember(storeOf(ctx), call.cwd, lasting).catch((error: unknown) => {
      const message = `The approval could not be stored and holds for this session only: ${errorMessage(error)}`;
      conversation.emit(notice, { level: "warning", message });
    });
  }
  if (answer === APPROVE || answer === FOR_SESSION || answer === FOR_PROJECT) return undefined;
  return block(`Tool call denied by user: ${call.tool}`);
}

/** What an answer for more than this call covers: these commands, files of the project, or this very argument. */
function lastingApproval({ tool, subject, cwd }: ToolCall): Approved[] {
  switch (subject.kind) {
    case "command":
      return (simpleCommands(subject.command) ?? [subject.command]).map((exact) => ({ tool, exact }));
    case "paths":
      if (subject.paths.every(({ real }) => isOrdinary(cwd, real))) return [{ tool, files: "project" }];
      return subject.paths.map(({ real }) => ({ tool, path: real }));
    case "url":
      return [{ tool, exact: subject.url }];
    case "text":
      return [{ tool }];
  }
}

function describe({ tool, exact, path, files }: Approved): string {
  if (exact !== undefined) return `${tool} with exactly ${plain(exact)}`;
  if (files !== undefined) return `${tool} of files of the project`;
  return path === undefined ? `every call of ${tool}` : `${tool} of ${plain(path)}`;
}

/** All that matters, in full: a person must not approve what is hidden behind a cut or an escape sequence. */
function shownArguments({ subject }: ToolCall, args: Readonly<Record<string, unknown>>): string {
  if (subject.kind === "command") return plain(subject.command);
  if (subject.kind === "url") return plain(subject.url);
  const { path: _path, ...rest } = args;
  const paths = subject.kind === "paths" ? subject.paths.map(({ real }) => plain(real)) : [];
  return [...new Set(paths), Object.keys(rest).length > 0 ? plain(JSON.stringify(rest)) : ""]
    .filter((line) => line !== "")
    .join("\n");
}

/** Control characters and those that turn the direction of text are spelled out. */
function plain(text: string): string {
  const spelled = text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
  if (spelled.length <= MAX_SHOWN) return spelled;
  const half = MAX_SHOWN / 2;
  return `${spelled.slice(0, half)}\n[… ${spelled.length - MAX_SHOWN} characters not shown …]\n${spelled.slice(-half)}`.toWellFormed();
}

const storeOf = (ctx: Context) => join(ctx.use(Launch).home, "approvals.json");
const block = (reason: string): Veto => ({ block: true, reason });
