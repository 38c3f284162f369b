// The host's tools and URIs: definitions go out, calls come in, functions answer them.
import type { Frame } from "../frame.ts";
import { isRecord } from "./is-record.ts";
import type { HostTool, HostToolOutput, HostUriOutput, HostUriScheme } from "./types.ts";

type Send = (frame: Frame) => void;

/** Calls of one kind that are running, by their id. */
class RunningCalls {
  readonly #controllers = new Map<string, AbortController>();

  /** Runs `work`; what it sends after the call was given up is not sent: the daemon has moved on. */
  run(id: string, send: Send, work: (signal: AbortSignal, reply: Send) => Promise<void>): void {
    const controller = new AbortController();
    this.#controllers.set(id, controller);
    const reply: Send = (frame) => {
      if (!controller.signal.aborted) send(frame);
    };
    void work(controller.signal, reply).finally(() => this.#controllers.delete(id));
  }

  cancel(frame: Frame): void {
    const { targetId } = frame;
    if (typeof targetId === "string") this.#controllers.get(targetId)?.abort();
  }

  cancelAll(): void {
    for (const controller of this.#controllers.values()) controller.abort();
  }
}

/** Answers `host_tool_call`. */
export class HostTools {
  readonly #send: Send;
  readonly #running = new RunningCalls();
  #tools: ReadonlyMap<string, HostTool> = new Map();

  constructor(send: Send) {
    this.#send = send;
  }

  /** Replaces the set; `request` tells the daemon. When it refuses, the old set stays. */
  async replace<T>(tools: readonly HostTool[], request: (definitions: Record<string, unknown>[]) => Promise<T>): Promise<T> {
    const before = this.#tools;
    const after = new Map(tools.map((tool) => [tool.name.trim(), tool]));
    // A call may come with the answer, and one of an old tool just before it.
    this.#tools = new Map([...before, ...after]);
    try {
      const result = await request(tools.map(({ run: _, ...definition }) => definition));
      this.#tools = after;
      return result;
    } catch (error) {
      this.#tools = before;
      throw error;
    }
  }

  handle(frame: Frame): boolean {
    if (frame.type === "host_tool_cancel") this.#running.cancel(frame);
    else if (frame.type === "host_tool_call") this.#call(frame);
    else return false;
    return true;
  }

  cancelAll(): void {
    this.#running.cancelAll();
  }

  #call(frame: Frame): void {
    const { id, toolCallId, toolName, arguments: args } = frame;
    if (typeof id !== "string") return;
    const tool = this.#tools.get(String(toolName));
    this.#running.run(id, this.#send, async (signal, reply) => {
      const failed = (text: string) =>
        reply({ type: "host_tool_result", id, result: { content: [{ type: "text", text }] }, isError: true });
      if (tool === undefined) return failed(`Host tool "${String(toolName)}" is not registered`);
      const update = (partial: HostToolOutput) => reply({ type: "host_tool_update", id, partialResult: toolResult(partial) });
      try {
        const output = await tool.run(isRecord(args) ? args : {}, { signal, update, toolCallId: String(toolCallId) });
        reply({ type: "host_tool_result", id, result: toolResult(output) });
      } catch (error) {
        failed(error instanceof Error ? error.message : String(error));
      }
    });
  }
}

/** Answers `host_uri_request`. */
export class HostUris {
  readonly #send: Send;
  readonly #running = new RunningCalls();
  #schemes: ReadonlyMap<string, HostUriScheme> = new Map();

  constructor(send: Send) {
    this.#send = send;
  }

  /** As `HostTools.replace`. */
  async replace<T>(
    schemes: readonly HostUriScheme[],
    request: (definitions: Record<string, unknown>[]) => Promise<T>,
  ): Promise<T> {
    const before = this.#schemes;
    const after = new Map(schemes.map((scheme) => [scheme.scheme.trim().toLowerCase(), scheme]));
    this.#schemes = new Map([...before, ...after]);
    try {
      const result = await request(
        schemes.map(({ read: _, write, ...definition }) => ({ ...definition, writable: write !== undefined })),
      );
      this.#schemes = after;
      return result;
    } catch (error) {
      this.#schemes = before;
      throw error;
    }
  }

  handle(frame: Frame): boolean {
    if (frame.type === "host_uri_cancel") this.#running.cancel(frame);
    else if (frame.type === "host_uri_request") this.#call(frame);
    else return false;
    return true;
  }

  cancelAll(): void {
    this.#running.cancelAll();
  }

  #call(frame: Frame): void {
    const { id, url, operation, content } = frame;
    if (typeof id !== "string") return;
    this.#running.run(id, this.#send, async (signal, reply) => {
      try {
        const fields = await this.#serve(String(url), operation, content, signal);
        reply({ type: "host_uri_result", id, ...fields });
      } catch (error) {
        reply({ type: "host_uri_result", id, isError: true, error: error instanceof Error ? error.message : String(error) });
      }
    });
  }

  async #serve(url: string, operation: unknown, content: unknown, signal: AbortSignal): Promise<Record<string, unknown>> {
    const name = url.slice(0, Math.max(0, url.indexOf(":"))).toLowerCase();
    const scheme = this.#schemes.get(name);
    if (scheme === undefined) throw new Error(`Host URI scheme "${name}" is not registered`);
    if (operation !== "write") return uriResult(await scheme.read(url, { signal }));
    if (scheme.write === undefined) throw new Error(`Host URI scheme "${name}" cannot be written`);
    await scheme.write(url, typeof content === "string" ? content : "", { signal });
    return {};
  }
}

function toolResult(output: HostToolOutput): Record<string, unknown> {
  return typeof output === "string" ? { content: [{ type: "text", text: output }] } : { ...output };
}

function uriResult(output: HostUriOutput): Record<string, unknown> {
  return typeof output === "string" ? { content: output } : { ...output };
}
