// A whole daemon whose extensions are edited while it runs.
import { afterEach } from "vitest";
import { type StartOptions, startDaemon, type TestDaemon } from "../../core/testing.ts";
import type { Frame } from "../../protocol/frame.ts";

export function useDaemons() {
  const started: TestDaemon[] = [];
  afterEach(async () => {
    for (const daemon of started.splice(0).reverse()) await daemon.stop();
  });
  return async (options: StartOptions = {}): Promise<TestDaemon> => {
    const daemon = await startDaemon(options);
    started.push(daemon);
    await daemon.daemon.loader.watching;
    return daemon;
  };
}

/** A tool `name` that answers with a text. */
export const tool = (name: string, answer: string, more = "") =>
  `import * as m from "mortise/extension";\n${more}\nexport default m.defineTool({ name: "${name}", description: "d", params: m.z.object({}), run: () => ${JSON.stringify(answer)} });\n`;

/** An extension with set-up code over the door as `m`. */
export const setup = (body: string, head = "") =>
  `import * as m from "mortise/extension";\n${head}\nexport default m.defineExtension({ name: "e", async setup(scope) { ${body} } });\n`;

/** Text of the results of all tool calls of a prompt. */
export async function callTool(daemon: TestDaemon, name: string, args: Record<string, unknown> = {}): Promise<string> {
  return resultOf(await daemon.prompt(`call ${name} ${JSON.stringify(args)}`));
}

export function resultOf(frames: readonly Frame[]): string {
  const ends = frames.filter((frame) => frame.type === "tool_execution_end");
  return ends
    .flatMap((frame) => ((frame["result"] as { content?: { text?: string }[] }).content ?? []).map((block) => block.text ?? ""))
    .join("\n");
}

export function unitAt(daemon: TestDaemon, path: string) {
  return daemon.daemon.loader.units().find((unit) => unit.path === `${daemon.home}/${path}`);
}

export async function until(what: string, check: () => unknown, limitMs = 10_000): Promise<void> {
  for (const start = Date.now(); !(await check()); ) {
    if (Date.now() - start > limitMs) throw new Error(`Waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Waits until a generation of the unit, at least this one, answers. */
export function generation(daemon: TestDaemon, path: string, number: number): Promise<void> {
  return until(`generation ${number} of ${path}`, () => (unitAt(daemon, path)?.generation ?? 0) >= number);
}
