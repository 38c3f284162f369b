// Subagents in the session of their parent (agent-semantics §1.2, §1.7): entries, and what a later process finds by them.
import { appendFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Subagents } from "../../../core/extension.ts";
import { startDaemon } from "../../../core/testing.ts";
import type { Frame } from "../../../protocol/frame.ts";
import { fail, Gate } from "../../support/scripted-provider.ts";
import { held, type Play, parent, says, spawns, start } from "./_start.ts";

describe("the record in the parent's session", () => {
  const spawnsOf = (file: string) =>
    readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line.includes('"type":"subagent_spawn"'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  it("names each subagent when it starts and when it ends, and is no part of the context", async () => {
    const { daemon: d, provider } = await start(
      parent([{ task: "x" }, { task: "y" }], ({ told }) => (told === "x" ? says("fine") : [fail("It broke", "fatal")])),
    );
    await d.prompt("Go");
    const file = String((await d.ask("get_state"))["sessionFile"]);
    const entries = spawnsOf(file);
    const sessionFile = join(file.replace(/\.jsonl$/, ""), "Task.jsonl");
    const of = (id: string) => entries.filter(({ agentId }) => agentId === id);
    const about = { agentId: "Task", agentName: "task", task: "x", sessionFile, isolation: "none" };
    expect(of("Task")).toMatchObject([
      { ...about, status: "running" },
      { ...about, status: "completed", exitCode: 0, durationMs: expect.any(Number) },
    ]);
    expect(of("Task-2")).toMatchObject([{ status: "running" }, { status: "failed", exitCode: 1, error: "It broke" }]);
    expect(JSON.stringify(provider.requests.at(-1)?.messages)).not.toContain("subagent_spawn");
  });

  it("lets a later process read them by id, and only files beside the session", async () => {
    const { daemon: d } = await start(parent([{ task: "x" }], () => says("fine")));
    await d.prompt("Go");
    const file = String((await d.ask("get_state"))["sessionFile"]);
    const elsewhere = d.write("elsewhere.jsonl", readFileSync(file, "utf8"));
    const { home } = d;
    await d.daemon.close("ended");
    const entry = { type: "subagent_spawn", id: "aaaaaaaa", parentId: null, timestamp: "2026-01-01T00:00:00.000Z" };
    appendFileSync(file, `${JSON.stringify({ ...entry, agentId: "Other", sessionFile: elsewhere, status: "running" })}\n`);
    const again = await startDaemon({ home, options: { session: file } });
    try {
      const read = async (params: Record<string, unknown>) => (await again.ask("get_subagent_messages", params))["messages"];
      expect(await read({ agentId: "Task" })).toHaveLength(2);
      expect(await read({ sessionFile: join(file.replace(/\.jsonl$/, ""), "Task.jsonl") })).toHaveLength(2);
      // It is looked for beside the session, where it is not.
      expect(await read({ agentId: "Other" })).toEqual([]);
      expect((await again.request("get_subagent_messages", { sessionFile: elsewhere }))["error"]).toBe(
        "Unknown subagent session file",
      );
      expect((await again.request("get_subagent_messages", { agentId: "Task", subagentId: "Other" }))["success"]).toBe(false);
      expect(spawnsOf(file).at(-1)).toMatchObject({ agentId: "Other", status: "aborted", exitCode: 1 });
    } finally {
      await again.stop();
    }
  });

  it("lets a later process read nested ones by id and by file, and nothing that only looks like one", async () => {
    const children: Play = ({ told, turn }) =>
      told === "outer" && turn === 0 ? spawns("c2", { task: "inner" }) : says(`${told} done`);
    const { daemon: d } = await start(parent([{ task: "outer" }], children));
    await d.prompt("Go");
    const file = String((await d.ask("get_state"))["sessionFile"]);
    const folder = file.replace(/\.jsonl$/, "");
    await d.daemon.close("ended");
    const inner = join(folder, "Task/Task.Task.jsonl");
    const text = readFileSync(inner, "utf8");
    mkdirSync(join(folder, "Other"));
    writeFileSync(join(folder, "Other/Other.Task.jsonl"), text);
    writeFileSync(join(d.home, "Task.Task.jsonl"), text);
    symlinkSync(join(d.home, "Task.Task.jsonl"), join(folder, "Task/Task.Link.jsonl"));
    const again = await startDaemon({ home: d.home, options: { session: file } });
    try {
      for (const by of [{ agentId: "Task.Task" }, { sessionFile: inner }]) {
        const { messages } = (await again.ask("get_subagent_messages", by)) as { messages: unknown[] };
        expect(JSON.stringify(messages)).toContain("inner done");
      }
      for (const agentId of ["Other.Task", "Task.Link", "Task.Nobody", "Task..Task", "Task.", "Task.Task/../../Task"]) {
        const error = `Unknown subagent or session file unavailable: ${agentId}`;
        expect((await again.request("get_subagent_messages", { agentId }))["error"]).toBe(error);
      }
      const sessionFile = join(d.home, "Task.Task.jsonl");
      expect((await again.request("get_subagent_messages", { sessionFile }))["error"]).toBe("Unknown subagent session file");
    } finally {
      await again.stop();
    }
  });

  it("does not end what an earlier generation of the extension still runs", async () => {
    const gate = new Gate();
    const { daemon: d } = await start(parent([{ task: "x" }], () => held(gate)));
    await d.ask("set_subagent_subscription", { level: "events" });
    const run = d.prompt("Go");
    await d.next((frame) => frame.type === "subagent_event" && (frame["event"] as Frame).type === "message_update");
    const file = String((await d.ask("get_state"))["sessionFile"]);
    const earlier = d.daemon.kernel.services.use(Subagents);
    d.send({ id: "off", type: "prompt", message: "/extensions disable subagents" });
    d.send({ id: "on", type: "prompt", message: "/extensions enable subagents" });
    await d.next((frame) => frame.type === "prompt_result" && frame["id"] === "on", { after: 0 });
    await d.ask("get_subagents");
    expect(d.daemon.kernel.services.use(Subagents)).not.toBe(earlier);
    expect(spawnsOf(file).map(({ status }) => status)).toEqual(["running"]);
    gate.open();
    await run;
    expect(spawnsOf(file).map(({ status }) => status)).toEqual(["running", "completed"]);
  });
});
