// Lifecycle events and actions of the pi object.
import { describe, expect, it } from "vitest";
import type { TestDaemon } from "../../../core/testing.ts";
import { answerOf, errors, notices, start, toolResults, withUnit } from "./_start.ts";

describe("loading", () => {
  it("actions are refused while the extension loads, with what to do instead", async () => {
    await withUnit(`export default function (pi) { pi.sendUserMessage("too early"); }`, async (daemon) => {
      expect(errors(daemon)).toEqual([
        expect.objectContaining({
          error: expect.stringContaining("sendUserMessage cannot be used while the extension loads; use it in session_start"),
        }),
      ]);
    });
  });

  it("every method works detached, also after an await in an async factory", async () => {
    const text = `
      export default async function ({ on, registerCommand, registerFlag, getFlag, events, exec, getActiveTools, getAllTools, getThinkingLevel }) {
        await Promise.resolve();
        registerFlag("loud", { type: "boolean", default: true });
        on("session_start", async (_event, { ui }) => {
          const { notify } = ui;
          notify(["start", getFlag("loud"), getFlag("other"), getActiveTools().includes("bash"), getAllTools().some((tool) => tool.name === "bash" && tool.parameters.type === "object"), getThinkingLevel()].join());
        });
        registerCommand("run", { handler: async (args, ctx) => {
          const done = await exec("sh", ["-c", "echo out; echo err >&2; exit 3"]);
          ctx.ui.notify(JSON.stringify(done));
        } });
      }`;
    await withUnit(text, async (daemon) => {
      expect(notices(daemon)[0]).toBe("start,true,,true,true,off");
      await daemon.prompt("/run");
      await daemon.next((frame) => String(frame["message"]).includes("stdout"), { after: 0 });
      expect(JSON.parse(notices(daemon)[1] ?? "")).toEqual({ stdout: "out\n", stderr: "err\n", code: 3, killed: false });
    });
  });
});

describe("before_agent_start, context and requests", () => {
  const text = `
    export default function (pi) {
      const seen = [];
      pi.on("before_agent_start", (event, ctx) => {
        seen.push(event.prompt, ctx.getSystemPrompt() === event.systemPrompt, event.systemPrompt.includes("PIRATE"));
        if (!event.prompt.includes("pirate")) return;
        return { systemPrompt: event.systemPrompt + "\\n\\nPIRATE", message: { customType: "note", content: "Ahoy", display: false } };
      });
      pi.on("context", (event) => ({
        messages: event.messages.map((message) => message.role === "user" ? { ...message, content: [{ type: "text", text: "CHANGED" }] } : message),
      }));
      pi.on("before_provider_request", (event) => { seen.push(event.payload.systemPrompt.some((block) => block.includes("PIRATE"))); });
      pi.on("after_provider_response", (event) => { seen.push(event.status); });
      pi.registerCommand("seen", { handler: async (_args, ctx) => { ctx.ui.notify(JSON.stringify(seen)); } });
    }`;

  it("agent-semantics §12 item 65: prompt changes hold for one run; messages are added; context changes are not stored", async () => {
    await withUnit(text, async (daemon) => {
      const first = await daemon.prompt("be a pirate");
      // The offline model repeats the last user text, which the added message is for a model.
      expect(answerOf(first)).toBe("Ahoy");
      expect(answerOf(await daemon.prompt("be plain"))).toBe("CHANGED");
      const from = daemon.frames.length;
      await daemon.prompt("/seen");
      const notice = await daemon.next((frame) => frame["method"] === "notify", { after: from });
      expect(JSON.parse(String(notice["message"]))).toEqual([
        "be a pirate",
        true,
        false,
        true,
        200,
        "be plain",
        true,
        false,
        false,
        200,
      ]);
      const { messages } = (await daemon.ask("get_messages")) as { messages: { role: string; content: unknown }[] };
      expect(messages.map((message) => message.role)).toEqual(["user", "custom", "assistant", "user", "assistant"]);
      expect(JSON.stringify(messages[0])).toContain("be a pirate");
      expect(errors(daemon)).toEqual([]);
    });
  });
});

describe("messages", () => {
  const text = `
    export default function (pi) {
      pi.registerCommand("ask", { handler: async (args) => { pi.sendUserMessage(args || "from the command"); } });
      pi.registerCommand("note", { handler: async (args) => { pi.sendMessage({ customType: "note", content: args, display: true }, { triggerTurn: args === "go" }); } });
      pi.registerCommand("quiet", { handler: async () => {} });
      pi.registerCommand("broken", { handler: async () => { throw new Error("Cannot do that"); } });
      pi.on("turn_start", (event) => { if (event.turnIndex === 0) pi.sendUserMessage("steered in", {}); }) ;
    }`;

  it("agent-semantics §12 item 12: a command that sends a user message starts a turn and reports no local-only end", async () => {
    await withUnit(text.replace(/pi\.on.*\n/, ""), async (daemon) => {
      const frames = await daemon.prompt("/ask hello there");
      expect(answerOf(frames)).toContain("hello there");
      const own = frames.filter(
        (frame) =>
          frame["agentInvoked"] === false || (frame["data"] as { agentInvoked?: boolean } | undefined)?.agentInvoked === false,
      );
      expect(own).toEqual([]);
      const quiet = await daemon.prompt("/quiet");
      expect(quiet.some((frame) => frame.type === "prompt_result" && frame["agentInvoked"] === false)).toBe(true);
    });
  });

  it("agent-semantics §12 item 14: a message without delivery mode during streaming steers instead of failing", async () => {
    await withUnit(text, async (daemon) => {
      await daemon.prompt("first");
      await daemon.ask("get_state");
      const { messages } = (await daemon.ask("get_messages")) as { messages: { role: string; content: unknown }[] };
      expect(messages.filter((message) => message.role === "user").length).toBeGreaterThanOrEqual(2);
      expect(JSON.stringify(messages)).toContain("steered in");
      expect(errors(daemon)).toEqual([]);
    });
  });

  it("sendMessage stores a custom message and starts a turn only when asked", async () => {
    await withUnit(text.replace(/pi\.on.*\n/, ""), async (daemon) => {
      const silent = await daemon.prompt("/note silent");
      expect(silent.some((frame) => frame.type === "agent_start")).toBe(false);
      const frames = await daemon.prompt("/note go");
      expect(frames.some((frame) => frame.type === "agent_start")).toBe(true);
    });
  });

  it("a failing command is reported and counts as handled", async () => {
    await withUnit(text.replace(/pi\.on.*\n/, ""), async (daemon) => {
      const frames = await daemon.prompt("/broken");
      expect(frames.some((frame) => frame.type === "agent_start")).toBe(false);
      expect(errors(daemon)).toEqual([expect.objectContaining({ event: "command:broken", error: "Cannot do that" })]);
    });
  });
});

describe("sessions", () => {
  const text = `
    export default function (pi) {
      const log = [];
      let cancel = false;
      const names = ["session_start", "session_before_switch", "session_before_fork", "session_shutdown", "agent_settled", "session_before_tree", "session_tree"];
      for (const name of names) pi.on(name, (event) => { log.push(name + ":" + (event.reason ?? "")); if (cancel && name.includes("before")) return { cancel: true }; });
      pi.registerCommand("cancel", { handler: async (args) => { cancel = args === "on"; } });
      pi.registerCommand("log", { handler: async (_args, ctx) => { ctx.ui.notify(log.join(" ")); } });
      pi.registerCommand("fresh", { handler: async (_args, ctx) => {
        await ctx.waitForIdle();
        const { cancelled } = await ctx.newSession({
          setup: async (manager) => { manager.appendCustomEntry("seed", { from: "setup" }); },
          withSession: async (next) => { next.ui.notify("in " + next.sessionManager.getEntries().filter((entry) => entry.customType === "seed").length); },
        });
        log.push("fresh:" + cancelled);
      } });
      pi.registerCommand("mark", { handler: async (args, ctx) => { pi.setLabel(ctx.sessionManager.getLeafId(), args); } });
      pi.registerCommand("tree", { handler: async (_args, ctx) => {
        const [first] = ctx.sessionManager.getBranch().filter((entry) => entry.type === "message");
        await ctx.navigateTree(first.id);
        ctx.ui.notify("labels " + ctx.sessionManager.getEntries().map((entry) => ctx.sessionManager.getLabel(entry.id)).filter(Boolean).join() + " branch " + ctx.sessionManager.getBranch().filter((entry) => entry.type === "message").length);
      } });
    }`;
  const lastNotice = async (daemon: TestDaemon, command: string) => {
    const from = daemon.frames.length;
    await daemon.prompt(command);
    return String((await daemon.next((frame) => frame["method"] === "notify", { after: from }))["message"]);
  };

  it("a new session starts again, and a handler may keep the old one", async () => {
    await withUnit(text, async (daemon) => {
      await daemon.prompt("hello");
      const before = (await daemon.ask("get_state"))["sessionId"];
      await daemon.prompt("/cancel on");
      expect(await daemon.ask("new_session")).toEqual({ cancelled: true });
      expect((await daemon.ask("get_state"))["sessionId"]).toBe(before);
      await daemon.prompt("/cancel off");
      expect(await daemon.ask("new_session")).toEqual({ cancelled: false });
      expect((await daemon.ask("get_state"))["sessionId"]).not.toBe(before);
      expect(await lastNotice(daemon, "/log")).toBe(
        "session_start:startup agent_settled: session_before_switch:new session_before_switch:new session_start:new",
      );
      expect(errors(daemon)).toEqual([]);
    });
  });

  it("a command may make a session, fill it and go on in it", async () => {
    await withUnit(text, async (daemon) => {
      await daemon.prompt("hello");
      expect(await lastNotice(daemon, "/fresh")).toBe("in 1");
      expect(await lastNotice(daemon, "/log")).toContain("session_start:new");
      expect(errors(daemon)).toEqual([]);
    });
  });

  it("labels and moving in the tree", async () => {
    await withUnit(text, async (daemon) => {
      await daemon.prompt("one");
      await daemon.prompt("/mark here");
      expect(await lastNotice(daemon, "/tree")).toBe("labels here branch 1");
      const { messages } = (await daemon.ask("get_messages")) as { messages: unknown[] };
      expect(messages).toHaveLength(1);
      expect(await lastNotice(daemon, "/log")).toMatch(/session_before_tree: session_tree:$/);
      await daemon.prompt("two");
      await daemon.prompt("/cancel on");
      expect(await lastNotice(daemon, "/tree")).toMatch(/branch [2-9]$/);
    });
  });

  it("session_shutdown hears of the daemon's end while its session is still there", async () => {
    const daemon = await start({
      "unit.ts": `export default function (pi) {
        pi.on("session_shutdown", (event, ctx) => { ctx.ui.notify(event.reason + " " + ctx.sessionManager.getEntries().length); });
      }`,
    });
    const { frames } = daemon;
    await daemon.prompt("hello");
    await daemon.stop();
    const last = frames.filter((frame) => frame["method"] === "notify");
    expect(last.map((frame) => frame["message"])).toEqual([expect.stringMatching(/^quit [1-9]\d*$/)]);
  });

  it("agent-semantics §12 item 59: hanging session_shutdown handlers share one short budget", async () => {
    const hanging = `export default function (pi) { pi.on("session_shutdown", () => new Promise(() => {})); }`;
    const daemon = await start({ "a.ts": hanging, "b.ts": hanging, "c.ts": hanging });
    const started = performance.now();
    await daemon.stop();
    expect(performance.now() - started).toBeLessThan(4000);
  });
});

describe("user_bash", () => {
  it("a handler may answer the host's command or run it elsewhere; the record is kept", async () => {
    const text = `
      export default function (pi) {
        pi.on("user_bash", (event) => {
          if (event.command === "fake") return { result: { output: "made up", exitCode: 0, cancelled: false, truncated: false } };
          if (event.command === "remote") return { operations: { exec: async (command, cwd, { onData }) => { onData(Buffer.from("ran " + command)); return { exitCode: 5 }; } } };
        });
      }`;
    await withUnit(text, async (daemon) => {
      expect(await daemon.ask("bash", { command: "fake" })).toMatchObject({ output: "made up", exitCode: 0, totalLines: 1 });
      expect(await daemon.ask("bash", { command: "remote" })).toMatchObject({ output: "ran remote", exitCode: 5 });
      expect(await daemon.ask("bash", { command: "echo real" })).toMatchObject({ output: expect.stringContaining("real") });
      const { messages } = (await daemon.ask("get_messages")) as { messages: { role: string; command?: string }[] };
      expect(messages.map((message) => message.command)).toEqual(["fake", "remote", "echo real"]);
    });
  });
});

describe("models", () => {
  it("changes of model and level are told with what was before; setModel refuses unknown ones", async () => {
    const text = `
      export default function (pi) {
        const log = [];
        pi.on("model_select", (event) => { log.push((event.previousModel?.id ?? "none") + " to " + event.model.id); });
        pi.on("thinking_level_select", (event) => { log.push(event.previousLevel + " to " + event.level); });
        pi.registerCommand("choose", { handler: async (_args, ctx) => {
          const script = ctx.modelRegistry.find("offline", "script");
          const done = [await pi.setModel(script), await pi.setModel({ provider: "nobody", id: "x" }), ctx.modelRegistry.hasConfiguredAuth(script)];
          pi.setThinkingLevel("high");
          pi.setThinkingLevel("high");
          let refused;
          try { pi.setThinkingLevel("enormous"); } catch (error) { refused = error.message; }
          ctx.ui.notify(JSON.stringify({ done, level: pi.getThinkingLevel(), model: ctx.model.id, refused }));
        } });
        pi.registerCommand("log", { handler: async (_args, ctx) => ctx.ui.notify(log.join("; ")) });
      }`;
    await withUnit(text, async (daemon) => {
      await daemon.prompt("/choose");
      expect(JSON.parse(notices(daemon)[0] ?? "")).toEqual({
        done: [true, false, true],
        level: "high",
        model: "script",
        refused: expect.stringContaining('found "enormous"'),
      });
      await daemon.prompt("/log");
      expect(notices(daemon)[1]).toBe("echo to script; off to high");
      expect(daemon.frames.filter((frame) => frame.type === "thinking_level_changed")).toHaveLength(1);
      expect(errors(daemon)).toEqual([]);
    });
  });

  it("extensions may ask a model themselves, streamed or whole", async () => {
    const text = `
      import { complete, stream } from "@mariozechner/pi-ai";
      export default function (pi) {
        pi.registerCommand("think", { handler: async (args, ctx) => {
          const context = { systemPrompt: "s", messages: [{ role: "user", content: args, timestamp: 1 }] };
          const whole = await complete(ctx.model, context, { maxTokens: 50 });
          const types = new Set();
          for await (const event of stream(ctx.model, context)) types.add(event.type);
          ctx.ui.notify(JSON.stringify({ role: whole.role, text: whole.content[0].text, stop: whole.stopReason, types: [...types] }));
        } });
      }`;
    await withUnit(text, async (daemon) => {
      await daemon.prompt("/think out loud");
      expect(JSON.parse(notices(daemon)[0] ?? "")).toEqual({
        role: "assistant",
        text: "out loud",
        stop: "stop",
        types: ["start", "text_start", "text_delta", "text_end", "done"],
      });
    });
  });
});

describe("tool factories", () => {
  it("a wrapped built-in runs in place of itself, with spawn hooks, and does not meet itself", async () => {
    const text = `
      import { createBashTool } from "@mariozechner/pi-coding-agent";
      export default function (pi) {
        const bash = createBashTool(process.cwd(), { spawnHook: ({ command, cwd, env }) => ({ command: "export WRAPPED=yes\\n" + command, cwd, env }) });
        pi.registerTool({ ...bash, name: "bash", label: "wrapped", description: bash.description, parameters: bash.parameters,
          execute: async (id, params, signal, onUpdate, ctx) => {
            const result = await createBashTool(ctx.cwd, { spawnHook: ({ command, cwd, env }) => ({ command: "export WRAPPED=yes; " + command, cwd, env }) }).execute(id, params, signal, onUpdate);
            return { ...result, content: [{ type: "text", text: "[" + result.content[0].text + "]" }] };
          } });
      }`;
    await withUnit(text, async (daemon) => {
      expect(errors(daemon)).toEqual([]);
      const [result] = toolResults(await daemon.prompt('call bash {"command": "echo $WRAPPED; pwd"}'));
      expect(result).toEqual({ name: "bash", isError: false, text: expect.stringMatching(/^\[yes\s+.*work\s*\]$/s) });
    });
  });

  it("withFileMutationQueue keeps changes of one file in order", async () => {
    const text = `
      import { getAgentDir, withFileMutationQueue } from "@mariozechner/pi-coding-agent";
      export default function (pi) {
        pi.registerCommand("ordered", { handler: async (_args, ctx) => {
          const log = [];
          let go;
          const free = new Promise((resolve) => { go = resolve; });
          const slow = withFileMutationQueue("/tmp/none", async () => { await free; log.push("slow"); return 1; });
          const failing = withFileMutationQueue("/tmp/none", () => { log.push("failing"); throw new Error("x"); }).catch(() => "caught");
          const other = withFileMutationQueue("/tmp/other", () => { log.push("other"); go(); });
          ctx.ui.notify(JSON.stringify([await Promise.all([slow, failing, other]), log, getAgentDir()]));
        } });
      }`;
    await withUnit(text, async (daemon) => {
      await daemon.prompt("/ordered");
      expect(errors(daemon)).toEqual([]);
      expect(JSON.parse(notices(daemon)[0] ?? "")).toEqual([[1, "caught", null], ["other", "slow", "failing"], daemon.home]);
    });
  });
});
