// Messages that wait for a running conversation: steering for the next boundary, follow-ups for the moment it would stop,
// next-turn messages for the next prompt. Taking removes; nothing else does, so a message is delivered exactly once.
import type { AgentMessage } from "../../protocol/message.ts";
import type { InterruptMode, QueueMode, RunOutcome } from "./conversation-types.ts";

export class MessageQueue {
  readonly steering: AgentMessage[] = [];
  readonly followUp: AgentMessage[] = [];
  readonly nextTurn: AgentMessage[] = [];
  steeringMode: QueueMode = "one-at-a-time";
  followUpMode: QueueMode = "one-at-a-time";
  interruptMode: InterruptMode = "immediate";
  /** Set by an abort: follow-ups stay until the user speaks again (protocol-facts §3.5). */
  followUpsParked = false;
  readonly #onSteer = new Set<() => void>();
  /** Who waits for the end of the run that takes a message. */
  readonly #awaited = new Map<AgentMessage, (outcome: RunOutcome) => void>();

  /** `queuedMessageCount` of get_state. */
  get count(): number {
    return visible(this.steering) + visible(this.followUp) + this.nextTurn.length;
  }

  /** True when a run that started now would have something to say. */
  get wakes(): boolean {
    return this.steering.length > 0 || (this.followUp.length > 0 && !this.followUpsParked);
  }

  /** True when calls that have not started are to be skipped. Consumes nothing. */
  get interrupts(): boolean {
    return this.interruptMode === "immediate" && this.steering.length > 0;
  }

  add(kind: "steering" | "followUp" | "nextTurn", ...messages: AgentMessage[]): void {
    this[kind].push(...messages);
    if (kind === "steering" && messages.length > 0) for (const listener of [...this.#onSteer]) listener();
  }

  takeSteering(): AgentMessage[] {
    return take(this.steering, this.steeringMode);
  }

  takeFollowUps(): AgentMessage[] {
    return this.followUpsParked ? [] : take(this.followUp, this.followUpMode);
  }

  takeNextTurn(): AgentMessage[] {
    return this.nextTurn.splice(0);
  }

  drain(): { steering: AgentMessage[]; followUp: AgentMessage[]; nextTurn: AgentMessage[] } {
    return { steering: this.steering.splice(0), followUp: this.followUp.splice(0), nextTurn: this.nextTurn.splice(0) };
  }

  /** Everything goes on in another queue, in its order. Who waits for it is told there once it `takeOver`s. */
  moveTo(other: Pick<MessageQueue, "add">): void {
    const { steering, followUp, nextTurn } = this.drain();
    other.add("nextTurn", ...nextTurn);
    other.add("followUp", ...followUp);
    other.add("steering", ...steering);
  }

  /** How the run that takes a message of this queue ends. */
  outcomeOf(message: AgentMessage): Promise<RunOutcome> {
    return new Promise((resolve) => this.#awaited.set(message, resolve));
  }

  /** Tells whoever waits that the run which took these messages has ended. */
  ended(outcome: RunOutcome): void {
    for (const message of outcome.messages) this.#tell(message, outcome);
  }

  /** Empties the queue; what waited in it ends as aborted. */
  abandon(reason: string): void {
    this.drain();
    for (const message of [...this.#awaited.keys()])
      this.#tell(message, { status: "aborted", messages: [], errorMessage: reason });
  }

  /** Whoever waits for a message of `from` waits for it here: it was moved. */
  takeOver(from: MessageQueue): void {
    for (const [message, resolve] of from.#awaited) this.#awaited.set(message, resolve);
    from.#awaited.clear();
  }

  #tell(message: AgentMessage, outcome: RunOutcome): void {
    this.#awaited.get(message)?.(outcome);
    this.#awaited.delete(message);
  }

  /** Told when steering arrives. */
  onSteer(listener: () => void): () => void {
    this.#onSteer.add(listener);
    return () => this.#onSteer.delete(listener);
  }
}

function take(queue: AgentMessage[], mode: QueueMode): AgentMessage[] {
  return queue.splice(0, mode === "all" ? queue.length : 1);
}

function visible(messages: readonly AgentMessage[]): number {
  return messages.reduce((count, message) => (message.role === "custom" && !message.display ? count : count + 1), 0);
}
