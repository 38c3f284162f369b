// Requests that wait for their response, by the id the client gave them.
import type { Frame } from "../frame.ts";
import { HostError } from "./errors.ts";
import type { RequestOptions } from "./types.ts";

interface Pending {
  readonly command: string;
  readonly resolve: (data: unknown) => void;
  readonly reject: (error: HostError) => void;
}

/** What became of a response frame. */
export type Settled = "answered" | "late failure" | "unknown";

export class PendingRequests {
  readonly #pending = new Map<string, Pending>();
  #count = 0;

  nextId(): string {
    this.#count += 1;
    return `req_${this.#count}`;
  }

  /** Settles with the response's `data`. @throws HostError */
  wait(id: string, command: string, options: RequestOptions = {}): Promise<unknown> {
    const { signal, timeoutMs } = options;
    if (signal?.aborted === true) return Promise.reject(new HostError(command, `Request ${command} was cancelled`, "cancelled"));
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const release = () => {
        this.#pending.delete(id);
        clearTimeout(timer);
        signal?.removeEventListener("abort", cancel);
      };
      const fail = (error: HostError) => {
        release();
        reject(error);
      };
      const cancel = () => fail(new HostError(command, `Request ${command} was cancelled`, "cancelled"));
      signal?.addEventListener("abort", cancel, { once: true });
      if (timeoutMs !== undefined) {
        const message = `No answer to ${command} within ${timeoutMs} ms`;
        timer = setTimeout(() => fail(new HostError(command, message, "timeout")), timeoutMs);
      }
      this.#pending.set(id, {
        command,
        reject: fail,
        resolve: (data) => {
          release();
          resolve(data);
        },
      });
    });
  }

  /** Takes a response. Ids are matched exactly; see `#withoutId` for the failures that carry none. */
  settle(frame: Frame): Settled {
    const { id } = frame;
    const success = frame["success"] === true;
    const request =
      typeof id === "string" ? this.#pending.get(id) : id === undefined && !success ? this.#withoutId(frame) : undefined;
    if (request === undefined) return success ? "unknown" : "late failure";
    if (success) request.resolve(frame["data"]);
    else request.reject(failureOf(frame, request.command));
    return "answered";
  }

  rejectAll(reason: (command: string) => HostError): void {
    for (const request of [...this.#pending.values()]) request.reject(reason(request.command));
  }

  /**
   * A daemon answers an unknown command, and a line that it cannot read, without the id (seeds, "Edge behavior"). Commands are
   * answered in order, so the oldest request of that name is meant; an unreadable line can only be told when one is waiting.
   */
  #withoutId(frame: Frame): Pending | undefined {
    const { command } = frame;
    const all = [...this.#pending.values()];
    const [only] = all;
    if (command === "parse") return all.length === 1 ? only : undefined;
    return all.find((request) => request.command === command);
  }
}

/** The failure that a response frame reports. */
export function failureOf(frame: Frame, command: string): HostError {
  const { error, code } = frame;
  const message = typeof error === "string" ? error : `Request ${command} failed without a reason`;
  return new HostError(command, message, typeof code === "string" ? code : undefined);
}
