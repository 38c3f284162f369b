// One end of the line between the daemon and an isolated extension: frames of JSON, one per line, with calls in both directions.
// Invariant: every call settles exactly once; when the line ends all that are open reject.
import type { Duplex } from "node:stream";
import { LineSplitter } from "../../../protocol/jsonl.ts";
import { type Frame, FrameSchema } from "./frame.ts";
import { pack, type Reference, type Referrer, unpack } from "./pack.ts";

export interface PeerOptions {
  readonly stream: Duplex;
  /** Answers a call of the other side. */
  answer(method: string, params: Record<string, unknown>, call: IncomingCall): unknown;
  /** Takes what needs no answer. */
  told(method: string, params: Record<string, unknown>): void;
  /** Objects of this side that travel as references outside of any call. */
  readonly refer?: Referrer | undefined;
}

export interface IncomingCall {
  readonly id: number;
  readonly signal: AbortSignal;
}

interface Open {
  resolve(value: unknown): void;
  reject(error: unknown): void;
  revive(reference: Reference): unknown;
}

export interface CallOptions {
  readonly id?: number;
  readonly signal?: AbortSignal | undefined;
  readonly refer?: Referrer | undefined;
  readonly revive?: ((reference: Reference) => unknown) | undefined;
}

const nothing: Referrer = () => undefined;

export class Peer {
  readonly #options: PeerOptions;
  readonly #open = new Map<number, Open>();
  readonly #running = new Map<number, AbortController>();
  #ids = 0;
  #ended: Error | undefined;

  constructor(options: PeerOptions) {
    this.#options = options;
    const splitter = new LineSplitter({ onLine: (line) => this.#line(line), onProblem: () => {} });
    options.stream.on("data", (chunk: Buffer) => splitter.push(chunk));
    // Whoever owns the process says why the line ended.
    options.stream.on("error", () => {});
  }

  /** Calls of ours that are not answered yet. */
  get openCalls(): number {
    return this.#open.size;
  }

  nextId(): number {
    return ++this.#ids;
  }

  /** Asks the other side. An abort is passed on; the answer still decides how the call ends. */
  call(method: string, params: Record<string, unknown>, options: CallOptions = {}): Promise<unknown> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    const { id = this.nextId(), signal, refer = this.#options.refer ?? nothing, revive = () => undefined } = options;
    const abort = () => this.#send({ type: "abort", id });
    const settled = new Promise<unknown>((resolve, reject) => {
      this.#open.set(id, { resolve, reject, revive });
      this.#send({ type: "call", id, method, params: pack(params, refer) as Record<string, unknown> });
      if (signal?.aborted) abort();
      else signal?.addEventListener("abort", abort, { once: true });
    });
    return settled.finally(() => signal?.removeEventListener("abort", abort));
  }

  tell(method: string, params: Record<string, unknown> = {}): void {
    this.#send({ type: "tell", method, params: pack(params, this.#options.refer ?? nothing) as Record<string, unknown> });
  }

  /** Rejects what is open; later calls reject at once. */
  end(reason: Error): void {
    this.#ended ??= reason;
    for (const call of [...this.#open.values()]) call.reject(this.#ended);
    this.#open.clear();
    for (const controller of this.#running.values()) controller.abort(this.#ended);
    this.#running.clear();
  }

  #send(frame: Frame): void {
    if (this.#ended === undefined && this.#options.stream.writable) this.#options.stream.write(`${JSON.stringify(frame)}\n`);
  }

  #line(line: string): void {
    const parsed = FrameSchema.safeParse(parse(line));
    if (!parsed.success) return;
    const frame = parsed.data;
    switch (frame.type) {
      case "call":
        void this.#run(frame.id, frame.method, frame.params);
        return;
      case "tell":
        this.#options.told(frame.method, frame.params);
        return;
      case "abort":
        this.#running.get(frame.id)?.abort(new Error("The call was given up"));
        return;
      default: {
        const open = this.#open.get(frame.id);
        this.#open.delete(frame.id);
        if (open === undefined) return;
        if (frame.type === "result") open.resolve(unpack(frame.value, open.revive));
        else open.reject(unpack(frame.error, open.revive));
      }
    }
  }

  async #run(id: number, method: string, params: Record<string, unknown>): Promise<void> {
    const controller = new AbortController();
    this.#running.set(id, controller);
    const refer = this.#options.refer ?? nothing;
    try {
      const value = await this.#options.answer(method, params, { id, signal: controller.signal });
      this.#send({ type: "result", id, value: pack(value, refer) });
    } catch (error) {
      const thrown = error instanceof Error ? error : new Error(String(error));
      this.#send({ type: "error", id, error: pack(thrown, refer) });
    } finally {
      this.#running.delete(id);
    }
  }
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
