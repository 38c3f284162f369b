// How input becomes messages: blocks, the `input` handlers, and the order in which queued input arrives.
import type { InputContent, TextContent } from "../../protocol/content.ts";
import type { UserMessage } from "../../protocol/message.ts";
import type { Context, Invocation } from "../kernel/context.ts";
import type { ConversationHandle, RunOutcome, Submission, SubmitOptions } from "./conversation-types.ts";
import { input } from "./hook-points.ts";
import { submissionOf } from "./work.ts";

export type Input = string | InputContent[];
type Delivery = "prompt" | "steer" | "followUp";

export interface IntakePort {
  readonly conversation: ConversationHandle;
  context(change: { invocation?: Invocation | undefined }): Context;
  now(): number;
  /** Puts a message into its queue and starts a run when nothing else is going on. Gives the end of the run that takes it. */
  queue(kind: "steering" | "followUp", message: UserMessage): Promise<RunOutcome>;
}

export class Intake {
  readonly #port: IntakePort;
  /** Keeps queued input in order while handlers look at it. */
  #tail: Promise<unknown> | undefined;
  /** Prompts that came while the conversation was taken. */
  #held: { raw: Input; options: SubmitOptions; started: (submission: Submission) => void }[] = [];

  constructor(port: IntakePort) {
    this.#port = port;
  }

  /** The message of a prompt; undefined when a handler dealt with it. */
  async message(raw: Input, options: SubmitOptions, delivery: Delivery): Promise<UserMessage | undefined> {
    const content = await this.#handled(raw, options, delivery);
    if (content === undefined) return undefined;
    const attribution = options.attribution ?? (delivery === "prompt" ? undefined : "user");
    return {
      role: "user",
      content,
      timestamp: this.#port.now(),
      ...(delivery === "steer" ? { steering: true } : {}),
      ...(attribution === undefined ? {} : { attribution }),
    };
  }

  /** Queues behind earlier input. Without handlers the message is in its queue on return. */
  enqueue(raw: Input, options: SubmitOptions, delivery: "steer" | "followUp"): Submission {
    if (options.invocation !== undefined) options.invocation.agentInvoked = true;
    const put = async (): Promise<RunOutcome> => {
      const message = await this.message(raw, options, delivery);
      if (message === undefined) return { status: "handled", messages: [] };
      return queued(this.#port.queue(delivery === "steer" ? "steering" : "followUp", message));
    };
    if (this.#tail === undefined && !this.#hasHandlers(options)) {
      const content = blocksOf(raw, options.images);
      const attribution = options.attribution ?? "user";
      const message: UserMessage = { role: "user", content, timestamp: this.#port.now(), attribution };
      const delivered =
        delivery === "steer"
          ? this.#port.queue("steering", { ...message, steering: true })
          : this.#port.queue("followUp", message);
      return submissionOf(Promise.resolve(queued(delivered)));
    }
    const work = (this.#tail ?? Promise.resolve()).then(put);
    const tail = work
      .catch(() => {})
      .finally(() => {
        if (this.#tail === tail) this.#tail = undefined;
      });
    this.#tail = tail;
    return submissionOf(work);
  }

  /** Accepts a prompt for later (DESIGN §9 "taken"). */
  hold(raw: Input, options: SubmitOptions): Submission {
    if (options.invocation !== undefined) options.invocation.agentInvoked = true;
    let settle: (outcome: RunOutcome | Promise<RunOutcome>) => void = () => {};
    const settled = new Promise<RunOutcome>((resolve) => {
      settle = resolve;
    });
    this.#held.push({ raw, options, started: (submission) => settle(submission.settled) });
    return Object.assign(Promise.resolve(), { settled });
  }

  /** Hands every held prompt on: the first as a prompt, the others as follow-ups of it. False when there is none. */
  release(submit: (raw: Input, options: SubmitOptions) => Submission, busy: boolean): boolean {
    const held = this.#held.splice(0);
    for (const [index, { raw, options, started }] of held.entries()) {
      started(submit(raw, index === 0 && !busy ? options : { ...options, delivery: "followUp" }));
    }
    return held.length > 0;
  }

  /** The conversation is closed: held prompts end as aborted. */
  drop(): void {
    const outcome = Promise.resolve<RunOutcome>({ status: "aborted", messages: [], errorMessage: "The conversation was closed" });
    for (const { started } of this.#held.splice(0)) started(Object.assign(Promise.resolve(), { settled: outcome }));
  }

  #hasHandlers(options: SubmitOptions): boolean {
    return options.skipInputHook !== true && this.#port.context({}).hasHooks(input);
  }

  /** The content after the `input` handlers; undefined when one of them dealt with it. */
  async #handled(raw: Input, options: SubmitOptions, delivery: Delivery): Promise<InputContent[] | undefined> {
    const content = blocksOf(raw, options.images);
    if (!this.#hasHandlers(options)) return content;
    const { conversation } = this.#port;
    const text = content
      .filter((block): block is TextContent => block.type === "text")
      .map((block) => block.text)
      .join("\n");
    const images = content.filter((block) => block.type === "image");
    const ctx = this.#port.context({ invocation: options.invocation });
    const value = await ctx.hook(input, { conversation, text, images, delivery, attribution: options.attribution ?? "user" });
    if (value === undefined) return content;
    if (value.handled === true) return undefined;
    return value.text === text && value.images === images ? content : blocksOf(value.text, value.images);
  }
}

function queued(delivered: Promise<RunOutcome>): RunOutcome {
  return { status: "queued", messages: [], delivered };
}

function blocksOf(content: string | readonly InputContent[], images: readonly InputContent[] = []): InputContent[] {
  const blocks: readonly InputContent[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return [...blocks, ...images];
}
