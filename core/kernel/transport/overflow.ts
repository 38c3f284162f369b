// What is sent instead of a frame that does not fit on one line (DESIGN §3, "v1, frame over 1 MiB"): a response becomes a failure
// that says what to do, an event is shortened so that it can be seen and stays valid, a request to the host is refused.
import type { Frame } from "../../../protocol/frame.ts";
import { isRecord, shrink } from "./shrink.ts";

export interface Overflow {
  /** Bytes of the JSON text that does not fit. */
  readonly bytes: number;
  /** Bytes that were allowed, as told to the host. */
  readonly limit: number;
  /** Bytes that the substitute may have, newline included. Smaller than `limit` on v2, where it is not sent in chunks. */
  readonly lineLimit: number;
  /** What the host can do about it. */
  readonly wayOut: string;
}

/** A frame that may not be cut: the host would act on half of it. */
const REQUESTS: ReadonlySet<string> = new Set(["host_tool_call", "host_uri_request"]);
const CUTTABLE_UI: ReadonlySet<unknown> = new Set(["notify", "setStatus", "setWidget", "setTitle", "confirm", "input"]);
/** Characters of an id or a name that are given back: as many as fit, within reason. */
const MAX_ECHO = 1024;
const MIN_ECHO = 64;

/** True when a shortened form would make the host do something other than what was asked (a cut file, a cut argument). */
export function mustNotBeCut(frame: Frame): boolean {
  if (REQUESTS.has(frame.type)) return true;
  return frame.type === "extension_ui_request" && !CUTTABLE_UI.has(frame["method"]);
}

export function describeOverflow(what: string, overflow: Overflow): string {
  return `${what} of ${overflow.bytes} bytes exceeds the limit of ${overflow.limit} bytes; ${overflow.wayOut}`;
}

/** The JSON text that stands in for the frame; `streamed` is how many leading messages of an `agent_end` the host has already. */
export function overflowText(frame: Frame, overflow: Overflow, streamed: number): string {
  if (frame.type === "response" && frame["success"] !== false) return failedResponse(frame, overflow);
  if (frame.type === "agent_end") return shortenedAgentEnd(frame, overflow, streamed);
  return shortened(frame, overflow) ?? lastResort(frame, overflow);
}

function failedResponse(frame: Frame, overflow: Overflow): string {
  const { id, command } = frame;
  const text = (echo: number) =>
    JSON.stringify({
      ...(id === undefined ? {} : { id: cap(id, echo) }),
      type: "response",
      command: cap(command, echo),
      success: false,
      error: describeOverflow("Response", overflow),
      code: "too_large",
    });
  const usual = text(MAX_ECHO);
  return fits(usual, overflow) ? usual : text(MIN_ECHO);
}

function shortenedAgentEnd(frame: Frame, overflow: Overflow, streamed: number): string {
  const messages = Array.isArray(frame["messages"]) ? frame["messages"] : [];
  const counted = { ...frame, messages: messages.slice(streamed), messageCount: messages.length };
  const rest = JSON.stringify(counted);
  if (fits(rest, overflow)) return rest;
  return (
    shortened(counted, overflow) ??
    JSON.stringify({ type: "agent_end", messages: [], messageCount: messages.length, frameShortened: note(overflow) })
  );
}

function shortened(frame: Frame, overflow: Overflow): string | undefined {
  for (const small of shrink(frame)) {
    const text = JSON.stringify({ ...small, frameShortened: note(overflow) });
    if (fits(text, overflow)) return text;
  }
  return undefined;
}

function lastResort(frame: Frame, overflow: Overflow): string {
  if (frame.type === "response") return failedResponse(frame, overflow);
  return JSON.stringify({
    type: "rpc_frame_error",
    originalType: cap(frame.type, MIN_ECHO),
    error: describeOverflow("Frame", overflow),
  });
}

function note(overflow: Overflow): string {
  return describeOverflow("Frame", overflow);
}

function fits(text: string, overflow: Overflow): boolean {
  return text.length * 3 < overflow.lineLimit || Buffer.byteLength(text) < overflow.lineLimit;
}

function cap(value: unknown, length: number): unknown {
  return typeof value === "string" && value.length > length ? value.slice(0, length) : value;
}

/** Reads a serialised frame back; only frames that do not fit pay for it. */
export function parseSerialized(json: string, type: string): Frame {
  const value: unknown = JSON.parse(json);
  return isRecord(value) ? { ...value, type } : { type };
}
