// The host's side of the protocol: starts or attaches to a daemon, matches answers to requests, serves its questions.
import type { Readable, Writable } from "node:stream";
import { FrameDecoder } from "../decoder.ts";
import type { Frame } from "../frame.ts";
import type { EventMap } from "../generated/commands.ts";
import { LineSplitter } from "../jsonl.ts";
import { MAX_FRAME_BYTES, MAX_REASSEMBLED_FRAME_BYTES } from "../limits.ts";
import { attachedChannel, type Channel, spawnChannel } from "./channel.ts";
import { Dialogs } from "./dialogs.ts";
import { HostError } from "./errors.ts";
import { FrameFeed } from "./frame-feed.ts";
import { readHistory } from "./history.ts";
import { HostTools, HostUris } from "./host-calls.ts";
import { failureOf, PendingRequests } from "./pending.ts";
import { PromptWatch, RunLog } from "./prompt-watch.ts";
import type {
  ClientOptions,
  CommandName,
  EventName,
  ExitStatus,
  FramePredicate,
  HostTool,
  HostUriScheme,
  PromptOptions,
  PromptOutcome,
  RequestArguments,
  RequestOptions,
  Result,
  SpawnOptions,
} from "./types.ts";

/** Base64 grows a chunk by a third, and a daemon may lift its own limit: so the longest line is not the longest frame. */
const MAX_LINE_BYTES = MAX_REASSEMBLED_FRAME_BYTES * 2;
const READY_TIMEOUT_MS = 30_000;
const EXIT_NEWS_MS = 500;

/**
 * A connection to one daemon.
 *
 * ```ts
 * const client = await HostClient.spawn({ cwd: project, ui: { confirm: ({ title }) => ask(title) } });
 * const { messages } = await client.promptAndWait("What does this project do?");
 * await client.close();
 * ```
 */
export class HostClient {
  readonly #channel: Channel;
  readonly #options: ClientOptions;
  readonly #pending = new PendingRequests();
  readonly #feed = new FrameFeed();
  readonly #run = new RunLog();
  readonly #decoder = new FrameDecoder();
  readonly #tools: HostTools;
  readonly #uris: HostUris;
  readonly #dialogs: Dialogs;
  readonly #watches = new Set<PromptWatch>();
  #version: 1 | 2 = 1;
  #ready: Frame | undefined;
  #broken: HostError | undefined;

  /** Starts a daemon and waits until it is ready. @throws HostError when it does not come up. */
  static async spawn(options: SpawnOptions = {}): Promise<HostClient> {
    return HostClient.#open(spawnChannel(options), options);
  }

  /** Uses streams that lead to a daemon: `input` is what it writes, `output` what it reads. The `ready` frame must be still to come. */
  static async attach(streams: { input: Readable; output: Writable }, options: ClientOptions = {}): Promise<HostClient> {
    return HostClient.#open(attachedChannel(streams.input, streams.output), options);
  }

  static async #open(channel: Channel, options: ClientOptions): Promise<HostClient> {
    const client = new HostClient(channel, options);
    try {
      await client.#handshake();
    } catch (error) {
      channel.kill("SIGKILL");
      await channel.exited;
      throw error;
    }
    return client;
  }

  private constructor(channel: Channel, options: ClientOptions) {
    this.#channel = channel;
    this.#options = options;
    const send = (frame: Frame) => this.send(frame);
    this.#tools = new HostTools(send);
    this.#uris = new HostUris(send);
    this.#dialogs = new Dialogs(options.ui ?? {}, send, (error) => this.#report(error));
    const splitter = new LineSplitter({
      onLine: (line) => this.#line(line),
      onProblem: (problem) => this.#fail(new HostError("connection", problem.message, "protocol")),
      maxLineBytes: MAX_LINE_BYTES,
    });
    channel.input.on("data", (chunk: Buffer) => splitter.push(chunk));
    channel.input.once("end", () => {
      splitter.end();
      // Nothing can be answered any more; how the daemon ended is worth a short wait.
      const timer = setTimeout(() => this.#disconnected(), EXIT_NEWS_MS);
      void channel.exited.then(() => clearTimeout(timer));
    });
    channel.input.on("error", () => this.#disconnected());
    // A daemon that is gone is noticed on its output.
    channel.output.on("error", () => {});
    void channel.exited.then(() => this.#disconnected());
  }

  /** The daemon's `ready` frame. */
  get ready(): Frame {
    if (this.#ready === undefined) throw new HostError("connection", "Daemon has not sent its ready frame", "protocol");
    return this.#ready;
  }

  get protocolVersion(): 1 | 2 {
    return this.#version;
  }

  /** Settles when the daemon is gone. */
  get exited(): Promise<ExitStatus> {
    return this.#channel.exited;
  }

  /**
   * Sends a command and waits for its answer.
   * @returns the answer's `data`
   * @throws HostError with the daemon's own text and code, or because the connection, the time or the signal ended
   */
  async request<Name extends CommandName>(command: Name, ...args: RequestArguments<Name>): Promise<Result<Name>>;
  /** Commands that extensions added: nothing is known of their shapes here. */
  async request<Name extends string>(
    command: Name extends CommandName ? never : Name,
    params?: Record<string, unknown>,
    options?: RequestOptions,
  ): Promise<unknown>;
  async request(command: string, params?: unknown, options?: RequestOptions): Promise<unknown> {
    // The daemon's answers are checked by its own contract tests; a host that trusts nobody parses with mortise/protocol.
    return this.#ask(this.#pending.nextId(), command, (params ?? {}) as Record<string, unknown>, options);
  }

  /** Writes a frame as it is: for everything the client does not wrap. */
  send(frame: Frame): void {
    if (this.#broken !== undefined || !this.#channel.output.writable) return;
    this.#channel.output.write(`${JSON.stringify(frame)}\n`);
  }

  /** Every frame from now on but the answers to requests; unknown types and late failures included. Ends with the connection. */
  frames(): AsyncIterableIterator<Frame> {
    return this.#feed.frames();
  }

  /** Calls back for every frame that `frames()` would give. Returns the undo. */
  onFrame(listener: (frame: Frame) => void): () => void {
    return this.#feed.listen((frame) => {
      try {
        listener(frame);
      } catch (error) {
        this.#report(error);
      }
    });
  }

  /** The next frame of a type, or that a predicate accepts. @throws HostError when the connection, the time or the signal ends */
  async waitFor<Name extends EventName>(type: Name, options?: RequestOptions): Promise<Frame & EventMap[Name]>;
  async waitFor(what: FramePredicate | string, options?: RequestOptions): Promise<Frame>;
  async waitFor(what: string | FramePredicate, options: RequestOptions = {}): Promise<Frame> {
    if (typeof what === "function") return this.#feed.waitFor("matching frame", what, options);
    return this.#feed.waitFor(`${what} frame`, (frame) => frame.type === what, options);
  }

  /**
   * Sends a prompt and waits until it is over: its run ended, it was handled locally, or it failed, be it after its acceptance.
   * @throws HostError of the failed prompt, `timeout`, `disconnected`
   */
  async promptAndWait(message: string, options: PromptOptions = {}): Promise<PromptOutcome> {
    const { images, streamingBehavior, signal, timeoutMs } = options;
    const id = this.#pending.nextId();
    const watch = new PromptWatch(id, streamingBehavior !== undefined, this.#run);
    this.#watches.add(watch);
    const abort = () => void this.abort().catch(() => {});
    let timer: NodeJS.Timeout | undefined;
    try {
      if (timeoutMs !== undefined) {
        const late = new HostError("prompt", `Prompt was not over within ${timeoutMs} ms`, "timeout");
        timer = setTimeout(() => watch.fail(late), timeoutMs);
      }
      const params = { message, ...(images === undefined ? {} : { images }), ...(streamingBehavior && { streamingBehavior }) };
      this.#ask(id, "prompt", params).catch((error) => watch.fail(error));
      // Only after the prompt is on its way: the daemon keeps the order.
      if (signal?.aborted === true) abort();
      else signal?.addEventListener("abort", abort, { once: true });
      return await watch.outcome;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      this.#watches.delete(watch);
    }
  }

  /** Stops the run, its tools and what waits for a retry. Settles when the daemon is idle. */
  async abort(options: RequestOptions = {}): Promise<void> {
    await this.#ask(this.#pending.nextId(), "abort", {}, options);
  }

  /** The whole history, oldest first. On v2 page by page, else, or when the conversation moves meanwhile, in one answer. */
  async getMessages(): Promise<Record<string, unknown>[]> {
    return readHistory((command, params) => this.#ask(this.#pending.nextId(), command, params), this.#version === 2);
  }

  /** Replaces the host's tools; each `run` is called when the model uses the tool. @throws HostError, the old set stays */
  async setHostTools(tools: readonly HostTool[]): Promise<void> {
    await this.#tools.replace(tools, (definitions) =>
      this.#ask(this.#pending.nextId(), "set_host_tools", { tools: definitions }),
    );
  }

  /** Replaces the host's URL schemes. @throws HostError, the old set stays */
  async setHostUriSchemes(schemes: readonly HostUriScheme[]): Promise<void> {
    await this.#uris.replace(schemes, (definitions) =>
      this.#ask(this.#pending.nextId(), "set_host_uri_schemes", { schemes: definitions }),
    );
  }

  /** Ends the daemon's input and waits for its exit; after `graceMs` (default 15 s) it gets TERM, two seconds later KILL. */
  async close(options: { graceMs?: number } = {}): Promise<ExitStatus> {
    if (this.#channel.output.writable) this.#channel.output.end();
    const grace = options.graceMs ?? 15_000;
    const term = setTimeout(() => this.#channel.kill("SIGTERM"), grace);
    const kill = setTimeout(() => this.#channel.kill("SIGKILL"), grace + 2_000);
    const status = await this.#channel.exited;
    clearTimeout(term);
    clearTimeout(kill);
    this.#disconnected();
    return status;
  }

  async #handshake(): Promise<void> {
    const timeoutMs = this.#options.readyTimeoutMs ?? READY_TIMEOUT_MS;
    this.#ready = await this.#feed.waitFor("ready frame", (frame) => frame.type === "ready", { timeoutMs });
    if (this.#options.protocolVersion === 1 || !offersV2(this.#ready)) return;
    await this.#ask(this.#pending.nextId(), "negotiate_protocol", { protocolVersion: 2 }, { timeoutMs });
    this.#version = 2;
  }

  async #ask(id: string, command: string, params: object, options?: RequestOptions): Promise<unknown> {
    if (this.#broken !== undefined) throw new HostError(command, this.#broken.message, this.#broken.code);
    const answer = this.#pending.wait(id, command, options);
    if (options?.signal?.aborted !== true) this.send({ ...params, id, type: command });
    return answer;
  }

  #line(line: string): void {
    if (this.#broken !== undefined) return;
    let frame: Frame | undefined;
    try {
      frame = this.#decoder.decode(line);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      return this.#fail(
        new HostError("connection", `${message}; the line begins: ${line.slice(0, 120)}`, "protocol", { cause: error }),
      );
    }
    if (frame !== undefined) this.#frame(frame);
  }

  #frame(frame: Frame): void {
    this.#run.accept(frame);
    // Watches see answers at once: the whole run may stand in the same chunk, before any promise has moved.
    for (const watch of [...this.#watches]) watch.accept(frame);
    if (frame.type === "response") {
      const settled = this.#pending.settle(frame);
      if (settled === "answered") return;
      if (settled === "late failure") this.#report(failureOf(frame, String(frame["command"])));
    }
    if (!this.#dialogs.handle(frame) && !this.#tools.handle(frame)) this.#uris.handle(frame);
    this.#feed.publish(frame);
  }

  /** The other side cannot be understood any more. */
  #fail(error: HostError): void {
    this.#disconnect(error);
    this.#channel.kill("SIGTERM");
  }

  #disconnected(): void {
    if (this.#broken === undefined) this.#disconnect(new HostError("connection", this.#channel.describeExit(), "disconnected"));
  }

  #disconnect(reason: HostError): void {
    if (this.#broken !== undefined) return;
    this.#broken = reason;
    const failed = (command: string) => new HostError(command, `${reason.message} (while ${command} waited)`, reason.code);
    this.#pending.rejectAll(failed);
    for (const watch of this.#watches) watch.fail(failed("prompt"));
    this.#dialogs.cancelAll();
    this.#tools.cancelAll();
    this.#uris.cancelAll();
    this.#feed.end(reason);
  }

  #report(error: unknown): void {
    try {
      this.#options.onError?.(error instanceof Error ? error : new Error(String(error)));
    } catch (failure) {
      // The host's own bug must surface, but not in the middle of a chunk, where it would take frames with it.
      process.nextTick(() => {
        throw failure;
      });
    }
  }
}

function offersV2(ready: Frame): boolean {
  const { supportedProtocolVersions: versions, maxFrameBytes, maxReassembledFrameBytes } = ready;
  if (!Array.isArray(versions) || !versions.includes(2)) return false;
  return maxFrameBytes === MAX_FRAME_BYTES && maxReassembledFrameBytes === MAX_REASSEMBLED_FRAME_BYTES;
}
