import { describe, expect, it } from "vitest";
import {
  defineHook,
  defineTool,
  ToolError,
  textResult,
  toolDecide,
  toolFinished,
  toolObserve,
  toolRewrite,
  toolSeal,
  z,
} from "../../../core/extension.ts";
import type { ToolResultMessage } from "../../../protocol/message.ts";
import { calls, done, Gate, says, scriptedProvider } from "../../support/scripted-provider.ts";
import { harness, textOf } from "./_harness.ts";

const params = z.object({ n: z.number().optional() });
const tool = (name: string, run: Parameters<typeof defineTool<z.infer<typeof params>>>[0]["run"], more: object = {}) =>
  defineTool({ name, description: name, params, run, ...more });
const results = (h: ReturnType<typeof harness>) => h.ends("toolResult") as ToolResultMessage[];

async function runOnce(definitions: Parameters<typeof harness>[0]["definitions"], ...list: Parameters<typeof calls>) {
  const provider = scriptedProvider(calls(...list), says("End"));
  const h = harness({ provider, definitions: definitions ?? [] });
  await h.conversation.submit("Go").settled;
  expect(provider.refused).toEqual([]);
  return h;
}

describe("tool calls", () => {
  it("answers an unknown tool, wrong arguments and a throwing tool with error results, each between start and end", async () => {
    const h = await runOnce(
      [tool("strict", () => "ran"), tool("throws", () => Promise.reject(new ToolError("no luck", { details: { code: 7 } })))],
      { id: "a", name: "missing" },
      { id: "b", name: "strict", args: { n: { deep: "x".repeat(400) } } },
      { id: "c", name: "throws" },
    );
    expect(h.types().filter((type) => type.startsWith("tool_execution"))).toHaveLength(6);
    const [a, b, c] = results(h);
    expect(textOf(a)).toBe("Tool missing not found");
    expect(a?.details).toMatchObject({ __synthetic: true, executed: false });
    expect(textOf(b)).toContain('Invalid arguments for tool "strict"');
    expect(textOf(b)).toContain("- n: ");
    expect(textOf(b)).toContain("x".repeat(256));
    expect(textOf(b)).not.toContain("x".repeat(257));
    expect([textOf(c), c?.isError, c?.details]).toEqual(["no luck", true, { code: 7 }]);
  });

  it("never sends an empty error result (agent-semantics §12 item 25)", async () => {
    const h = await runOnce(
      [
        tool("blank", () => ({ content: [{ type: "text", text: " \n" }], isError: true })),
        tool("none", () => Promise.reject(new Error(""))),
      ],
      { id: "a", name: "blank" },
      { id: "b", name: "none" },
    );
    for (const result of results(h)) expect(textOf(result).trim()).not.toBe("");
  });

  it("runs shared calls together, tells ends as they come and stores results in call order (item 28)", async () => {
    const slow = new Gate();
    const h = await runOnce(
      [
        tool("slow", async () => {
          await slow.passed;
          return "slow";
        }),
        tool("fast", () => {
          setImmediate(slow.open);
          return "fast";
        }),
      ],
      { id: "a", name: "slow" },
      { id: "b", name: "fast" },
    );
    expect(h.frames.filter((frame) => frame.type === "tool_execution_end").map((frame) => frame["toolName"])).toEqual([
      "fast",
      "slow",
    ]);
    expect(results(h).map(textOf)).toEqual(["slow", "fast"]);
    const turnEnd = await h.frame((frame) => frame.type === "turn_end");
    expect((turnEnd["toolResults"] as ToolResultMessage[]).map(textOf)).toEqual(["slow", "fast"]);
  });

  it("never lets an exclusive tool overlap another (item 28)", async () => {
    let running = 0;
    const overlaps: string[] = [];
    const body = (name: string) => async () => {
      running++;
      await new Promise((resolve) => setImmediate(resolve));
      if (name === "alone" && running > 1) overlaps.push(name);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      return name;
    };
    const throwing = () => {
      throw new Error("cannot say");
    };
    const h = await runOnce(
      [
        tool("together", body("together")),
        tool("alone", body("alone"), { concurrency: "exclusive" }),
        tool("unsure", body("alone"), { concurrency: throwing }),
      ],
      { id: "a", name: "together" },
      { id: "b", name: "alone" },
      { id: "c", name: "together" },
      { id: "d", name: "unsure" },
      { id: "e", name: "together" },
    );
    expect(overlaps).toEqual([]);
    expect(results(h).map((result) => result.toolCallId)).toEqual(["a", "b", "c", "d", "e"]);
  });

  it("runs calls of an answer that stopped with `stop` (item 26)", async () => {
    const provider = scriptedProvider([...calls({ id: "a", name: "t" }).slice(0, -1), done("stop")], says("End"));
    const h = harness({ provider, definitions: [tool("t", () => "ran")] });
    await h.conversation.submit("Go").settled;
    expect(results(h).map(textOf)).toEqual(["ran"]);
  });

  it("gives a call cut by the output limit an actionable error, runs the complete one and goes on (item 27, public-bugs 20.4)", async () => {
    let ran = 0;
    const provider = scriptedProvider(
      [
        { type: "toolcall_start", index: 0, id: "whole", name: "t" },
        { type: "toolcall_delta", index: 0, delta: "{}" },
        { type: "toolcall_end", index: 0 },
        { type: "toolcall_start", index: 1, id: "cut", name: "t" },
        { type: "toolcall_delta", index: 1, delta: '{"n": 1' },
        done("length"),
      ],
      says("End"),
    );
    const h = harness({ provider, definitions: [tool("t", () => `ran ${++ran}`)] });
    expect((await h.conversation.submit("Go").settled).status).toBe("completed");
    expect(ran).toBe(1);
    expect(textOf(results(h)[1])).toContain("output limit");
    expect(provider.refused).toEqual([]);
  });

  it("reports arguments that are no JSON object, and takes none for no arguments (public-bugs 20.5)", async () => {
    const provider = scriptedProvider(
      [
        { type: "toolcall_start", index: 0, id: "a", name: "t" },
        { type: "toolcall_delta", index: 0, delta: '{"n": 1,,}' },
        { type: "toolcall_end", index: 0 },
        { type: "toolcall_start", index: 1, id: "b", name: "t" },
        { type: "toolcall_end", index: 1 },
        done("toolUse"),
      ],
      says("End"),
    );
    const h = harness({ provider, definitions: [tool("t", () => "ran")] });
    await h.conversation.submit("Go").settled;
    expect(textOf(results(h)[0])).toContain("no JSON object");
    expect(textOf(results(h)[1])).toBe("ran");
  });

  it("throttles updates: the first at once, then the latest", async () => {
    const h = await runOnce(
      [
        tool("t", async (ctx) => {
          for (let n = 0; n < 50; n++) ctx.update({ content: [{ type: "text", text: `${n}` }] });
          return "end";
        }),
      ],
      { id: "a", name: "t" },
    );
    const updates = h.frames.filter((frame) => frame.type === "tool_execution_update");
    expect(updates.map((frame) => (frame["partialResult"] as { content: { text: string }[] }).content[0]?.text)).toEqual(["0"]);
  });

  it("reaches the shadowed tool through next, and other tools through runTool with hooks", async () => {
    const provider = scriptedProvider(calls({ id: "a", name: "t" }), says("End"));
    const h = harness({ provider, definitions: [tool("helper", (_ctx, { n }) => `helper ${n}`)] });
    h.daemon.add(
      "builtin",
      "builtin",
      tool("t", (_ctx, { n }) => `built-in ${n}`),
    );
    const seen: string[] = [];
    h.daemon.add(
      "override",
      "project",
      tool("t", async (ctx) => {
        const below = await ctx.next?.({ n: "3" });
        const other = await ctx.runTool("helper", { n: 4 });
        return `${textOf({ role: "user", content: below?.content ?? [], timestamp: 0 })}, ${textOf({ role: "user", content: other.content, timestamp: 0 })}`;
      }),
      defineHook(toolObserve, (call) => void seen.push(call.toolName)),
    );
    await h.conversation.submit("Go").settled;
    expect(textOf(results(h)[0])).toBe("built-in 3, helper 4");
    expect(seen).toEqual(["t", "helper"]);
  });

  it("keeps the version that started a call until it is over, and offers the new one at the next model call", async () => {
    const started = new Gate();
    const gate = new Gate();
    const provider = scriptedProvider(calls({ id: "a", name: "t" }), calls({ id: "b", name: "t" }), says("End"));
    const h = harness({
      provider,
      definitions: [
        tool("t", async () => {
          started.open();
          await gate.passed;
          return "old";
        }),
      ],
    });
    const work = h.conversation.submit("Go");
    await started.passed;
    const { registry } = h.daemon.kernel;
    registry.swap({ remove: registry.ownedBy(h.scope) });
    h.daemon.add(
      "tools",
      "user",
      tool("t", () => "new", { description: "second version" }),
    );
    expect(h.scope.leases).toBeGreaterThan(0);
    gate.open();
    await work.settled;
    expect(results(h).map(textOf)).toEqual(["old", "new"]);
    expect(provider.requests[1]?.tools[0]?.description).toBe("second version");
    expect(h.scope.leases).toBe(0);
  });
});

describe("the hook points of a call", () => {
  it("observes, rewrites with validation, decides, seals with frozen arguments, and finishes", async () => {
    const order: string[] = [];
    let frozen = false;
    const h = await runOnce(
      [
        tool("t", (_ctx, { n }) => `ran with ${n}`),
        defineHook(toolObserve, () => void order.push("observe")),
        defineHook(toolRewrite, (call) => ({ ...call, args: { n: "5" } })),
        defineHook(toolDecide, (call) => {
          order.push("decide");
          Object.assign(call.args, { n: 99 });
        }),
        defineHook(toolSeal, (call) => {
          order.push(`seal ${call.args["n"]}`);
          frozen = Object.isFrozen(call.args);
        }),
        defineHook(toolFinished, (value) => ({
          ...value,
          result: textResult(`${textOf({ role: "user", content: value.result.content, timestamp: 0 })}!`),
        })),
      ],
      { id: "a", name: "t", args: { n: 1 } },
    );
    expect(order).toEqual(["observe", "decide", "seal 5"]);
    expect(frozen).toBe(true);
    expect(textOf(results(h)[0])).toBe("ran with 5!");
  });

  it("blocks with the gate's reason, and when a gate throws", async () => {
    let ran = 0;
    const h = await runOnce(
      [
        tool("t", () => `${++ran}`),
        tool("u", () => `${++ran}`),
        defineHook(toolDecide, (call) => (call.toolName === "t" ? { block: true as const, reason: "not today" } : undefined)),
        defineHook(toolSeal, (call) => {
          if (call.toolName === "u") throw new Error("broken");
        }),
      ],
      { id: "a", name: "t" },
      { id: "b", name: "u" },
    );
    expect(ran).toBe(0);
    expect(textOf(results(h)[0])).toBe("not today");
    expect(textOf(results(h)[1])).toContain("broken");
    expect(results(h).every((result) => result.isError)).toBe(true);
  });

  it("lets toolFinished rewrite the text of a failed tool (item 64)", async () => {
    const h = await runOnce(
      [
        tool("t", () => Promise.reject(new Error("raw"))),
        defineHook(toolFinished, (value) => ({
          ...value,
          isError: false,
          result: textResult("softened"),
        })),
      ],
      { id: "a", name: "t" },
    );
    expect([textOf(results(h)[0]), results(h)[0]?.isError]).toEqual(["softened", false]);
  });

  it("asks the gates of one answer one after another", async () => {
    let open = 0;
    let most = 0;
    const h = await runOnce(
      [
        tool("t", () => "ran"),
        defineHook(toolDecide, async () => {
          most = Math.max(most, ++open);
          await new Promise((resolve) => setImmediate(resolve));
          open--;
        }),
      ],
      { id: "a", name: "t" },
      { id: "b", name: "t" },
      { id: "c", name: "t" },
    );
    expect(most).toBe(1);
    expect(results(h)).toHaveLength(3);
  });
});
