// Answers `extension_ui_request` frames with the host's handlers. What cannot be answered is cancelled, so that nothing waits.
import type { Frame } from "../frame.ts";
import type { UiHandlers } from "./types.ts";

type Send = (frame: Frame) => void;

/** Methods that show something and want no answer. */
const SHOWING: ReadonlySet<string> = new Set(["notify", "setStatus", "setWidget", "setTitle", "set_editor_text", "open_url"]);

export class Dialogs {
  readonly #handlers: UiHandlers;
  readonly #send: Send;
  readonly #onError: (error: Error) => void;
  readonly #open = new Map<string, AbortController>();

  constructor(handlers: UiHandlers, send: Send, onError: (error: Error) => void) {
    this.#handlers = handlers;
    this.#send = send;
    this.#onError = onError;
  }

  handle(frame: Frame): boolean {
    if (frame.type !== "extension_ui_request") return false;
    const { method, id, targetId } = frame;
    if (method === "cancel") this.#open.get(String(targetId))?.abort();
    else if (SHOWING.has(String(method))) void this.#call(String(method), frame, new AbortController().signal);
    else if (typeof id === "string") void this.#ask(id, String(method), frame);
    return true;
  }

  cancelAll(): void {
    for (const controller of this.#open.values()) controller.abort();
  }

  async #ask(id: string, method: string, frame: Frame): Promise<void> {
    const controller = new AbortController();
    this.#open.set(id, controller);
    const { timeout } = frame;
    let late = false;
    const expire = () => {
      late = true;
      controller.abort();
      this.#send({ type: "extension_ui_response", id, cancelled: true, timedOut: true });
    };
    const timer = typeof timeout === "number" ? setTimeout(expire, timeout) : undefined;
    const answer = await this.#call(method, frame, controller.signal);
    clearTimeout(timer);
    this.#open.delete(id);
    // Given up by the daemon or by the time limit: an answer would be one too many.
    if (late || controller.signal.aborted) return;
    this.#send({ type: "extension_ui_response", id, ...answerFields(answer) });
  }

  async #call(method: string, frame: Frame, signal: AbortSignal): Promise<unknown> {
    const handler: unknown = Reflect.get(this.#handlers, method);
    if (typeof handler !== "function") return undefined;
    try {
      return await Reflect.apply(handler, this.#handlers, [frame, { signal }]);
    } catch (error) {
      if (!signal.aborted) this.#onError(error instanceof Error ? error : new Error(String(error)));
      return undefined;
    }
  }
}

function answerFields(answer: unknown): Record<string, unknown> {
  if (typeof answer === "boolean") return { confirmed: answer };
  return typeof answer === "string" ? { value: answer } : { cancelled: true };
}
