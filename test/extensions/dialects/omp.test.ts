// Units written for oh-my-pi and veyyon: what differs from pi (extensions.md §3.2 "Dialect differences").
import { describe, expect, it } from "vitest";
import { answerOf, errors, notices, start, toolResults } from "./_start.ts";

describe("oh-my-pi", () => {
  it("pi.zod, pi.typebox and pi.logger are there; a type import alone makes the dialect", async () => {
    const daemon = await start({
      "unit.ts": `
        import type { ExtensionAPI } from "@oh-my-pi/pi-coding-agent";
        export default function (pi: ExtensionAPI) {
          const { z } = pi.zod;
          pi.logger.debug("loading");
          pi.registerTool({
            name: "with_zod", label: "Z", description: "zod",
            parameters: z.object({ n: z.number().default(4) }),
            async execute(id, params, signal, onUpdate, ctx) { return { content: [{ type: "text", text: "n=" + params.n + " " + typeof ctx.setTimeout }] }; },
          });
          pi.registerTool({
            name: "with_typebox", description: "typebox",
            parameters: pi.typebox.Type.Object({ s: pi.typebox.Type.String() }),
            async execute(id, params) { return { content: [{ type: "text", text: params.s + pi.pi.VERSION.slice(0, 2) }] }; },
          });
        }`,
    });
    try {
      expect(errors(daemon)).toEqual([]);
      expect(toolResults(await daemon.prompt("call with_zod {}"))[0]?.text).toBe("n=4 function");
      expect(toolResults(await daemon.prompt('call with_typebox {"s": "v"}'))[0]?.text).toBe("v18");
    } finally {
      await daemon.stop();
    }
  });

  it.each([
    ["@oh-my-pi/pi-coding-agent", "invokeTool"],
    ["@earendil-works/pi-coding-agent", "executeTool"],
  ])("a tool of %s reaches the one it took the place of by %s, and tools that call each other end", async (spec, method) => {
    const wraps = (name: string, called: string) => `
      pi.registerTool({ name: "${name}", label: "x", description: "x", parameters: { type: "object", properties: {} },
        async execute(id, params, signal, onUpdate, ctx) {
          globalThis.calls++;
          const inner = await ctx.${method}("${called}", {});
          return { content: [{ type: "text", text: "<" + inner.content[0].text + ">" }] };
        } });`;
    const daemon = await start({
      "unit.ts": `import type { ExtensionAPI } from "${spec}";
        export default function (pi) { globalThis.calls = 0; ${wraps("ls", "ls")} ${wraps("ping", "pong")} ${wraps("pong", "ping")} ${wraps("alone", "alone")} }`,
    });
    try {
      expect(errors(daemon)).toEqual([]);
      expect(toolResults(await daemon.prompt("call ls {}"))[0]).toMatchObject({
        isError: false,
        text: expect.stringMatching(/^<[^<]*>$/),
      });
      for (const name of ["ping", "alone"]) {
        const [result] = toolResults(await daemon.prompt(`call ${name} {}`));
        expect(result?.text).toMatch(/^<{8}Cannot call \w+: tools call each other 8 deep at most>{8}$/);
      }
    } finally {
      await daemon.stop();
    }
  });

  it("runEphemeralTurn asks the model with the conversation before it and leaves nothing in it", async () => {
    const daemon = await start({
      "unit.ts": `import type { ExtensionAPI } from "@oh-my-pi/pi-coding-agent";
        export default function (pi) {
          pi.registerCommand("aside", { handler: async (args, ctx) => {
            const pieces = [];
            const { replyText, assistantMessage } = await ctx.runEphemeralTurn({ promptText: args, onTextDelta: (text) => pieces.push(text) });
            ctx.ui.notify([replyText, assistantMessage.role, ...pieces].join());
          } });
        }`,
    });
    try {
      await daemon.prompt("first");
      await daemon.prompt("/aside what was that");
      expect(notices(daemon)).toEqual(["what was that,assistant,what was that"]);
      await daemon.prompt("/aside");
      expect(errors(daemon).map((frame) => frame["error"])).toEqual(["runEphemeralTurn needs a promptText"]);
      expect(JSON.stringify(await daemon.ask("get_messages"))).not.toContain("what was that");
    } finally {
      await daemon.stop();
    }
  });

  it("input answers {handled, text}, system prompts are blocks, commands may answer a prompt, branches are switches", async () => {
    const daemon = await start({
      "unit.ts": `
        import type { HookAPI } from "@oh-my-pi/pi-coding-agent/hooks";
        export default function (pi: HookAPI) {
          const log = [];
          pi.on("input", (event) => event.text === "stop" ? { handled: true } : event.text === "swap" ? { text: "swapped" } : undefined);
          pi.on("before_agent_start", (event, ctx) => {
            log.push(Array.isArray(event.systemPrompt), Array.isArray(ctx.getSystemPrompt()));
            return { systemPrompt: [...event.systemPrompt, "BLOCK"] };
          });
          pi.on("session_start", (event) => { log.push("start " + event.reason); });
          pi.on("session_before_branch", (event) => { log.push("before " + typeof event.entryId); });
          pi.on("session_branch", () => { log.push("branch"); });
          pi.on("session_switch", (event) => { log.push("switch " + event.reason); });
          pi.registerCommand("expand", { handler: async (args) => "expanded " + args });
          pi.registerCommand("log", { handler: async (_args, ctx) => { ctx.ui.notify(JSON.stringify(log)); } });
        }`,
    });
    try {
      const stopped = await daemon.prompt("stop");
      expect(stopped.some((frame) => frame.type === "agent_start")).toBe(false);
      expect(answerOf(await daemon.prompt("swap"))).toBe("swapped");
      expect(answerOf(await daemon.prompt("/expand me"))).toBe("expanded me");
      const { messages } = (await daemon.ask("get_branch_messages")) as { messages: { entryId: string }[] };
      await daemon.ask("branch", { entryId: messages[1]?.entryId });
      await daemon.ask("new_session");
      const from = daemon.frames.length;
      await daemon.prompt("/log");
      const notice = await daemon.next((frame) => frame["method"] === "notify", { after: from });
      const log: unknown[] = JSON.parse(String(notice["message"]));
      expect(log).toEqual(["start startup", true, true, true, true, "before string", "branch", "switch fork", "switch new"]);
      expect(errors(daemon)).toEqual([]);
    } finally {
      await daemon.stop();
    }
  });

  it("older tool folders: the factory gives back tools whose signal comes last, with session events and dispose", async () => {
    const daemon = await start({
      "unit.ts": `
        import type { CustomToolFactory } from "@oh-my-pi/pi-coding-agent";
        const factory: CustomToolFactory = (pi) => [
          {
            name: "older", label: "Older", description: "order",
            parameters: pi.typebox.Type.Object({}),
            async execute(id, params, onUpdate, ctx, signal) {
              onUpdate?.({ content: [{ type: "text", text: "half" }] });
              return { content: [{ type: "text", text: [typeof onUpdate, signal instanceof AbortSignal, typeof ctx.sessionManager, pi.cwd.length > 0].join() }] };
            },
            onSession(event, ctx) { ctx.ui.notify("session " + event.reason); },
            dispose() { globalThis.disposed = (globalThis.disposed ?? 0) + 1; },
          },
        ];
        export default factory;`,
    });
    try {
      expect(errors(daemon)).toEqual([]);
      expect(toolResults(await daemon.prompt("call older {}"))[0]?.text).toBe("function,true,object,true");
      await daemon.ask("new_session");
      expect(notices(daemon)).toEqual(["session start", "session switch"]);
    } finally {
      await daemon.stop();
    }
    expect((globalThis as { disposed?: number }).disposed).toBe(1);
    expect(notices(daemon).at(-1)).toBe("session shutdown");
  });

  it("owned timers end with the unit, and their errors are the unit's", async () => {
    const daemon = await start({
      "unit.ts": `
        import "@oh-my-pi/pi-coding-agent";
        export default (pi) => { pi.on("session_start", (event, ctx) => {
          ctx.setTimeout(() => { throw new Error("Late"); }, 1);
          const timer = ctx.setInterval(() => ctx.ui.notify("never"), 1);
          ctx.clearTimer(timer);
        }); };`,
    });
    try {
      expect(await daemon.next("extension_error", { after: 0 })).toMatchObject({ error: "Late", event: "timer" });
      expect(notices(daemon)).toEqual([]);
    } finally {
      await daemon.stop();
    }
  });
});

describe("veyyon", () => {
  it("runs with the same surface under its own names", async () => {
    const daemon = await start({
      "unit.ts": `
        import { defineTool } from "@veyyon/coding-agent";
        import { StringEnum, Type } from "@veyyon/ai";
        import { Text } from "@veyyon/tui";
        export default (pi) => pi.registerTool(defineTool({
          name: "pick", description: "p", parameters: Type.Object({ mode: StringEnum(["a", "b"]) }),
          renderCall: () => new Text("x", 0, 0),
          execute: async (id, { mode }) => ({ content: [{ type: "text", text: mode }], details: { z: typeof pi.zod.z.object } }),
        }));`,
    });
    try {
      expect(errors(daemon)).toEqual([]);
      expect(toolResults(await daemon.prompt('call pick {"mode": "b"}'))[0]).toMatchObject({ text: "b", isError: false });
      expect(toolResults(await daemon.prompt('call pick {"mode": "c"}'))[0]).toMatchObject({ isError: true });
    } finally {
      await daemon.stop();
    }
  });
});
