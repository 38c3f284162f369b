// The one table of questions that wait for the host: dialogs, host tool calls, host URI requests. Every entry settles exactly
// once, by an answer, a time-out, an abort or the end of input; ids are never reused, unknown ids are ignored.
import type { Frame } from "../../protocol/frame.ts";
import { currentCall } from "./attribution.ts";
import { DisconnectedError } from "./errors.ts";
import type { DialogOptions, HostRequestDefinition, UiAnswer, UiMethodDefinition } from "./host-requests.ts";

/** 000_…, "Extension UI": what an open dialog rejects with once stdin is closed. */
const UI_DISCONNECTED = "RPC client disconnected before extension UI response completed";

interface Pending {
  /** True when the answer fits and the entry is settled. */
  answer(frame: Record<string, unknown>): boolean;
  progress?(frame: Record<string, unknown>): void;
  reject(error: unknown): void;
  disconnect(): void;
}

export interface TableOptions {
  send(frame: Frame): void;
  /** False with `--no-ui`: dialogs give their fallback, notices are dropped. */
  hasUI: boolean;
}

export class HostRequestTable {
  readonly #options: TableOptions;
  readonly #pending = new Map<string, Pending>();
  readonly #counters = new Map<string, number>();
  #disconnected = false;

  constructor(options: TableOptions) {
    this.#options = options;
  }

  /** Questions without an answer so far. */
  get size(): number {
    return this.#pending.size;
  }

  /** Routes an answer; unknown and settled ids are ignored. */
  answer(id: string, frame: Record<string, unknown>): void {
    this.#pending.get(id)?.answer(frame);
  }

  /** Settles an open request with an error; false when there is none of that id. */
  reject(id: string, error: unknown): boolean {
    const entry = this.#pending.get(id);
    entry?.reject(error);
    return entry !== undefined;
  }

  progress(id: string, frame: Record<string, unknown>): void {
    this.#pending.get(id)?.progress?.(frame);
  }

  /** stdin closed: everything open rejects, and so does everything asked later. */
  disconnect(): void {
    this.#disconnected = true;
    for (const entry of [...this.#pending.values()]) entry.disconnect();
  }

  /** Sends a notice, or opens a dialog and waits for it. */
  ui<P, R>(method: UiMethodDefinition<P, R>, params: P, options: DialogOptions = {}): Promise<R> {
    const fallback = method.fallback as R;
    if (method.mode === "notice") {
      const sent = this.#options.hasUI || method.essential === true;
      if (sent && method.enabled?.(process.env) !== false) {
        this.#options.send({ type: "extension_ui_request", id: this.#id("ui"), method: method.name, ...params });
      }
      return Promise.resolve(undefined as R);
    }
    if (this.#disconnected) return Promise.reject(new DisconnectedError(UI_DISCONNECTED));
    const timeout = method.allowTimeout === false ? undefined : options.timeout;
    if (!this.#options.hasUI || options.signal?.aborted || timeout === 0) return Promise.resolve(fallback);
    return this.#dialog(method, params, fallback, timeout, options);
  }

  #dialog<P, R>(
    method: UiMethodDefinition<P, R>,
    params: P,
    fallback: R,
    timeout: number | undefined,
    options: DialogOptions,
  ): Promise<R> {
    const id = this.#id("ui");
    const budget = currentCall()?.budget;
    return new Promise<R>((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const settle = (finish: () => void) => {
        if (!this.#pending.delete(id)) return false;
        clearTimeout(timer);
        options.signal?.removeEventListener("abort", onAbort);
        budget?.resume();
        finish();
        return true;
      };
      // The host dismisses it (DESIGN §3 "cancel UI frame"); who closed stdin may still read what it shows.
      const withdraw = () =>
        this.#options.send({ type: "extension_ui_request", id: this.#id("ui"), method: "cancel", targetId: id });
      const onAbort = () =>
        settle(() => {
          withdraw();
          resolve(fallback);
        });
      this.#pending.set(id, {
        answer: (frame) => {
          if (frame["cancelled"] === true) {
            if (frame["timedOut"] === true) options.onTimeout?.();
            return settle(() => resolve(fallback));
          }
          // A wrong shape leaves the dialog open for the valid answer that may follow (docs/protocol.md, "Dialogs").
          const read = method.read?.(frame as UiAnswer, params);
          return read !== undefined && settle(() => resolve(read.value));
        },
        reject: (error) => settle(() => reject(error)),
        disconnect: () =>
          settle(() => {
            withdraw();
            reject(new DisconnectedError(UI_DISCONNECTED));
          }),
      });
      if (timeout !== undefined) {
        timer = setTimeout(() => {
          // The host applies the same default by itself, so no cancel frame (DESIGN §3 "cancel UI frame").
          settle(() => resolve(fallback));
          options.onTimeout?.();
        }, timeout);
      }
      options.signal?.addEventListener("abort", onAbort, { once: true });
      budget?.pause();
      const frame: Frame = { type: "extension_ui_request", id, method: method.name, ...params };
      if (timeout !== undefined) frame["timeout"] = timeout;
      this.#ask(frame, id);
    });
  }

  /** Opens a request of its own frame type; rejects with the signal's reason on abort, after one cancel frame. */
  ask<A, B, P>(
    request: HostRequestDefinition<A, B, P>,
    fields: A,
    options: { signal?: AbortSignal | undefined; onProgress?: ((progress: P) => void) | undefined } = {},
  ): Promise<B> {
    if (this.#disconnected) return Promise.reject(new DisconnectedError(request.disconnectMessage));
    if (options.signal?.aborted) return Promise.reject(options.signal.reason);
    const id = this.#id(request.idPrefix);
    return new Promise<B>((resolve, reject) => {
      const settle = (finish: () => void) => {
        if (!this.#pending.delete(id)) return false;
        options.signal?.removeEventListener("abort", onAbort);
        finish();
        return true;
      };
      const onAbort = () =>
        settle(() => {
          this.#options.send({ type: request.cancelType, id: this.#id(`${request.idPrefix}_cancel`), targetId: id });
          reject(options.signal?.reason);
        });
      this.#pending.set(id, {
        answer: (frame) => settle(() => resolve(frame as B)),
        progress: (frame) => options.onProgress?.(frame as P),
        reject: (error) => settle(() => reject(error)),
        disconnect: () => settle(() => reject(new DisconnectedError(request.disconnectMessage))),
      });
      options.signal?.addEventListener("abort", onAbort, { once: true });
      this.#ask({ type: request.name, id, ...fields }, id);
    });
  }

  /** A request that is too large for a frame is refused by the writer: then it was never asked. */
  #ask(frame: Frame, id: string): void {
    try {
      this.#options.send(frame);
    } catch (error) {
      this.reject(id, error);
    }
  }

  #id(prefix: string): string {
    const next = (this.#counters.get(prefix) ?? 0) + 1;
    this.#counters.set(prefix, next);
    return `${prefix}_${next}`;
  }
}
