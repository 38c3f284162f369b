// What a host sees of subagents: frames and commands (000_…, protocol-facts §1.4, §2.6).
import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Frame } from "../../../protocol/frame.ts";
import { done, Gate } from "../../support/scripted-provider.ts";
import { calls, held, type Play, parent, says, spawns, start } from "./_start.ts";

describe("frames and commands", () => {
  const types = (frames: readonly Frame[]) => frames.filter(({ type }) => type.startsWith("subagent_"));

  it("are silent at off, tell the life and progress at progress, and every event at events", async () => {
    const play = parent([{ task: "x", description: "Do x" }], ({ turn }) =>
      turn === 0 ? calls({ id: "l", name: "ls" }) : says("ok"),
    );
    const { daemon: d } = await start(play);
    expect(types(await d.prompt("Go"))).toEqual([]);
    expect(await d.ask("set_subagent_subscription", { level: "progress" })).toEqual({ level: "progress" });
    await d.ask("new_session");
    const frames = types(await d.prompt("Go"));
    const life = frames.filter(({ type }) => type === "subagent_lifecycle");
    expect(life.map((frame) => frame["status"])).toEqual(["started", "completed"]);
    expect(life[0]).toMatchObject({
      id: "Task",
      agent: "task",
      agentSource: "bundled",
      index: 0,
      description: "Do x",
      parentToolCallId: "c1",
    });
    expect(existsSync(String(life[0]?.["sessionFile"]))).toBe(true);
    const progress = frames
      .filter(({ type }) => type === "subagent_progress")
      .map((frame) => frame["progress"] as Record<string, unknown>);
    expect(progress.at(-1)).toMatchObject({
      id: "Task",
      status: "completed",
      toolCount: 1,
      requests: 2,
      recentTools: [{ tool: "ls" }],
      resolvedModel: "scripted/scripted",
    });
    expect(frames.at(-1)?.type).toBe("subagent_lifecycle");
    expect(frames.some(({ type }) => type === "subagent_event")).toBe(false);
    await d.ask("set_subagent_subscription", { level: "events" });
    await d.ask("new_session");
    const events = types(await d.prompt("Go")).filter(({ type }) => type === "subagent_event");
    const inner = events.map((frame) => (frame["event"] as Frame).type);
    expect(inner[0]).toBe("agent_start");
    expect(inner.at(-1)).toBe("agent_end");
    expect(events.every((frame) => frame["id"] === "Task")).toBe(true);
    expect((await d.request("set_subagent_subscription", { level: "all" }))["error"]).toBe(
      "Invalid subagent subscription level: all",
    );
  });

  it("send progress at most every 150 ms, the last one included", async () => {
    const pause = () => new Promise<void>((resolve) => setTimeout(resolve, 10));
    const words = Array.from({ length: 60 }, (_, index) => [
      { type: "text_delta" as const, index: 0, delta: `word-${index}\n` },
      pause,
    ]);
    const talks: Play = () => [{ type: "text_start", index: 0 }, ...words.flat(), done()];
    const { daemon: d } = await start(parent([{ task: "x" }], talks));
    await d.ask("set_subagent_subscription", { level: "progress" });
    const began = performance.now();
    const frames = await d.prompt("Go");
    const took = performance.now() - began;
    expect(took).toBeGreaterThan(600);
    const progress = frames.filter(({ type }) => type === "subagent_progress");
    expect(progress.length).toBeGreaterThan(2);
    // The first and the last one come at once.
    expect(progress.length).toBeLessThanOrEqual(took / 150 + 2);
    expect(JSON.stringify(progress.at(-1))).toContain("word-59");
  });

  it("get_subagents lists waiting, running and nested ones; get_subagent_messages reads them while they run and afterwards", async () => {
    const gate = new Gate();
    const play: Play = ({ told, turn }) => {
      if (told === "Go") return turn === 0 ? spawns("c1", { task: "outer" }, { task: "waiting" }) : says("done");
      if (told === "outer") return turn === 0 ? spawns("c2", { task: "inner" }) : says("outer done");
      return told === "inner" ? held(gate) : says("ok");
    };
    const { daemon: d } = await start(play, { files: { "config.yml": "agent:\n  maxConcurrency: 1\n" } });
    await d.ask("set_subagent_subscription", { level: "events" });
    const run = d.prompt("Go");
    await d.next((frame) => frame.type === "subagent_event" && frame["id"] === "Task.Task");
    const { subagents } = (await d.ask("get_subagents")) as { subagents: Record<string, unknown>[] };
    expect(subagents.map(({ id, status }) => [id, status])).toEqual(
      [
        ["Task", "running"],
        ["Task.Task", "running"],
        ["Task-2", expect.stringMatching(/pending|completed|running/)],
      ].filter(([id]) => subagents.some((each) => each["id"] === id)),
    );
    const inner = await d.ask("get_subagent_messages", { agentId: "Task.Task" });
    expect(inner["sessionFile"]).toMatch(/\/Task\/Task\.Task\.jsonl$/);
    gate.open();
    await run;
    expect((await d.ask("get_subagents"))["subagents"]).toEqual([]);
    const whole = await d.ask("get_subagent_messages", { subagentId: "Task.Task" });
    expect((whole["messages"] as { role: string }[]).map(({ role }) => role)).toEqual(["user", "assistant"]);
    expect((whole["entries"] as { type: string }[])[0]?.type).toBe("session");
    const rest = await d.ask("get_subagent_messages", { sessionFile: whole["sessionFile"], fromByte: whole["nextByte"] });
    expect(rest).toMatchObject({
      entries: [],
      messages: [],
      fromByte: whole["nextByte"],
      nextByte: whole["nextByte"],
      reset: false,
    });
    const past = await d.ask("get_subagent_messages", { subagentId: "Task", fromByte: 1e9 });
    expect(past).toMatchObject({ reset: true, fromByte: 0 });
    const errors: [Record<string, unknown>, string][] = [
      [{}, "get_subagent_messages requires subagentId or sessionFile"],
      [{ agentId: "", subagentId: "" }, "get_subagent_messages requires subagentId or sessionFile"],
      [{ agentId: "Nobody", sessionFile: whole["sessionFile"] }, "Unknown subagent or session file unavailable: Nobody"],
      [{ sessionFile: (await d.ask("get_state"))["sessionFile"] }, "Unknown subagent session file"],
      [{ agentId: "Task", fromByte: "7" }, "fromByte must be a finite number"],
      [{ agentId: "Task", fromByte: null }, "fromByte must be a finite number"],
    ];
    for (const [params, error] of errors) expect((await d.request("get_subagent_messages", params))["error"]).toBe(error);
    const negative = await d.ask("get_subagent_messages", { agentId: "Task", fromByte: -3.7 });
    expect(negative["fromByte"]).toBe(0);
  });

  it("forget the subagents of a session that was left, and know them again when it comes back", async () => {
    const gate = new Gate();
    const { daemon: d } = await start(parent([{ task: "x" }], () => held(gate)));
    await d.ask("set_subagent_subscription", { level: "events" });
    await d.ask("prompt", { message: "Go" });
    await d.next((frame) => frame.type === "subagent_event" && (frame["event"] as Frame).type === "message_update");
    const { background } = (await d.ask("new_session", { background: true })) as { background: { sessionFile: string } };
    const from = d.frames.length;
    expect((await d.ask("get_subagents"))["subagents"]).toEqual([]);
    expect((await d.ask("get_subagent_messages", { agentId: "Task" }))["messages"]).toHaveLength(1);
    expect(types(d.frames.slice(from))).toEqual([]);
    await d.ask("switch_session", { sessionPath: background.sessionFile });
    expect((await d.ask("get_subagents"))["subagents"]).toMatchObject([{ id: "Task", status: "running" }]);
    gate.open();
    await d.next((frame) => frame.type === "subagent_lifecycle" && frame["status"] === "completed", { after: from });
  });
});
