// Events that are frames of the conversation: what they are called in the families, and what these add to them.
import {
  type Context,
  type ConversationHandle,
  defineHook,
  type FrameEmitted,
  frameEmitted,
  type Selection,
} from "mortise/extension";
import { call } from "./_events.ts";
import type { Handler, Runtime } from "./_runtime.ts";

type Frame = FrameEmitted["frame"];
type Event = Record<string, unknown>;
const attachedOnly = { attachedOnly: true } as const;

/** One generation's observers of frames: a single hook serves all its handlers, in order of registration. */
export class FrameObservers {
  readonly #runtime: Runtime;
  readonly #handlers = new Map<string, Handler[]>();
  readonly #turns = new WeakMap<object, number>();
  /** The model and level before the next change. */
  readonly #selections = new WeakMap<object, Selection>();
  #remove: (() => void) | undefined;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** An event that is no frame of ours does not occur here: the handler is kept, and this is said once. */
  on(event: string, handler: Handler): () => void {
    this.#runtime.whenLive(() => {
      const frame = FRAME_BEHIND[event] ?? event;
      if (this.#runtime.scope.ctx.registry.get("event", frame) === undefined) {
        this.#runtime.warnOnce(event, `The event ${event} does not occur here`);
      }
    });
    this.#handlers.set(event, [...(this.#handlers.get(event) ?? []), handler]);
    this.#remove ??= this.#runtime.scope.add(
      defineHook(frameEmitted, ({ frame, conversation }, ctx) => this.#told(frame, conversation, ctx), attachedOnly),
    );
    return () => {
      const left = (this.#handlers.get(event) ?? []).filter((each) => each !== handler);
      if (left.length > 0) this.#handlers.set(event, left);
      else this.#handlers.delete(event);
      if (this.#handlers.size > 0) return;
      this.#remove?.();
      this.#remove = undefined;
    };
  }

  #told(frame: Frame, conversation: ConversationHandle, ctx: Context): Promise<void> | undefined {
    const turn = this.#countTurn(frame.type, conversation);
    const before = this.#selections.get(conversation);
    this.#selections.set(conversation, { ...conversation.selection });
    const names = FOLLOWERS[frame.type] ?? [frame.type];
    if (!names.some((name) => this.#handlers.has(name))) return undefined;
    return this.#tell(names, { ...frame, ...turn }, before, ctx);
  }

  /** Remembers the model of a conversation, so that its first change is told with what was before. */
  remember(conversation: ConversationHandle): void {
    this.#selections.set(conversation, { ...conversation.selection });
  }

  async #tell(names: readonly string[], event: Event, before: Selection | undefined, ctx: Context): Promise<void> {
    for (const name of names) {
      for (const handler of this.#handlers.get(name) ?? []) {
        await call(this.#runtime, ctx, handler, renamed(name, event, before));
      }
    }
  }

  /** Turns are counted from 0 within a run. */
  #countTurn(type: string, conversation: object): Event {
    if (type === "agent_start") this.#turns.set(conversation, -1);
    if (type === "turn_start") {
      const index = (this.#turns.get(conversation) ?? -1) + 1;
      this.#turns.set(conversation, index);
      return { turnIndex: index, timestamp: Date.now() };
    }
    return type === "turn_end" ? { turnIndex: Math.max(0, this.#turns.get(conversation) ?? 0) } : {};
  }
}

/** Frame → the events it stands for, in the order they are told. */
const FOLLOWERS: Readonly<Record<string, readonly string[]>> = {
  agent_end: ["agent_end", "agent_settled"],
  model_changed: ["model_changed", "model_select"],
  thinking_level_changed: ["thinking_level_changed", "thinking_level_select"],
};

/** Event → the frame it stands for, where the names differ. */
const FRAME_BEHIND: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(FOLLOWERS).flatMap(([frame, events]) => events.map((event) => [event, frame])),
);

function renamed(name: string, event: Event, before: Selection | undefined): Event {
  if (name === "agent_settled") return { type: name };
  if (name === "model_select") return { type: name, model: event["model"], previousModel: before?.model, source: "set" };
  if (name === "thinking_level_select") {
    return { type: name, level: event["thinkingLevel"], previousLevel: before?.thinkingLevel };
  }
  return { ...event, type: name };
}
