// A tool, or the gate that blocks it, may ask that the run end with the turn: the model is not asked again.
import { describe, expect, it } from "vitest";
import type { TestDaemon } from "../../../core/testing.ts";
import { startDaemon } from "../../../core/testing.ts";
import type { Frame } from "../../../protocol/frame.ts";

const files = {
  "extensions/tools.ts": `import { defineTool, defineHook, toolDecide, z } from "mortise/extension";
const tool = (name, run) => defineTool({ name, description: "d", params: z.object({}), run });
export default [
  tool("last", (ctx) => { ctx.endRun(); return "that was it"; }),
  tool("plain", () => "go on"),
  tool("waits", async (ctx) => { ctx.endRun(); await new Promise((resolve) => setTimeout(resolve, 200)); return "waited"; }),
  tool("guarded", () => "never"),
  tool("outer", async (ctx) => { await ctx.runTool("last", {}); return "outer is no end"; }),
  tool("over", (ctx) => { setTimeout(() => ctx.endRun(), 5); return "too late to end"; }),
  defineHook(toolDecide, ({ toolName }) => (toolName === "guarded" ? { block: true, reason: "No", endRun: true } : undefined)),
];
`,
  "extensions/for-pi.ts": `
export default function (pi) {
  const parameters = { type: "object", properties: {} };
  pi.registerTool({ name: "pi_last", description: "d", parameters, execute: async () => ({ content: [{ type: "text", text: "structured" }], details: { answer: 1 }, terminate: true }) });
  pi.registerTool({ name: "pi_guarded", description: "d", parameters, execute: async () => "never" });
  pi.on("tool_call", (event) => (event.toolName === "pi_guarded" ? { block: true, reason: "No", terminate: true } : undefined));
}
`,
};

async function withDaemon(use: (daemon: TestDaemon) => Promise<void>): Promise<void> {
  const daemon = await startDaemon({ files });
  try {
    await daemon.daemon.loader.settled();
    await use(daemon);
    expect(daemon.frames.filter((frame) => frame.type === "extension_error")).toEqual([]);
  } finally {
    await daemon.stop();
  }
}

const answers = (frames: readonly Frame[]) =>
  frames.filter((frame) => frame.type === "message_end" && (frame["message"] as { role: string }).role === "assistant");

describe("endRun", () => {
  it("ends the run when every call of the turn asks for it, and only then", async () => {
    await withDaemon(async (daemon) => {
      for (const name of ["last", "guarded", "pi_last", "pi_guarded"]) {
        const frames = await daemon.prompt(`call ${name} {}`);
        expect(answers(frames), name).toHaveLength(1);
        expect(frames.at(-1)?.type).toBe("agent_end");
        expect(frames.filter((frame) => frame.type === "turn_end")).toHaveLength(1);
      }
      expect(answers(await daemon.prompt("call last {}\ncall pi_last {}\ncall guarded {}"))).toHaveLength(1);
      expect(answers(await daemon.prompt("call last {}\ncall plain {}"))).toHaveLength(2);
      expect(answers(await daemon.prompt("call outer {}"))).toHaveLength(2);
      expect(answers(await daemon.prompt("call over {}"))).toHaveLength(2);
      // The next prompt is an ordinary one, and its request is paired.
      expect(answers(await daemon.prompt("hello"))).toHaveLength(1);
    });
  });

  it("goes on with what is queued", async () => {
    await withDaemon(async (daemon) => {
      const run = daemon.prompt("call waits {}");
      await daemon.next("tool_execution_start");
      await daemon.ask("follow_up", { message: "and this" });
      const frames = await run;
      expect(JSON.stringify(answers(frames).at(-1))).toContain("and this");
      expect(frames.filter((frame) => frame.type === "agent_end")).toHaveLength(1);
    });
  });

  it("an abort stays an abort", async () => {
    await withDaemon(async (daemon) => {
      const run = daemon.prompt("call waits {}");
      await daemon.next("tool_execution_start");
      await daemon.ask("abort");
      expect(answers(await run).at(-1)).toMatchObject({ message: { stopReason: "aborted" } });
    });
  });
});
