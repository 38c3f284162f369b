// One piece of accepted work: a prompt or a continuation, from the moment it is reserved to its agent_end.
import { setMaxListeners } from "node:events";
import type { AgentMessage } from "../../protocol/message.ts";
import type { Invocation } from "../kernel/context.ts";
import { CommandError, errorMessage } from "../kernel/errors.ts";
import type { RunOutcome, Submission } from "./conversation-types.ts";

/** An abort with a text for the message it ends. Libraries recognise the name. */
export function abortError(reason: string): Error {
  const error = new Error(reason);
  error.name = "AbortError";
  return error;
}

/** Many calls and handlers of one run listen to one signal; that is no leak, so Node is not to warn of one. */
export function unlimited(controller: AbortController): AbortController {
  setMaxListeners(0, controller.signal);
  return controller;
}

export class Work {
  readonly controller = unlimited(new AbortController());
  readonly invocation: Invocation | undefined;
  readonly submission: Submission;
  /** Makes the messages that start the run; undefined means that an extension handled the input. */
  readonly prepare: (signal: AbortSignal) => Promise<AgentMessage[] | undefined>;
  #accept: () => void = () => {};
  #refuse: (error: unknown) => void = () => {};
  #settle: (outcome: RunOutcome) => void = () => {};

  constructor(prepare: Work["prepare"], invocation: Invocation | undefined) {
    this.prepare = prepare;
    this.invocation = invocation;
    const accepted = new Promise<void>((resolve, reject) => {
      this.#accept = resolve;
      this.#refuse = reject;
    });
    // Whoever is interested handles it; nobody has to.
    accepted.catch(() => {});
    const settled = new Promise<RunOutcome>((resolve) => {
      this.#settle = resolve;
    });
    this.submission = Object.assign(accepted, { settled });
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }
  accept(): void {
    this.#accept();
  }
  refuse(error: unknown, outcome: RunOutcome): void {
    this.#refuse(error);
    this.#settle(outcome);
  }
  settle(outcome: RunOutcome): void {
    this.#accept();
    this.#settle(outcome);
  }
  abort(reason: string): void {
    this.controller.abort(abortError(reason));
  }
}

/** Work that needs no run of its own: it is queued, handled, or refused before it began. */
export function submissionOf(outcome: Promise<RunOutcome>): Submission {
  const settled = outcome.catch(
    (error: unknown): RunOutcome => ({ status: "error", messages: [], errorMessage: errorMessage(error) }),
  );
  const accepted = outcome.then(() => {});
  accepted.catch(() => {});
  return Object.assign(accepted, { settled });
}

/** Refuses later than the acknowledgement of the command at hand: late failures come second (000_…, "Edge behavior"). */
export function refused(error: Error): Submission {
  return submissionOf(new Promise((_resolve, reject) => setImmediate(() => reject(error))));
}

/** protocol-facts §1.3. */
export function busyError(): CommandError {
  return new CommandError(
    "Agent is already processing. Use steer() or followUp() to queue messages, or wait for completion.",
    "busy",
  );
}

export function closedError(): CommandError {
  return new CommandError("The conversation is closed", "not_found");
}

/** A wait between two attempts that can be given up. */
export class RetryWait {
  #giveUp: (() => void) | undefined;

  /** True when there was a wait to give up. */
  cancel(): boolean {
    const waiting = this.#giveUp !== undefined;
    this.#giveUp?.();
    return waiting;
  }

  /** False when it was given up. */
  wait(delayMs: number, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (goOn: boolean) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", giveUp);
        this.#giveUp = undefined;
        resolve(goOn);
      };
      const giveUp = () => end(false);
      const timer = setTimeout(() => end(true), delayMs);
      this.#giveUp = giveUp;
      if (signal.aborted) giveUp();
      else signal.addEventListener("abort", giveUp, { once: true });
    });
  }
}
