// Work of a conversation that goes on after the tool call that began it. Implemented by extensions/jobs; `bash` and `task`
// start jobs, the `job` tool and `/jobs` show them.
import type { ConversationHandle } from "../agent/conversation-types.ts";
import { createToken } from "../kernel/services.ts";

export type JobStatus = "running" | "completed" | "failed" | "cancelled";

/** How the work of a job ended. */
export interface JobResult {
  /** For the model. */
  readonly text: string;
  /** True for a failure that is a result, e.g. an exit code that is not 0. */
  readonly failed?: boolean | undefined;
  readonly details?: unknown;
}

export interface JobStart {
  /** The owner: the result is delivered to it, and its end ends the job. */
  readonly conversation: ConversationHandle;
  readonly type: "bash" | "task";
  /** One line for people and the model. */
  readonly label: string;
  /** True while the work waits for its turn elsewhere: such a job does not count toward `async.maxJobs`. */
  isQueued?(): boolean;
  /** Runs detached from the call that starts it. A throw is a failure of the job. */
  run(signal: AbortSignal): Promise<JobResult>;
}

export interface JobInfo {
  readonly id: string;
  readonly type: "bash" | "task";
  readonly label: string;
  readonly status: JobStatus;
  /** The owner has been given the result. */
  readonly delivered: boolean;
  /** Session id of the owner. */
  readonly ownerId: string;
  /** Unix milliseconds. */
  readonly startTime: number;
  readonly endTime?: number | undefined;
  readonly resultText?: string | undefined;
  readonly errorText?: string | undefined;
}

export interface Jobs {
  /** False with `async.enabled: false` and in subagents: nothing may outlive them. */
  allowed(conversation: ConversationHandle): boolean;
  /**
   * Starts a job. Its result reaches the owner exactly once: through `take`, or as a message that wakes an idle conversation.
   * @throws {CommandError} code busy when `async.maxJobs` run already; code invalid_params when jobs are not allowed.
   */
  start(job: JobStart): JobInfo;
  /** Running ones and those that ended within the last 5 minutes, oldest first. */
  list(conversation?: ConversationHandle): readonly JobInfo[];
  running(conversation: ConversationHandle): number;
  /** Resolves when one of the jobs has ended, or at once when one has already; unknown ids are left out. */
  whenAnyEnded(ids: readonly string[], signal: AbortSignal): Promise<void>;
  /** Resolves when the conversation has no running job and their results are handed over. */
  whenIdle(conversation: ConversationHandle): Promise<void>;
  /** The job as it is now; an ended one counts as delivered from here on. Undefined for an unknown id. */
  take(conversation: ConversationHandle, id: string): JobInfo | undefined;
  /** Ends a running job and waits until it is over, at most 3 s. False when there is none of that id. */
  cancel(conversation: ConversationHandle, id: string): Promise<boolean>;
  /** Ends all of a conversation without telling it; waits as `cancel` does. */
  cancelAll(conversation: ConversationHandle): Promise<void>;
}

export const Jobs = createToken<Jobs>("jobs");
