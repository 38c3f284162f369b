import { defineTool, Shell, type ShellResult, type ToolResult, textResult, z } from "mortise/extension";
import { resolvePath } from "./_path.ts";

const DEFAULT_SECONDS = 300;
const MAX_SECONDS = 3600;

const params = z.object({
  command: z.string().min(1).describe("Shell command, run by bash"),
  description: z.string().optional().describe("What the command does, in five to ten words"),
  timeout: z
    .number()
    .optional()
    .describe(`Seconds after which the command is ended: ${DEFAULT_SECONDS} by default, 1 to ${MAX_SECONDS}, 0 for no limit`),
  cwd: z.string().optional().describe("Directory to run in; the session's directory by default"),
  env: z.record(z.string(), z.string()).optional().describe("Further environment variables"),
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
    const started = performance.now();
    const ended = await ctx.use(Shell).run({
      command: args.command,
      cwd: args.cwd === undefined ? ctx.cwd : resolvePath(ctx.cwd, args.cwd),
      env: args.env,
      timeoutMs: limit.seconds * 1000,
      signal: ctx.signal,
      // 002_…/000_…: bash runs in a terminal under plain rpc; rpc-ui disables it.
      pty: ctx.mode === "rpc",
      artifactPath: () => ctx.conversation.log.artifacts.create("bash"),
      onUpdate: (tail) => ctx.update(textResult(tail)),
    });
    return present(ended, { started, limit, requested: args.timeout });
  },
});

function clampTimeout(requested: number | undefined): { seconds: number; note: string | undefined } {
  if (requested === undefined) return { seconds: DEFAULT_SECONDS, note: undefined };
  if (requested === 0) return { seconds: 0, note: undefined };
  const seconds = Number.isFinite(requested) ? Math.min(MAX_SECONDS, Math.max(1, requested)) : DEFAULT_SECONDS;
  return { seconds, note: seconds === requested ? undefined : `The time limit ${requested} s was taken as ${seconds} s` };
}

function present(
  ended: ShellResult,
  call: { started: number; limit: ReturnType<typeof clampTimeout>; requested: number | undefined },
): ToolResult {
  const { output, exitCode, cancelled, timedOut, truncated, fullOutputPath } = ended;
  const failed = cancelled || timedOut || exitCode !== 0;
  const lines: string[] = [];
  if (truncated && fullOutputPath !== undefined) lines.push(`Full output: ${fullOutputPath}`);
  if (timedOut) {
    lines.push(
      `Command timed out after ${call.limit.seconds} seconds and was ended. If it waited for input: there is none; pass flags or a here-document`,
    );
  } else if (cancelled) lines.push("Command aborted");
  else if (exitCode !== 0) lines.push(`Command exited with code ${exitCode}`);
  lines.push(...ended.notes);
  if (call.limit.note !== undefined) lines.push(call.limit.note);
  const body = output.trimEnd() === "" ? (failed ? "" : "(no output)") : output.replace(/\n+$/, "");
  const text = [body, lines.map((line) => `[${line}]`).join("\n")].filter((part) => part !== "").join("\n\n");
  return {
    content: [{ type: "text", text }],
    details: {
      ...(exitCode === undefined ? {} : { exitCode }),
      wallTimeMs: Math.round(performance.now() - call.started),
      timeoutSeconds: call.limit.seconds,
      ...(call.requested === undefined ? {} : { requestedTimeoutSeconds: call.requested }),
      ...(cancelled ? { cancelled } : {}),
      ...(timedOut ? { timedOut } : {}),
      ...(truncated ? { truncation: truncationOf(ended) } : {}),
      ...(fullOutputPath === undefined ? {} : { fullOutputPath }),
    },
    ...(failed ? { isError: true } : {}),
  };
}

function truncationOf(ended: ShellResult): Record<string, unknown> {
  const { truncated, totalLines, totalBytes, outputLines, outputBytes } = ended;
  return { truncated, direction: "middle", totalLines, totalBytes, outputLines, outputBytes };
}
