// What a conversation writes into its log. A log that cannot be written keeps everything in memory: the run goes on and the
// person is told once.
import type { AgentMessage, AssistantMessage, BashExecutionMessage } from "../../protocol/message.ts";
import type { SessionLog } from "../session/log.ts";
import type { Selection } from "./conversation-types.ts";

export class Journal {
  readonly #log: SessionLog;
  readonly #onFailure: (error: unknown) => void;
  /** Records of host commands that ended during a turn: between a call and its result they would break the pairing. */
  #records: BashExecutionMessage[] = [];
  #failed = false;

  constructor(log: SessionLog, onFailure: (error: unknown) => void) {
    this.#log = log;
    this.#onFailure = onFailure;
  }

  /** A copy of a long history gets its file without holding the event loop: for the moment before a run. */
  async prepare(): Promise<void> {
    try {
      await this.#log.materializeInSlices();
    } catch (error) {
      this.#fail(error);
    }
  }
  /** True when a file is wanted that is not there yet and has a history to take in. */
  get needsPreparing(): boolean {
    return !this.#log.isMaterialized && this.#log.file !== undefined && this.#log.context().length > 0;
  }

  /** The file is there before the first message is told as final, and so before the first request. */
  append(message: AgentMessage): void {
    this.#write(() => {
      if (message.role === "custom") {
        const { role: _, timestamp: __, ...fields } = message;
        this.#log.append({ type: "custom_message", ...fields });
      } else {
        this.#log.append({ type: "message", message });
      }
      if (message.role !== "bashExecution" && !this.#log.isMaterialized) this.#log.materialize();
    });
  }

  /** Takes a failed answer out of the path; it stays in the file. */
  drop(message: AssistantMessage): void {
    const entry = this.#log.leafId === null ? undefined : this.#log.entry(this.#log.leafId);
    // Something was stored after it: it stays in the path, and what goes to the provider leaves it out.
    if (entry?.type === "message" && entry.message === message) this.#log.branchTo(this.#log.parentOf(entry.id));
  }

  record(message: BashExecutionMessage, later: boolean): void {
    if (later) this.#records.push(message);
    else this.append(message);
  }

  flushRecords(): void {
    for (const record of this.#records.splice(0)) this.append(record);
  }

  /** Records what differs of a selection. */
  select(before: Readonly<Selection>, change: Partial<Selection>): void {
    const { model, thinkingLevel } = change;
    if (model !== undefined && (model.provider !== before.model?.provider || model.id !== before.model.id)) {
      this.#write(() => this.#log.recordModel(model.provider, model.id));
    }
    if (thinkingLevel !== undefined && thinkingLevel !== before.thinkingLevel) {
      this.#write(() => this.#log.recordThinkingLevel(thinkingLevel));
    }
  }

  /** False when something is lost: it could not be written to the end. */
  close(): boolean {
    this.#write(() => this.#log.close());
    return !this.#failed;
  }

  #write(write: () => void): void {
    try {
      write();
      this.#failed = false;
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    if (!this.#failed) this.#onFailure(error);
    this.#failed = true;
  }
}
