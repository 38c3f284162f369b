// What the fake model services share: an HTTP server on 127.0.0.1 that checks each request, records it, and plays the next
// scripted reply as server-sent events. It refuses what the real service refuses, so a test cannot pass with a request that
// would fail in the field.
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

export interface FakeToolCall {
  id?: string;
  name: string;
  arguments?: unknown;
  /** Raw JSON text instead of `arguments`; may be broken. Empty string: no argument text at all. */
  json?: string;
  /** Characters per delta; one delta when absent. */
  chunk?: number;
  /** The block is never closed. */
  unclosed?: boolean;
}

/** One answer. Blocks come in the order thinking, redacted thinking, text, tool calls. */
export interface FakeReply {
  /** A string is cut into `chunk` characters; an array gives the deltas as they are. */
  text?: string | readonly string[];
  chunk?: number;
  thinking?: string;
  signature?: string;
  redactedThinking?: string;
  toolCalls?: readonly FakeToolCall[];
  /** In the words of `ProviderEvent`; another string is sent as the service's own word. */
  stop?: "stop" | "length" | "toolUse" | (string & {});
  usage?: { input?: number; output?: number; cacheRead?: number; cacheWrite?: number; reasoning?: number };
  /** Wait before every event. */
  delayMs?: number;
  /** Waits for the promise after that many events (default: before the first). */
  hold?: Promise<unknown>;
  holdAfter?: number;
  /** Breaks off after that many events: `destroy` resets the connection, `end` closes it in order. */
  cutAfter?: number;
  cut?: "destroy" | "end";
  /** Sends the service's in-stream error event after `cutAfter` events (default: all content). */
  streamError?: { type: string; message: string };
  /** An HTTP failure in the service's form. */
  failure?: { status: number; type?: string; message?: string; headers?: Record<string, string>; body?: string };
  /** The response as it is: for malformed streams. */
  raw?: {
    status?: number;
    headers?: Record<string, string>;
    writes: readonly (string | Uint8Array)[];
    /** Wait between writes. */
    gapMs?: number;
    end?: "end" | "destroy" | "open";
  };
}

export type ScriptEntry = FakeReply | ((request: RecordedRequest) => FakeReply | Promise<FakeReply>);

export interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The parsed JSON body; undefined when there was none. */
  readonly body: unknown;
  /** Why the request was refused; undefined when it was fine. */
  refusal: string | undefined;
  /** Resolves when the exchange is over: true when the client went away before the end. */
  readonly closed: Promise<boolean>;
}

export interface FakeServer {
  /** Without a trailing slash. */
  readonly url: string;
  /** Requests for an answer, oldest first; refused ones included. */
  readonly requests: RecordedRequest[];
  /** How many connections were opened so far. */
  readonly connections: number;
  /** Appends replies; each request takes one. */
  script(...replies: ScriptEntry[]): void;
  /** Answers once the script is empty; without it the request fails with status 500. */
  otherwise(reply: ScriptEntry | undefined): void;
  /** Resolves with the request once so many have arrived. */
  request(count: number): Promise<RecordedRequest>;
  close(): Promise<void>;
}

/** How one service speaks. */
export interface Dialect {
  /** Handles requests beside the answers (`/v1/models`); true when it did. */
  other?(request: RecordedRequest, response: ServerResponse): boolean;
  /** The reason to refuse, with its status. */
  refuse(request: RecordedRequest): { status: number; type: string; message: string } | undefined;
  /** The events of a reply, each as it is sent. The last `tail` ones end the answer. */
  render(reply: FakeReply, request: RecordedRequest): { events: string[]; tail: number };
  errorBody(type: string, message: string): string;
  errorEvent(type: string, message: string): string;
}

export async function startFakeServer(dialect: Dialect): Promise<FakeServer> {
  const requests: RecordedRequest[] = [];
  const queue: ScriptEntry[] = [];
  const waiting: Array<{ count: number; resolve: (request: RecordedRequest) => void }> = [];
  const sockets = new Set<Socket>();
  let fallback: ScriptEntry | undefined;
  let connections = 0;

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const rawBody = await readBody(incoming);
    const request = record(incoming, response, rawBody);
    if (dialect.other?.(request, response)) return;
    const refusal = dialect.refuse(request);
    request.refusal = refusal?.message;
    requests.push(request);
    for (const waiter of waiting.splice(0)) {
      const found = requests[waiter.count - 1];
      if (found) waiter.resolve(found);
      else waiting.push(waiter);
    }
    if (refusal) return fail(response, refusal.status, dialect.errorBody(refusal.type, refusal.message));
    const entry = queue.shift() ?? fallback;
    if (entry === undefined)
      return fail(response, 500, dialect.errorBody("api_error", "The script of this fake has no reply left"));
    await play(dialect, typeof entry === "function" ? await entry(request) : entry, request, response);
  }

  const server = createServer((incoming, response) => {
    answer(incoming, response).catch(() => incoming.socket.destroy());
  });
  server.on("connection", (socket) => {
    connections++;
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;

  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    get connections() {
      return connections;
    },
    script: (...replies) => void queue.push(...replies),
    otherwise: (reply) => {
      fallback = reply;
    },
    request: (count) => {
      const found = requests[count - 1];
      return found ? Promise.resolve(found) : new Promise((resolve) => waiting.push({ count, resolve }));
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

function record(incoming: IncomingMessage, response: ServerResponse, rawBody: string): RecordedRequest {
  const closed = new Promise<boolean>((resolve) => response.on("close", () => resolve(!response.writableFinished)));
  let body: unknown;
  try {
    body = rawBody === "" ? undefined : JSON.parse(rawBody);
  } catch {
    // The dialect refuses a request whose body is not JSON.
    body = undefined;
  }
  return {
    method: incoming.method ?? "GET",
    path: incoming.url ?? "/",
    headers: incoming.headers,
    body,
    refusal: undefined,
    closed,
  };
}

async function readBody(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}

function fail(response: ServerResponse, status: number, body: string, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(body);
}

const streamHeaders = { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" };

async function play(dialect: Dialect, reply: FakeReply, request: RecordedRequest, response: ServerResponse): Promise<void> {
  if (reply.raw) return playRaw(reply.raw, response);
  if (reply.failure) {
    const { status, type = "api_error", message = "Scripted failure", headers, body } = reply.failure;
    return fail(response, status, body ?? dialect.errorBody(type, message), headers);
  }
  const { events, tail } = dialect.render(reply, request);
  let last = events.length;
  if (reply.cutAfter !== undefined) last = Math.min(reply.cutAfter, last);
  else if (reply.streamError || reply.cut) last = events.length - tail;
  const sent = events.slice(0, last);
  if (reply.streamError) sent.push(dialect.errorEvent(reply.streamError.type, reply.streamError.message));
  const end = reply.cut ?? (reply.cutAfter !== undefined && !reply.streamError ? "destroy" : "end");

  response.writeHead(200, streamHeaders);
  if (reply.delayMs === undefined) {
    const holdAt = reply.hold ? (reply.holdAfter ?? 0) : undefined;
    if (holdAt !== undefined) {
      response.flushHeaders();
      if (holdAt > 0) await write(response, sent.slice(0, holdAt).join(""));
      await Promise.race([reply.hold, request.closed]);
    }
    await write(response, sent.slice(holdAt ?? 0).join(""));
  } else {
    for (const [place, event] of sent.entries()) {
      if (place === (reply.holdAfter ?? 0) && reply.hold) await Promise.race([reply.hold, request.closed]);
      await delay(reply.delayMs);
      if (response.destroyed) return;
      await write(response, event);
    }
  }
  finish(response, end);
}

async function playRaw(raw: NonNullable<FakeReply["raw"]>, response: ServerResponse): Promise<void> {
  response.writeHead(raw.status ?? 200, raw.headers ?? streamHeaders);
  response.flushHeaders();
  for (const piece of raw.writes) {
    await write(response, piece);
    if (raw.gapMs !== undefined) await delay(raw.gapMs);
    if (response.destroyed) return;
  }
  finish(response, raw.end ?? "end");
}

/** Resolves when the kernel has the bytes, so that a following `destroy` does not overtake them. */
function write(response: ServerResponse, data: string | Uint8Array): Promise<void> {
  if (data.length === 0 || response.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    response.once("close", resolve);
    response.write(data, () => {
      response.off("close", resolve);
      resolve();
    });
  });
}

function finish(response: ServerResponse, end: "end" | "destroy" | "open"): void {
  if (end === "end") response.end();
  // The bytes written last are on their way; a reset in the same tick would drop them at the receiver.
  else if (end === "destroy") setTimeout(() => response.socket?.destroy(), 20);
}

/** Cuts a text into pieces of at most `size` characters, never inside a surrogate pair. */
export function cut(text: string | readonly string[], size: number | undefined): readonly string[] {
  if (typeof text !== "string") return text;
  if (text === "") return [];
  if (size === undefined) return [text];
  return text.match(new RegExp(`[^]{1,${size}}`, "gu")) ?? [];
}

/** True for what the services' JSON decoders refuse: half of a surrogate pair in any string. */
export function hasLoneSurrogate(value: unknown): boolean {
  if (typeof value === "string") return /\p{Surrogate}/u.test(value);
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([key, inner]) => hasLoneSurrogate(key) || hasLoneSurrogate(inner));
}

/** What a picture of that type begins with. */
export function imageProblem(data: string, mimeType: string): string | undefined {
  if (data.length === 0 || data.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(data)) return "invalid base64 data";
  const bytes = Buffer.from(data, "base64");
  const is = (offset: number, text: string) => bytes.subarray(offset, offset + text.length).toString("latin1") === text;
  const found = is(0, "\x89PNG\r\n\x1a\n")
    ? "image/png"
    : is(0, "\xff\xd8\xff")
      ? "image/jpeg"
      : is(0, "GIF8")
        ? "image/gif"
        : is(0, "RIFF") && is(8, "WEBP")
          ? "image/webp"
          : undefined;
  if (found === undefined) return "Could not process image";
  return found === mimeType ? undefined : `the image appears to be ${found} and not ${mimeType}`;
}
