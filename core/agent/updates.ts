// Merges the deltas of one answer into `message_update` frames (DESIGN §3 "streamed message_update"): the first delta leaves at
// once, later ones are merged so that frames stay within 60 a second and 2 MB/s of snapshots, and merge further while the host
// reads slowly. No text is lost; at most one timer or one drain listener is pending.
import type { DeltaStep } from "./answer.ts";

const MIN_INTERVAL_MS = 1000 / 60;
const SNAPSHOT_BYTES_PER_MS = 2_000_000 / 1000;
/** What a frame weighs besides its text. */
const ENVELOPE_BYTES = 700;

export interface UpdateSink {
  /** Sends one delta frame with a snapshot of the answer. */
  send(delta: DeltaStep): void;
  /** Characters a snapshot holds now; 0 in delta mode. */
  snapshotSize(): number;
  congested(): boolean;
  onDrain(listener: () => void): () => void;
}

export class UpdateMerger {
  readonly #sink: UpdateSink;
  #pending: { type: DeltaStep["type"]; index: number; delta: string } | undefined;
  #dueAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #cancelDrain: (() => void) | undefined;

  constructor(sink: UpdateSink) {
    this.#sink = sink;
  }

  add(step: DeltaStep): void {
    if (this.#pending !== undefined && (this.#pending.index !== step.index || this.#pending.type !== step.type)) this.flush();
    if (this.#pending === undefined) this.#pending = { type: step.type, index: step.index, delta: step.delta };
    else this.#pending.delta += step.delta;
    if (this.#timer !== undefined || this.#cancelDrain !== undefined) {
      // A busy stream keeps timers from firing; the clock is asked here as well.
      if (this.#timer !== undefined && performance.now() >= this.#dueAt && !this.#sink.congested()) this.flush();
      return;
    }
    this.#sendOrWait();
  }

  /** Sends what is pending now. Called before every frame that ends a block or the message. */
  flush(): void {
    this.#stopWaiting();
    const pending = this.#pending;
    if (pending === undefined) return;
    this.#pending = undefined;
    this.#sink.send({ kind: "delta", ...pending });
    const bytes = this.#sink.snapshotSize() + pending.delta.length + ENVELOPE_BYTES;
    this.#dueAt = performance.now() + Math.max(MIN_INTERVAL_MS, bytes / SNAPSHOT_BYTES_PER_MS);
  }

  #sendOrWait(): void {
    if (this.#pending === undefined) return;
    if (this.#sink.congested()) {
      this.#cancelDrain = this.#sink.onDrain(() => {
        this.#cancelDrain = undefined;
        // Not asked again: a sink that calls back while it still counts as congested must not spin here.
        this.flush();
      });
      return;
    }
    const wait = this.#dueAt - performance.now();
    if (wait <= 0) {
      this.flush();
      return;
    }
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#sendOrWait();
    }, wait);
  }

  #stopWaiting(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#cancelDrain?.();
    this.#cancelDrain = undefined;
  }
}
