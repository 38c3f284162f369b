// What the model and the host are told about a command that has ended, or goes on in the background.
import { basename } from "node:path";
import { type ShellResult, type ToolResult, textResult } from "mortise/extension";

export interface BashCall {
  /** `performance.now()` at the start. */
  readonly started: number;
  /** Time limit in seconds; 0 means none. */
  readonly seconds: number;
  readonly requested: number | undefined;
  /** What was made of the arguments. */
  readonly notes: readonly string[];
}

export function present(ended: ShellResult, call: BashCall): ToolResult {
  const { output, exitCode, cancelled, timedOut, truncated, fullOutputPath } = ended;
  const failed = cancelled || timedOut || exitCode !== 0;
  const artifactId = artifactOf(fullOutputPath);
  const lines: string[] = [];
  if (fullOutputPath !== undefined) lines.push(fullOutput(fullOutputPath));
  if (timedOut) {
    lines.push(
      `Command timed out after ${call.seconds} seconds and was ended. If it waited for input: there is none; pass flags or a here-document`,
    );
  } else if (cancelled) lines.push("Command aborted");
  else if (exitCode !== 0) lines.push(`Command exited with code ${exitCode}`);
  lines.push(...ended.notes, ...call.notes);
  const body = output.trimEnd() === "" ? (failed ? "" : "(no output)") : output.replace(/\n+$/, "");
  return {
    content: [{ type: "text", text: withNotes(body, lines) }],
    details: {
      ...(exitCode === undefined ? {} : { exitCode }),
      ...timesOf(call),
      ...(cancelled ? { cancelled } : {}),
      ...(timedOut ? { timedOut } : {}),
      ...(truncated ? { truncation: truncationOf(ended) } : {}),
      ...(fullOutputPath === undefined ? {} : { fullOutputPath }),
      ...(artifactId === undefined ? {} : { artifactId }),
    },
    ...(failed ? { isError: true } : {}),
  };
}

/** The answer of a call whose command goes on as a job. */
export function presentMoved(tail: string, call: BashCall, job: { id: string; reason: "threshold" | "requested" }): ToolResult {
  const why = job.reason === "threshold" ? "runs long and goes on" : "runs";
  const line = `The command ${why} in the background as ${job.id}. Its result comes by itself when it has ended`;
  return textResult(withNotes(tail.replace(/\n+$/, ""), [line, ...call.notes]), {
    ...timesOf(call),
    async: { state: "running", jobId: job.id, type: "bash", reason: job.reason },
  });
}

export function textOf(result: ToolResult): string {
  return result.content.map((block) => (block.type === "text" ? block.text : "")).join("\n");
}

function withNotes(body: string, notes: readonly string[]): string {
  return [body, notes.map((note) => `[${note}]`).join("\n")].filter((part) => part !== "").join("\n\n");
}

function timesOf(call: BashCall): Record<string, unknown> {
  return {
    wallTimeMs: Math.round(performance.now() - call.started),
    timeoutSeconds: call.seconds,
    ...(call.requested === undefined ? {} : { requestedTimeoutSeconds: call.requested }),
  };
}

function fullOutput(path: string): string {
  const id = artifactOf(path);
  return `Full output: ${path}${id === undefined ? "" : `, also artifact://${id}`}`;
}

/** Outputs are kept as `<id>.<tool>.log` (agent-semantics §1). */
function artifactOf(path: string | undefined): string | undefined {
  return path === undefined ? undefined : /^(\d+)\./.exec(basename(path))?.[1];
}

function truncationOf(ended: ShellResult): Record<string, unknown> {
  const { truncated, totalLines, totalBytes, outputLines, outputBytes } = ended;
  return { truncated, direction: "middle", totalLines, totalBytes, outputLines, outputBytes };
}
