import {
  type BashExecutionMessage,
  CommandError,
  type Context,
  defineCommand,
  Shell,
  type ShellResult,
  ToolError,
  z,
} from "mortise/extension";
import { RpcRuns } from "./_rpc-runs.ts";

/** 300 s: what the model's tool has by default. */
const TIMEOUT_SECONDS = 300;

const params = z.object({
  command: z.string().min(1).describe("Run by bash in the session's directory; `cd` lasts until the next command"),
  excludeFromContext: z.boolean().optional().describe("Keep the run out of what the model sees"),
});

const result = z.object({
  output: z.string().describe("stdout and stderr in order, without control characters; beginning and end when truncated"),
  exitCode: z.number().int().optional().describe("Absent when the command was aborted or timed out"),
  cancelled: z.boolean().describe("Aborted or timed out"),
  timedOut: z.boolean().optional(),
  truncated: z.boolean(),
  totalLines: z.number().int(),
  totalBytes: z.number().int(),
  outputLines: z.number().int(),
  outputBytes: z.number().int(),
  fullOutputPath: z.string().optional().describe("The complete output when it is truncated"),
  workingDir: z.string().optional().describe("The shell's directory afterwards"),
  notes: z.array(z.string()).optional().describe("E.g. processes left running in the background"),
});

export default defineCommand({
  name: "bash",
  group: "Bash",
  summary: "Runs a shell command in the session's directory and adds it to the conversation",
  params,
  result,
  concurrency: "concurrent",
  source: "both",
  example: {
    params: { command: "echo hello" },
    result: {
      output: "hello\n",
      exitCode: 0,
      cancelled: false,
      truncated: false,
      totalLines: 1,
      totalBytes: 6,
      outputLines: 1,
      outputBytes: 6,
      workingDir: "/home/me/project",
    },
  },
  async run(ctx, { command, excludeFromContext }) {
    // The conversation at the start: a session switched meanwhile must not get the record.
    const conversation = ctx.conversation;
    const shell = ctx.use(Shell);
    const run = ctx.use(RpcRuns).begin(conversation.id);
    try {
      const ended = await shell.run({
        command,
        cwd: conversation.cwd,
        timeoutMs: TIMEOUT_SECONDS * 1000,
        signal: AbortSignal.any([run.signal, ctx.signal, conversation.signal]),
        session: conversation.id,
        artifactPath: () => conversation.log.artifacts.create("bash"),
      });
      const answer = toResult(ended);
      record(conversation, { ...answer, command, excludeFromContext });
      return answer;
    } catch (error) {
      if (ToolError.is(error)) throw new CommandError(error.message, undefined, { cause: error });
      throw error;
    } finally {
      run.done();
    }
  },
});

function toResult(ended: ShellResult): z.infer<typeof result> {
  const { notes, cancelled, timedOut, output, ...rest } = ended;
  const stop = timedOut ? `[Command timed out after ${TIMEOUT_SECONDS} seconds]\n` : cancelled ? "[Command cancelled]\n" : "";
  return {
    ...rest,
    output: stop + output,
    cancelled: cancelled || timedOut,
    ...(timedOut ? { timedOut } : {}),
    ...(notes.length > 0 ? { notes: [...notes] } : {}),
  };
}

function record(
  conversation: Context["conversation"],
  run: z.infer<typeof result> & { command: string; excludeFromContext: boolean | undefined },
): void {
  const message: BashExecutionMessage = {
    role: "bashExecution",
    command: run.command,
    output: run.notes === undefined ? run.output : `${run.output.replace(/\n?$/, "\n")}[${run.notes.join("; ")}]`,
    cancelled: run.cancelled,
    truncated: run.truncated,
    timestamp: Date.now(),
    ...(run.exitCode === undefined ? {} : { exitCode: run.exitCode }),
    ...(run.fullOutputPath === undefined ? {} : { fullOutputPath: run.fullOutputPath }),
    ...(run.excludeFromContext ? { excludeFromContext: true } : {}),
  };
  conversation.recordBash(message);
}
