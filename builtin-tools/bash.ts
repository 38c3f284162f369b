import {
  BashAutoBackgroundEnabled,
  BashAutoBackgroundThresholdMs,
  CommandError,
  defineTool,
  Jobs,
  Sandbox,
  Shell,
  type ShellResult,
  type ToolContext,
  ToolError,
  type ToolResult,
  ToolsSandbox,
  textResult,
  z,
} from "mortise/extension";
import { type BashCall, present, presentMoved, textOf } from "./_bash-result.ts";
import { resolvePath } from "./_path.ts";

const DEFAULT_SECONDS = 300;
const MAX_SECONDS = 3600;
/** Less than what the loop waits for a tool that was aborted, so that the output so far is not lost. */
const ABORT_GRACE_MS = 40;

const params = z.object({
  command: z.string().min(1).describe("Shell command, run by bash"),
  description: z.string().optional().describe("What the command does, in five to ten words"),
  timeout: z
    .number()
    .optional()
    .describe(`Seconds after which the command is ended: ${DEFAULT_SECONDS} by default, 1 to ${MAX_SECONDS}, 0 for no limit`),
  cwd: z.string().optional().describe("Directory to run in; the session's directory by default"),
  env: z.record(z.string(), z.string()).optional().describe("Further environment variables"),
  async: z
    .boolean()
    .optional()
    .describe("Go on in the background at once; the result comes by itself, the job tool waits or cancels"),
});
type Params = z.infer<typeof params>;

export default defineTool<Params>({
  name: "bash",
  description: [
    "Run a shell command with bash and return its output (stdout and stderr in order).",
    "Every call starts in the session's directory; `cd` does not last. There is no standard input: nothing can be asked or confirmed.",
    "The call returns when the shell exits; processes started with `&` go on in the background until the daemon ends.",
    "Long output is cut in the middle and kept complete in a file whose path is given.",
    "Prefer read, grep, find and ls to cat, grep, find and ls.",
  ].join("\n"),
  promptSnippet: "Run shell commands",
  params,
  async run(ctx, args) {
    const limit = clampTimeout(args.timeout);
    const notes = limit.note === undefined ? [] : [limit.note];
    const call = { started: performance.now(), seconds: limit.seconds, requested: args.timeout, notes };
    const command = new Command(ctx, args, call, await sandboxFor(ctx));
    if (args.async === true) return command.detachAtOnce();
    const thresholdMs = autoBackgroundAfter(ctx, limit.seconds);
    if (thresholdMs === undefined) return present(await command.result, call);
    return (await command.endedWithin(thresholdMs)) ?? command.detachOrWait();
  },
});

/** A command that can be moved to the background while it runs. */
class Command {
  readonly #ctx: ToolContext;
  readonly #args: Params;
  readonly #call: BashCall;
  readonly #wrap: readonly string[] | undefined;
  readonly #control = new AbortController();
  #running: Promise<ShellResult> | undefined;
  #tail = "";
  #foreground = true;
  #ended: ShellResult | undefined;

  constructor(ctx: ToolContext, args: Params, call: BashCall, wrap: readonly string[] | undefined) {
    this.#ctx = ctx;
    this.#args = args;
    this.#call = call;
    this.#wrap = wrap;
  }

  /** Starts it, once. */
  get result(): Promise<ShellResult> {
    this.#running ??= this.#run();
    return this.#running;
  }

  async #run(): Promise<ShellResult> {
    const { command, cwd, env } = this.#args;
    const ctx = this.#ctx;
    if (this.#foreground) ctx.signal.addEventListener("abort", this.#onAbort, { once: true });
    if (this.#foreground && ctx.signal.aborted) this.#onAbort();
    try {
      this.#ended = await ctx.use(Shell).run({
        command,
        cwd: cwd === undefined ? ctx.cwd : resolvePath(ctx.cwd, cwd),
        env,
        timeoutMs: this.#call.seconds * 1000,
        signal: this.#control.signal,
        abortGraceMs: ABORT_GRACE_MS,
        wrap: this.#wrap,
        // 002_…/000_…: bash runs in a terminal under plain rpc; rpc-ui disables it.
        pty: ctx.mode === "rpc",
        artifactPath: () => ctx.conversation.log.artifacts.create("bash"),
        onUpdate: (tail) => {
          this.#tail = tail;
          if (this.#foreground) ctx.update(textResult(tail));
        },
      });
      return this.#ended;
    } finally {
      ctx.signal.removeEventListener("abort", this.#onAbort);
    }
  }

  readonly #onAbort = () => this.#control.abort(this.#ctx.signal.reason);

  async endedWithin(ms: number): Promise<ToolResult | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
    });
    try {
      await Promise.race([this.result, limit]);
    } finally {
      clearTimeout(timer);
    }
    return this.#ended === undefined ? undefined : present(this.#ended, this.#call);
  }

  /** Goes on as a job; at the limit of jobs the call waits as if nothing had been tried (agent-semantics §3.2). */
  async detachOrWait(): Promise<ToolResult> {
    // Exactly one of call and job gives the result: the job, once it exists.
    if (this.#ended === undefined && !this.#ctx.signal.aborted) {
      try {
        return this.detach("threshold");
      } catch (error) {
        if (!CommandError.is(error)) throw error;
      }
    }
    return present(await this.result, this.#call);
  }

  /** @throws {CommandError} when no job can be started */
  detach(reason: "threshold" | "requested"): ToolResult {
    const { command, description } = this.#args;
    const job = this.#ctx.use(Jobs).start({
      conversation: this.#ctx.conversation,
      type: "bash",
      label: oneLine(description ?? command),
      run: async (signal) => {
        this.#foreground = false;
        signal.addEventListener("abort", () => this.#control.abort(signal.reason), { once: true });
        if (signal.aborted) this.#control.abort(signal.reason);
        const result = present(await this.result, this.#call);
        return { text: textOf(result), failed: result.isError === true, details: result.details };
      },
    });
    this.#ctx.signal.removeEventListener("abort", this.#onAbort);
    return presentMoved(this.#tail, this.#call, { id: job.id, reason });
  }

  /** @throws {ToolError} when no job can be started; the command has not run then */
  detachAtOnce(): ToolResult {
    try {
      return this.detach("requested");
    } catch (error) {
      throw CommandError.is(error) ? new ToolError(error.message, { cause: error }) : error;
    }
  }
}

/** After how many ms a command moves to the background: before its time limit in any case; undefined when it does not. */
function autoBackgroundAfter(ctx: ToolContext, seconds: number): number | undefined {
  if (!ctx.setting(BashAutoBackgroundEnabled)) return undefined;
  if (ctx.tryUse(Jobs)?.allowed(ctx.conversation) !== true) return undefined;
  const wanted = ctx.setting(BashAutoBackgroundThresholdMs);
  return seconds === 0 ? wanted : Math.max(0, Math.min(wanted, (seconds - 1) * 1000));
}

/** What the shell runs inside. A setting that nobody can fulfil is a refusal, never a run without it. */
async function sandboxFor(ctx: ToolContext): Promise<readonly string[] | undefined> {
  const mode = ctx.setting(ToolsSandbox);
  if (mode === "off") return undefined;
  const sandbox = ctx.tryUse(Sandbox);
  if (sandbox === undefined) {
    throw new ToolError(`Cannot run the command: tools.sandbox is ${mode}, but the sandbox extension is not loaded`);
  }
  return sandbox.wrap(mode, ctx);
}

function clampTimeout(requested: number | undefined): { seconds: number; note: string | undefined } {
  if (requested === undefined) return { seconds: DEFAULT_SECONDS, note: undefined };
  if (requested === 0) return { seconds: 0, note: undefined };
  const seconds = Number.isFinite(requested) ? Math.min(MAX_SECONDS, Math.max(1, requested)) : DEFAULT_SECONDS;
  return { seconds, note: seconds === requested ? undefined : `The time limit ${requested} s was taken as ${seconds} s` };
}

const oneLine = (text: string) => (text.length > 80 ? `${text.slice(0, 79)}…` : text).replace(/\s+/g, " ");
