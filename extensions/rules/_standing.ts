// RULES.md of the user and of the project: what always holds, said again in front of the newest prompt with every call of the model,
// because what stands far away at the beginning of a long conversation is easily forgotten (agent-semantics §10 "Rules").
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type AgentMessage, errorMessage } from "mortise/extension";

const MAX_CHARS = 50_000;

/** The files that are read, the user's first. */
export function standingFiles({ home, cwd }: { home: string; cwd: string }): string[] {
  return [join(home, "RULES.md"), join(cwd, ".mortise", "RULES.md")];
}

/** Their texts in one; empty without such a file. What cannot be used is told through `warn`. */
export async function readStanding(files: readonly string[], warn: (message: string) => void): Promise<string> {
  const texts = await Promise.all(files.map((file) => readText(file, warn)));
  return texts.filter((text) => text !== "").join("\n\n");
}

/** The messages with the text in front of the newest one of the user: within a run it stays where it is. */
export function withStanding(messages: readonly AgentMessage[], text: string): AgentMessage[] {
  const last = messages.findLastIndex(({ role }) => role === "user");
  const at = last < 0 ? messages.length : last;
  const content = `Rules that hold for all you do here:\n${text}`;
  const timestamp = messages[at]?.timestamp ?? Date.now();
  return [...messages.slice(0, at), { role: "developer", content, timestamp, attribution: "agent" }, ...messages.slice(at)];
}

async function readText(file: string, warn: (message: string) => void): Promise<string> {
  let text: string;
  try {
    text = (await readFile(file, "utf8")).trim();
  } catch (error) {
    const isMissing = error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
    if (!isMissing) warn(`Rules "${file}" are ignored: ${errorMessage(error)}`);
    return "";
  }
  if (text.length <= MAX_CHARS) return text;
  warn(`Rules "${file}" are ignored: they are longer than ${MAX_CHARS} characters`);
  return "";
}
