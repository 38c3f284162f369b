// The jobs of all conversations. Every result is handed over exactly once: what `take` gave is not sent, what was sent is not
// given again by the queue.
import {
  AsyncEnabled,
  AsyncMaxJobs,
  CommandError,
  type Context,
  type ConversationHandle,
  errorMessage,
  type JobInfo,
  type JobResult,
  type JobStart,
  type JobStatus,
  type Jobs,
  redacted,
} from "mortise/extension";

/** How long an ended job can still be looked at (agent-semantics §8). */
const KEPT_MS = 5 * 60_000;
const CANCEL_LIMIT_MS = 3000;

interface Job {
  readonly id: string;
  readonly start: JobStart;
  readonly startTime: number;
  readonly controller: AbortController;
  /** Settles when the work is over; never rejects. */
  over: Promise<void>;
  status: JobStatus;
  endTime?: number;
  text?: string;
  details?: unknown;
  delivered: boolean;
}

export class JobTable implements Jobs {
  readonly #ctx: Context;
  readonly #jobs = new Map<string, Job>();
  #count = 0;

  constructor(ctx: Context) {
    this.#ctx = ctx;
  }

  allowed(conversation: ConversationHandle): boolean {
    return !conversation.isSubagent && !conversation.signal.aborted && this.#ctx.setting(AsyncEnabled);
  }

  start(start: JobStart): JobInfo {
    const { conversation } = start;
    if (!this.allowed(conversation)) {
      throw new CommandError("Jobs are off here: set async.enabled, and start them outside of subagents", "invalid_params");
    }
    this.#prune();
    const limit = this.#ctx.setting(AsyncMaxJobs);
    const running = [...this.#jobs.values()].filter((job) => job.status === "running" && job.start.isQueued?.() !== true).length;
    if (running >= limit) {
      throw new CommandError(
        `${running} jobs are running, the limit is ${limit} (async.maxJobs): wait for one or cancel one`,
        "busy",
      );
    }
    const job: Job = {
      id: `job-${++this.#count}`,
      start,
      startTime: Date.now(),
      controller: new AbortController(),
      over: Promise.resolve(),
      status: "running",
      delivered: false,
    };
    this.#jobs.set(job.id, job);
    job.over = this.#run(job);
    return infoOf(job);
  }

  list(conversation?: ConversationHandle): readonly JobInfo[] {
    this.#prune();
    const jobs = [...this.#jobs.values()];
    return jobs.filter((job) => conversation === undefined || job.start.conversation === conversation).map(infoOf);
  }

  running(conversation: ConversationHandle): number {
    return this.#running(conversation).length;
  }

  async whenAnyEnded(ids: readonly string[], signal: AbortSignal): Promise<void> {
    const jobs = ids.map((id) => this.#jobs.get(id)).filter((job) => job !== undefined);
    if (jobs.length === 0 || signal.aborted || jobs.some((job) => job.status !== "running")) return;
    let stop: () => void = () => {};
    const aborted = new Promise<void>((resolve) => {
      stop = resolve;
      signal.addEventListener("abort", stop, { once: true });
    });
    await Promise.race([aborted, ...jobs.map((job) => job.over)]);
    signal.removeEventListener("abort", stop);
  }

  async whenIdle(conversation: ConversationHandle): Promise<void> {
    for (let jobs = this.#running(conversation); jobs.length > 0; jobs = this.#running(conversation)) {
      await Promise.all(jobs.map((job) => job.over));
    }
  }

  take(conversation: ConversationHandle, id: string): JobInfo | undefined {
    const job = this.#jobs.get(id);
    if (job?.start.conversation !== conversation) return undefined;
    if (job.status !== "running") job.delivered = true;
    return infoOf(job);
  }

  async cancel(conversation: ConversationHandle, id: string): Promise<boolean> {
    const job = this.#jobs.get(id);
    if (job?.start.conversation !== conversation || job.status !== "running") return false;
    await this.#cancel(job);
    return true;
  }

  async cancelAll(conversation: ConversationHandle): Promise<void> {
    await Promise.all(this.#running(conversation).map((job) => this.#cancel(job)));
  }

  /** What ended while the conversation worked. Called when its run ends, and when it has become idle. */
  deliver(conversation: ConversationHandle, how: "wake" | "continue" | "nextTurn"): void {
    const ended = [...this.#jobs.values()].filter(
      (job) => job.start.conversation === conversation && job.status !== "running" && !job.delivered,
    );
    if (ended.length === 0 || conversation.signal.aborted) return;
    for (const job of ended) job.delivered = true;
    const message = {
      customType: "async-result",
      content: ended.map(textOf).join("\n\n"),
      display: true,
      attribution: "agent" as const,
      details: {
        jobs: ended.map((job) => ({
          jobId: job.id,
          type: job.start.type,
          label: job.start.label,
          status: job.status,
          details: job.details,
        })),
      },
    };
    const options = how === "nextTurn" ? { delivery: "nextTurn" as const } : { delivery: "followUp" as const, triggerTurn: true };
    conversation.submitCustom(message, options).catch((error: unknown) => {
      // A run that cannot begin (no model, no credential): the result waits for the next prompt instead.
      if (!conversation.signal.aborted) conversation.queue.add("nextTurn", { role: "custom", ...message, timestamp: Date.now() });
      this.#ctx.log.warn("The result of a job did not wake its conversation", { error: errorMessage(error) });
    });
  }

  async close(): Promise<void> {
    await Promise.all([...this.#jobs.values()].filter((job) => job.status === "running").map((job) => this.#cancel(job)));
  }

  async #run(job: Job): Promise<void> {
    let result: JobResult;
    try {
      result = await job.start.run(job.controller.signal);
    } catch (error) {
      result = { text: errorMessage(error), failed: true };
    }
    // It reaches the conversation beside the results of tools, which are masked on their way.
    result = redacted(this.#ctx, result);
    // A cancelled job stays cancelled, whatever its work says afterwards.
    if (job.status === "running") job.status = result.failed === true ? "failed" : "completed";
    job.text = result.text;
    job.details = result.details;
    job.endTime ??= Date.now();
    this.#hand(job);
  }

  #hand(job: Job): void {
    const { conversation } = job.start;
    if (job.delivered || conversation.signal.aborted) return;
    if (!conversation.isStreaming) return this.deliver(conversation, "wake");
    // The end of the run takes it along (hooks.ts); this is for a job that ends between that and the run's last frame.
    void conversation.whenIdle().then(() => {
      if (!job.delivered && !conversation.isStreaming) this.deliver(conversation, "wake");
    });
  }

  #running(conversation: ConversationHandle): Job[] {
    return [...this.#jobs.values()].filter((job) => job.start.conversation === conversation && job.status === "running");
  }

  async #cancel(job: Job): Promise<void> {
    job.status = "cancelled";
    job.endTime = Date.now();
    job.delivered = true;
    job.controller.abort(new Error("The job was cancelled"));
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CANCEL_LIMIT_MS);
    });
    await Promise.race([job.over, limit]);
    clearTimeout(timer);
  }

  #prune(): void {
    const limit = Date.now() - KEPT_MS;
    for (const [id, job] of this.#jobs) {
      if (job.endTime !== undefined && job.endTime < limit && job.delivered) this.#jobs.delete(id);
    }
  }
}

function textOf(job: Job): string {
  const outcome = job.status === "completed" ? "has ended" : job.status === "failed" ? "has failed" : "was cancelled";
  return `The background job ${job.id} (${job.start.label}) ${outcome}:\n${job.text?.trim() || "(no output)"}`;
}

function infoOf(job: Job): JobInfo {
  const { id, start, status, startTime, endTime, text } = job;
  const said = text === undefined ? {} : status === "completed" ? { resultText: text } : { errorText: text };
  const ended = endTime === undefined ? {} : { endTime };
  return {
    id,
    type: start.type,
    label: start.label,
    status,
    delivered: job.delivered,
    ownerId: start.conversation.log.id,
    startTime,
    ...ended,
    ...said,
  };
}
