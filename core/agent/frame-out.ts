// Where a conversation's frames go: first to the host, then to the runtime's own listeners, then to the handlers of extensions,
// which see them in order and never hold one up.
import type { Frame } from "../../protocol/frame.ts";
import type { AgentMessage } from "../../protocol/message.ts";
import type { Context } from "../kernel/context.ts";
import type { ConversationHandle } from "./conversation-types.ts";
import type { AgentEnvironment } from "./environment.ts";
import { frameEmitted, messageEnded } from "./hook-points.ts";

/** Frames a slow handler may lag behind before message_update frames in between are dropped for it. */
const MAX_LAG = 32;

export class FrameOut {
  readonly #env: AgentEnvironment;
  readonly #conversation: ConversationHandle;
  readonly #ctx: () => Context;
  readonly #listeners = new Set<(frame: Frame) => void>();
  readonly #backlog: { frame: Frame; ended: AgentMessage | undefined }[] = [];
  #pumping = false;
  attached = false;

  constructor(env: AgentEnvironment, conversation: ConversationHandle, ctx: () => Context) {
    this.#env = env;
    this.#conversation = conversation;
    this.#ctx = ctx;
  }

  /** @param ended the message that became final with this frame. */
  emit(frame: Frame, scope: "conversation" | "process", ended?: AgentMessage): void {
    const wanted = this.attached && this.#env.wants?.(frame.type) !== false;
    if (wanted || scope === "process") this.#env.sendFrame(frame);
    for (const listener of [...this.#listeners]) {
      try {
        listener(frame);
      } catch (error) {
        this.#env.reportError("mortise", frame.type, error);
      }
    }
    this.#observe(frame, ended);
  }

  listen(listener: (frame: Frame) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #observe(frame: Frame, ended: AgentMessage | undefined): void {
    const ctx = this.#ctx();
    if (!ctx.hasHooks(frameEmitted) && (ended === undefined || !ctx.hasHooks(messageEnded))) return;
    const last = this.#backlog.at(-1)?.frame.type;
    if (frame.type === "message_update" && last === "message_update" && this.#backlog.length >= MAX_LAG) this.#backlog.pop();
    this.#backlog.push({ frame, ended });
    if (!this.#pumping) void this.#pump(ctx);
  }

  async #pump(ctx: Context): Promise<void> {
    this.#pumping = true;
    const conversation = this.#conversation;
    try {
      for (let next = this.#backlog.shift(); next !== undefined; next = this.#backlog.shift()) {
        if (ctx.hasHooks(frameEmitted)) await ctx.hook(frameEmitted, { conversation, frame: next.frame });
        if (next.ended !== undefined) await ctx.hook(messageEnded, { conversation, message: next.ended });
      }
    } finally {
      this.#pumping = false;
    }
  }
}
