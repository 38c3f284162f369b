// A daemon with the dialects and one unit written for pi, for the tests of this folder.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type StartOptions, startDaemon, type TestDaemon } from "../../../core/testing.ts";
import type { Frame } from "../../../protocol/frame.ts";

const examples = fileURLToPath(new URL("../../examples/pi/", import.meta.url));

/** The text of an example as it would lie in a user's folder. */
export function example(name: string): string {
  return readFileSync(join(examples, `${name}.ts`), "utf8");
}

/**
 * Starts a daemon whose home holds these units, by file name below `extensions/`, and waits until all are loaded: a busy machine
 * may let them follow after the start.
 */
export async function start(units: Record<string, string>, options: StartOptions = {}): Promise<TestDaemon> {
  const files = Object.fromEntries(Object.entries(units).map(([name, text]) => [`extensions/${name}`, text]));
  const daemon = await startDaemon({ ...options, files: { ...files, ...options.files } });
  await daemon.daemon.loader.settled();
  return daemon;
}

/** Frames of one UI method so far. */
export function uiFrames(daemon: TestDaemon, method: string): Frame[] {
  return daemon.frames.filter((frame) => frame.type === "extension_ui_request" && frame["method"] === method);
}

export function notices(daemon: TestDaemon): string[] {
  return uiFrames(daemon, "notify").map((frame) => String(frame["message"]));
}

export function errors(daemon: TestDaemon): Frame[] {
  return daemon.frames.filter((frame) => frame.type === "extension_error");
}

/** The text of the result that ended a tool call. */
export function toolResults(frames: readonly Frame[]): { name: string; text: string; isError: boolean }[] {
  return frames
    .filter((frame) => frame.type === "tool_execution_end")
    .map((frame) => {
      const result = frame["result"] as { content: { text?: string }[] };
      return {
        name: String(frame["toolName"]),
        text: result.content.map((block) => block.text ?? "").join("\n"),
        isError: frame["isError"] === true,
      };
    });
}

/** The text of the last answer of the model among the frames. */
export function answerOf(frames: readonly Frame[]): string {
  const end = frames.findLast((frame) => {
    const message = frame["message"] as { role?: string } | undefined;
    return frame.type === "message_end" && message?.role === "assistant";
  });
  const message = end?.["message"] as { content: { type: string; text?: string }[] } | undefined;
  return (message?.content ?? []).map((block) => block.text ?? "").join("");
}

/** Runs `use` with a daemon that has one unit, `unit.ts`, and others beside it. */
export async function withUnit<T>(
  text: string,
  use: (daemon: TestDaemon) => Promise<T>,
  units: Record<string, string> = {},
): Promise<T> {
  const daemon = await start({ "unit.ts": text, ...units });
  try {
    return await use(daemon);
  } finally {
    await daemon.stop();
  }
}
