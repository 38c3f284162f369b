// Frames to JSON text. Extensions put anything into details and results, so what JSON.stringify refuses is repaired, not lost.
import type { Frame } from "../../../protocol/frame.ts";

/** JSON text of a frame. Never throws: cycles, big integers and throwing getters become text that says what stood there. */
export function serializeFrame(frame: Frame): string {
  try {
    return JSON.stringify(frame);
  } catch {
    return serializeRepaired(frame);
  }
}

/** A backslash that is itself escaped, or the escape of a surrogate. `JSON.stringify` escapes only those without their other half. */
const ESCAPE = /\\(?:\\|ud[89a-f][0-9a-f]{2})/gi;

/**
 * JSON text with U+FFFD for halves of characters: `\ud83d` alone is JSON, and strict readers (of Rust, Swift and others) refuse the
 * whole line for it.
 */
export function withWholeCharacters(json: string): string {
  if (!json.includes("\\ud")) return json;
  return json.replace(ESCAPE, (found) => (found.length === 2 ? found : "\\ufffd"));
}

function serializeRepaired(frame: Frame): string {
  try {
    const text = JSON.stringify(plainCopy(frame, []));
    if (text.startsWith("{")) return text;
    throw new Error("it is no object that can be read");
  } catch (error) {
    // Longer than a string can be, or nested deeper than the stack.
    const reason = `Frame cannot be written as JSON: ${error instanceof Error ? error.message : String(error)}`;
    if (frame.type !== "response") return JSON.stringify({ type: "rpc_frame_error", originalType: frame.type, error: reason });
    const { id, command } = frame;
    return JSON.stringify({ id, type: "response", command, success: false, error: reason, code: "too_large" });
  }
}

function plainCopy(value: unknown, ancestors: readonly object[]): unknown {
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object" || value === null) return value;
  if (ancestors.includes(value)) return "[circular reference]";
  try {
    if ("toJSON" in value && typeof value.toJSON === "function") return plainCopy(value.toJSON(), [...ancestors, value]);
    const inside = [...ancestors, value];
    if (Array.isArray(value)) return value.map((item) => plainCopy(item, inside));
    const copy: Record<string, unknown> = {};
    for (const key of Object.keys(value)) copy[key] = memberCopy(value as Record<string, unknown>, key, inside);
    return copy;
  } catch (error) {
    return unreadable(error);
  }
}

/** One member: a getter that throws costs only its own place. */
function memberCopy(value: Record<string, unknown>, key: string, inside: readonly object[]): unknown {
  try {
    return plainCopy(value[key], inside);
  } catch (error) {
    return unreadable(error);
  }
}

function unreadable(error: unknown): string {
  return `[not serialisable: ${error instanceof Error ? error.message : String(error)}]`;
}
