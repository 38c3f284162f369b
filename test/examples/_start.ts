// Starts a daemon with examples as a person would have them: copied into the home's extensions folder.
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type StartOptions, startDaemon, type TestDaemon } from "mortise/testing";

const folder = fileURLToPath(new URL(".", import.meta.url));

/** A started daemon that removes its home when it is stopped. */
export async function startWith(examples: readonly string[], options: StartOptions = {}): Promise<TestDaemon> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "mortise-examples-")));
  mkdirSync(join(home, "extensions"));
  for (const name of examples) cpSync(join(folder, name), join(home, "extensions", name), { recursive: true });
  const daemon = await startDaemon({ home, ...options });
  await daemon.daemon.loader.settled();
  const stop = daemon.stop.bind(daemon);
  daemon.stop = async () => {
    await stop();
    rmSync(home, { recursive: true, force: true });
  };
  return daemon;
}

/** The text of the model's last answer. */
export function answerOf(frames: readonly Record<string, unknown>[]): string {
  const end = frames.findLast((frame) => frame["type"] === "message_end" && isAssistant(frame["message"]));
  if (end === undefined) throw new Error("The model gave no answer");
  const { content } = end["message"] as { content: { text?: string }[] };
  return content.map((block) => block.text ?? "").join("");
}

function isAssistant(message: unknown): boolean {
  return typeof message === "object" && message !== null && "role" in message && message.role === "assistant";
}

export function uiFrames(daemon: TestDaemon, method: string) {
  return daemon.frames.filter((frame) => frame.type === "extension_ui_request" && frame["method"] === method);
}
