// Running shell commands: own session and process group, whole-tree kill, bounded output. Shared by the bash tool, the RPC
// command and background jobs. Implemented by extensions/shell.
import { createToken } from "../kernel/services.ts";

export interface ShellRun {
  command: string;
  cwd: string;
  env?: Record<string, string> | undefined;
  /** 0 or undefined: no limit. */
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
  /**
   * How long, in ms, an aborted run may take to end before its result is given with the output so far; ending the tree goes on
   * behind it. Undefined: the result waits until nothing is left.
   */
  abortGraceMs?: number | undefined;
  /** Program and arguments that run the shell, e.g. a sandbox; the shell's own command line is appended. */
  wrap?: readonly string[] | undefined;
  /** A terminal instead of pipes; falls back to pipes with a note when node-pty is missing. */
  pty?: boolean | undefined;
  /** Where the full output goes once it exceeds the tail kept in memory; undefined keeps only the tail. */
  artifactPath?: (() => string) | undefined;
  /** Throttled to one per 100 ms; `tail` is a snapshot, not a delta. */
  onUpdate?: ((tail: string) => void) | undefined;
  /** Keeps the working directory of the previous run of this key (`cd` persists). */
  session?: string | undefined;
}

export interface ShellResult {
  /** Sanitised tail of stdout and stderr. */
  output: string;
  /** Absent when cancelled or timed out. */
  exitCode?: number | undefined;
  cancelled: boolean;
  timedOut: boolean;
  truncated: boolean;
  totalLines: number;
  totalBytes: number;
  outputLines: number;
  outputBytes: number;
  /** The complete output, when it did not fit. */
  fullOutputPath?: string | undefined;
  /** The shell's directory afterwards. */
  workingDir: string;
  /** Notes for the model: processes left running and ended. */
  notes: readonly string[];
}

export interface Shell {
  /** Resolves when the shell exits, whatever its children hold open; never rejects for a failing command. */
  run(run: ShellRun): Promise<ShellResult>;
  /** Ends every run, TERM then KILL after 1 s, and what earlier runs left in the background. */
  killAll(): Promise<void>;
}

export const Shell = createToken<Shell>("shell");
