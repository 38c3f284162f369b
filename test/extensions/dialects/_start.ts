// A daemon with the dialects and one unit written for pi, for the tests of this folder.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { catalogueUnits } from "../../../core/loader/catalogue.ts";
import type { BuiltinUnit } from "../../../core/loader/host.ts";
import { type StartOptions, startDaemon, type TestDaemon } from "../../../core/testing.ts";
import type { Frame } from "../../../protocol/frame.ts";

const examples = fileURLToPath(new URL("../../examples/pi/", import.meta.url));

/** The text of an example as it would lie in a user's folder. */
export function example(name: string): string {
  return readFileSync(join(examples, `${name}.ts`), "utf8");
}

/** The built-ins as they are in the tree; the generated catalogue may be older than what is tested here. */
let catalogue: Promise<BuiltinUnit[]> | undefined;

async function currentBuiltins(): Promise<BuiltinUnit[]> {
  const root = new URL("../../../", import.meta.url);
  const files = ["extensions", "builtin-tools"].flatMap((folder) =>
    readdirSync(new URL(folder, root), { recursive: true }).map((file) => `${folder}/${String(file)}`),
  );
  return Promise.all(
    catalogueUnits(files).map(async ({ id, name, sources, modules }) => {
      const loaded = await Promise.all(
        modules.map(async (module) => ((await import(new URL(module, root).href)) as { default: unknown }).default),
      );
      return { id, name, sources, definitions: () => loaded };
    }),
  );
}

/** Starts a daemon whose home holds these units, by file name below `extensions/`. */
export async function start(units: Record<string, string>, options: StartOptions = {}): Promise<TestDaemon> {
  const files = Object.fromEntries(Object.entries(units).map(([name, text]) => [`extensions/${name}`, text]));
  catalogue ??= currentBuiltins();
  return startDaemon({ builtins: await catalogue, ...options, files: { ...files, ...options.files } });
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

/** Runs `use` with a throw-away folder. */
export async function withFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "mortise-dialects-"));
  try {
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A file whose replies the `offline/script` model plays. */
export function script(folder: string, yaml: string): string {
  const path = join(folder, "script.yml");
  writeFileSync(path, yaml);
  return path;
}
