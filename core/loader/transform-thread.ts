// The worker thread that transforms modules. Loading Babel costs it 300 ms and 40 MiB, so all loaders of a process share one, and it
// ends when nobody has asked it for a while.
import { MessageChannel, receiveMessageOnPort, Worker } from "node:worker_threads";

/** The next save after a pause this long pays the start again. */
const IDLE_MS = 5 * 60_000;
/** How long a synchronous `require` waits for the worker. */
const SYNC_LIMIT_MS = 10_000;

interface Pending {
  resolve(message: unknown): void;
  reject(error: Error): void;
}

export class TransformThread {
  static readonly #threads = new Map<string, TransformThread>();
  readonly #url: URL;
  readonly #pending = new Map<number, Pending>();
  #worker: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;
  #nextId = 1;

  private constructor(url: URL) {
    this.#url = url;
  }

  /** The one thread of this worker file; begun by the first question. */
  static of(url: URL): TransformThread {
    let thread = TransformThread.#threads.get(url.href);
    if (thread === undefined) {
      thread = new TransformThread(url);
      TransformThread.#threads.set(url.href, thread);
    }
    return thread;
  }

  ask(message: Record<string, unknown>): Promise<unknown> {
    const worker = this.#running();
    const id = this.#nextId++;
    return new Promise<unknown>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      // A referenced worker keeps the process alive exactly while somebody waits for it.
      worker.ref();
      worker.postMessage({ ...message, id });
    });
  }

  /** Blocks until the answer is there. @throws {Error} after ten seconds, naming the file. */
  askSync(message: { filename: string } & Record<string, unknown>): unknown {
    const { port1, port2 } = new MessageChannel();
    const wake = new Int32Array(new SharedArrayBuffer(4));
    this.#running().postMessage({ ...message, id: 0, wake, port: port2 }, [port2]);
    try {
      if (Atomics.wait(wake, 0, 0, SYNC_LIMIT_MS) === "timed-out") {
        throw new Error(`Cannot transform ${message.filename}: no answer within ${SYNC_LIMIT_MS} ms`);
      }
      return receiveMessageOnPort(port1)?.message;
    } finally {
      port1.close();
      if (this.#pending.size === 0) this.#rest();
    }
  }

  #running(): Worker {
    clearTimeout(this.#idle);
    if (this.#worker !== undefined) return this.#worker;
    // Options of the parent (tsx, vitest, --inspect) mean nothing to plain JavaScript and cost its start. Its stdout is kept from the
    // frames and not read, because a reader would hold the process; what the worker prints it prints to stderr.
    const worker = new Worker(this.#url, { execArgv: [], stdout: true });
    worker.unref();
    worker.on("message", (message: { id: number }) => {
      const pending = this.#pending.get(message.id);
      this.#pending.delete(message.id);
      if (this.#pending.size === 0) this.#rest();
      pending?.resolve(message);
    });
    const lost = (error: unknown) => {
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      const waiting = [...this.#pending.values()];
      this.#pending.clear();
      for (const { reject } of waiting) reject(new Error("The transform worker ended", { cause: error }));
    };
    worker.on("error", lost);
    worker.on("exit", lost);
    this.#worker = worker;
    return worker;
  }

  #rest(): void {
    this.#worker?.unref();
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => {
      const worker = this.#worker;
      this.#worker = undefined;
      void worker?.terminate();
    }, IDLE_MS);
    this.#idle.unref();
  }
}
