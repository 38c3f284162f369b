// Finds out how one prompt ended. A daemon has four ways to say so: the answer itself, `prompt_result`, the `agent_end` of its run,
// and a failure with the same id after the answer.
import type { Frame } from "../frame.ts";
import type { HostError } from "./errors.ts";
import { isRecord } from "./is-record.ts";
import { failureOf } from "./pending.ts";
import type { PromptOutcome } from "./types.ts";

/** The messages of the run that streams, kept because a v1 daemon may leave them out of a long `agent_end`. */
export class RunLog {
  #messages: Record<string, unknown>[] = [];
  #last: readonly Record<string, unknown>[] = [];

  accept(frame: Frame): void {
    const { message } = frame;
    if (frame.type === "agent_start") this.#messages = [];
    else if (frame.type === "message_end" && isRecord(message)) this.#messages.push(message);
    else if (frame.type === "agent_end") {
      this.#last = this.#complete(frame);
      if (frame["willContinue"] !== true) this.#messages = [];
    }
  }

  /** All messages of the run that ended last. */
  get last(): readonly Record<string, unknown>[] {
    return this.#last;
  }

  #complete(frame: Frame): readonly Record<string, unknown>[] {
    const { messages, messageCount } = frame;
    const given = Array.isArray(messages) ? messages.filter(isRecord) : [];
    const missing = typeof messageCount === "number" ? messageCount - given.length : 0;
    return missing > 0 ? [...this.#messages.slice(0, missing), ...given] : given;
  }
}

/** Watches from before the prompt is sent until it is over. */
export class PromptWatch {
  readonly outcome: Promise<PromptOutcome>;
  readonly #id: string;
  readonly #queued: boolean;
  readonly #run: RunLog;
  readonly #resolve: (outcome: PromptOutcome) => void;
  readonly #reject: (error: HostError) => void;
  #acknowledged = false;
  #ownRun = false;
  #ownRunEnded = false;

  /** `queued`: the prompt may join a run that streams already, so that run's end is its end. */
  constructor(id: string, queued: boolean, run: RunLog) {
    this.#id = id;
    this.#queued = queued;
    this.#run = run;
    let resolveOutcome: (outcome: PromptOutcome) => void = () => {};
    let rejectOutcome: (error: HostError) => void = () => {};
    this.outcome = new Promise((resolve, reject) => {
      resolveOutcome = resolve;
      rejectOutcome = reject;
    });
    this.outcome.catch(() => {});
    this.#resolve = resolveOutcome;
    this.#reject = rejectOutcome;
  }

  fail(error: HostError): void {
    this.#reject(error);
  }

  /** Takes every frame, after `RunLog` has. */
  accept(frame: Frame): void {
    if (frame.type === "agent_start") this.#ownRun = true;
    else if (frame.type === "agent_end" && frame["willContinue"] !== true) this.#runEnded();
    else if (frame["id"] !== this.#id) return;
    else if (frame.type === "prompt_result") this.#result(frame);
    else if (frame.type === "response") this.#answered(frame);
  }

  #answered(frame: Frame): void {
    if (frame["success"] !== true) return this.#reject(failureOf(frame, "prompt"));
    this.#acknowledged = true;
    const { data } = frame;
    if (isRecord(data) && data["agentInvoked"] === false) this.#resolve({ agentInvoked: false, status: undefined, messages: [] });
    // The answer may come after the run (a slash command that ran one, or an older daemon's skills).
    else if (this.#ownRunEnded) this.#finish(undefined);
  }

  #runEnded(): void {
    if (this.#ownRun) this.#ownRunEnded = true;
    if (this.#acknowledged && (this.#ownRun || this.#queued)) this.#finish(undefined);
  }

  #result(frame: Frame): void {
    const { agentInvoked, status } = frame;
    const text = typeof status === "string" ? status : undefined;
    if (agentInvoked === true) this.#finish(text);
    else this.#resolve({ agentInvoked: false, status: text, messages: [] });
  }

  #finish(status: string | undefined): void {
    this.#resolve({ agentInvoked: true, status, messages: this.#run.last });
  }
}
