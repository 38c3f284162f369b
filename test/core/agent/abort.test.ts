import { describe, expect, it } from "vitest";
import { aborting } from "../../../core/agent/hook-points.ts";
import { defineHook, defineTool, toolDecide, toolFinished, z } from "../../../core/extension.ts";
import type { AssistantMessage } from "../../../protocol/message.ts";
import { calls, done, Gate, says, scriptedProvider } from "../../support/scripted-provider.ts";
import { harness, textOf } from "./_harness.ts";

const params = z.object({});
const deaf = (started = new Gate()) =>
  defineTool({
    name: "deaf",
    description: "ignores its signal",
    params,
    run: () => {
      started.open();
      return new Promise<string>(() => {});
    },
  });
const lastAnswer = (h: ReturnType<typeof harness>) => h.ends("assistant").at(-1) as AssistantMessage;

describe("abort", () => {
  it("ends a stream that ignores its signal, keeps the text and closes the message", async () => {
    const provider = scriptedProvider(async function* () {
      yield { type: "text_start", index: 0 } as const;
      yield { type: "text_delta", index: 0, delta: "so far" } as const;
      await new Promise(() => {});
    });
    const h = harness({ provider });
    const work = h.conversation.submit("Go");
    await h.frame((frame) => JSON.stringify(frame).includes("so far"));
    const before = performance.now();
    await h.conversation.abort();
    expect(performance.now() - before).toBeLessThan(500);
    expect(await work.settled).toMatchObject({ status: "aborted", errorMessage: "Interrupted by user" });
    expect(h.outline().slice(-3)).toEqual(["message_end", "turn_end", "agent_end"]);
    expect(textOf(lastAnswer(h))).toBe("so far");
    expect(lastAnswer(h)).toMatchObject({ stopReason: "aborted", errorMessage: "Interrupted by user" });
  });

  it("writes the result of a deaf tool as aborted at once, starts no further request, and keeps its generation until it ends (item 23)", async () => {
    const provider = scriptedProvider(calls({ id: "a", name: "deaf" }, { id: "b", name: "alone" }), says("never"));
    const finished: string[] = [];
    const started = new Gate();
    const h = harness({
      provider,
      definitions: [
        deaf(started),
        defineTool({ name: "alone", description: "", params, concurrency: "exclusive", run: () => "ran" }),
        defineHook(toolFinished, (value) => void finished.push(value.toolName)),
      ],
    });
    const work = h.conversation.submit("Go");
    await started.passed;
    const before = performance.now();
    await h.conversation.abort();
    expect(performance.now() - before).toBeLessThan(400);
    expect((await work.settled).status).toBe("aborted");
    expect(h.ends("toolResult").map(textOf)).toEqual([
      "Tool execution was aborted: Interrupted by user",
      "Tool was not executed because the run was aborted: Interrupted by user.",
    ]);
    expect(provider.requests).toHaveLength(1);
    expect(finished).toEqual(["deaf"]);
    expect(h.scope.leases).toBe(1);
    expect(lastAnswer(h).stopReason).toBe("aborted");
    provider.push(says("after"));
    await h.conversation.submit("next").settled;
    expect(provider.refused).toEqual([]);
  });

  it("gives complete calls of an aborted answer a result and drops incomplete ones (item 24)", async () => {
    const never = new Gate();
    const provider = scriptedProvider(
      [
        ...calls({ id: "whole", name: "deaf" }).slice(0, -2),
        { type: "toolcall_start", index: 1, id: "half", name: "deaf" },
        { type: "toolcall_delta", index: 1, delta: '{"command":"rm -rf ./build/tmp' },
        never,
        done("toolUse"),
      ],
      says("after"),
    );
    const h = harness({ provider, definitions: [deaf()] });
    void h.conversation.submit("Go");
    await h.frame((frame) => JSON.stringify(frame).includes("rm -rf"));
    await h.conversation.abort();
    expect(lastAnswer(h).content.map((block) => (block.type === "toolCall" ? block.id : block.type))).toEqual(["whole"]);
    expect(h.ends("toolResult")).toMatchObject([{ toolCallId: "whole", isError: true }]);
    await h.conversation.submit("next").settled;
    expect(provider.refused).toEqual([]);
  });

  it("does not wait for a gate that waits for a person", async () => {
    const provider = scriptedProvider(calls({ id: "a", name: "deaf" }), says("x"));
    const asked = new Gate();
    const h = harness({
      provider,
      definitions: [
        deaf(),
        defineHook(toolDecide, () => {
          asked.open();
          return new Promise<undefined>(() => {});
        }),
      ],
    });
    const work = h.conversation.submit("Go");
    await asked.passed;
    await h.conversation.abort();
    expect((await work.settled).status).toBe("aborted");
    expect(textOf(h.ends("toolResult")[0])).toContain("was not executed");
  });

  it("before the first request stores the prompt and says aborted; idle it does nothing", async () => {
    const provider = scriptedProvider(says("x"));
    const told: string[] = [];
    const h = harness({ provider, definitions: [defineHook(aborting, ({ reason }) => void told.push(reason))] });
    await h.conversation.abort();
    const work = h.conversation.submit("Go");
    await h.conversation.abort("Enough");
    expect(await work.settled).toMatchObject({ status: "aborted", errorMessage: "Enough" });
    expect(provider.requests).toHaveLength(0);
    expect(h.outline()).toEqual([
      "agent_start",
      "turn_start",
      "message_start",
      "message_end",
      "message_start",
      "message_end",
      "turn_end",
      "agent_end",
    ]);
    expect(told).toEqual(["Interrupted by user", "Enough"]);
    await h.conversation.abort();
  });

  it("frees its caller within two seconds when a handler hangs", async () => {
    const provider = scriptedProvider(calls({ id: "a", name: "quick" }), says("x"));
    const hanging = new Gate();
    const h = harness({
      provider,
      definitions: [
        defineTool({ name: "quick", description: "", params, run: () => "ok" }),
        defineHook(toolFinished, () => {
          hanging.open();
          return new Promise<undefined>(() => {});
        }),
      ],
    });
    const work = h.conversation.submit("Go");
    await hanging.passed;
    const before = performance.now();
    await h.conversation.abort();
    expect(performance.now() - before).toBeLessThan(2000);
    expect((await work.settled).status).toBe("aborted");
    expect(textOf(h.ends("toolResult")[0])).toBe("ok");
  });
});
