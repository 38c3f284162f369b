// Subagents through the front door: the task tool, frames, commands (000_…, protocol-facts §1.4, §2.6, agent-semantics §3.5).
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { defineAgent, Jobs, Subagents } from "../../../core/extension.ts";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import type { Frame } from "../../../protocol/frame.ts";
import { done, fail, Gate } from "../../support/scripted-provider.ts";
import { calls, noneLeft, type Play, says, spawns, start, taskResults } from "./_start.ts";

let daemon: TestDaemon | undefined;
afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
});

async function started(play: Play, options: Parameters<typeof start>[1] = {}) {
  const all = await start(play, options);
  daemon = all.daemon;
  return all;
}

const held = (gate: Gate, text = "working") => [
  { type: "text_start" as const, index: 0 },
  { type: "text_delta" as const, index: 0, delta: text },
  gate,
  done(),
];

/** The parent starts what `tasks` says and then says what it got. */
const parent =
  (tasks: Record<string, unknown>[], children: Play): Play =>
  (turn) => {
    if (turn.told !== "Go") return children(turn);
    return turn.turn === 0 ? spawns("c1", ...tasks) : says("done");
  };

describe("the task tool", () => {
  it("runs a batch with context, gives one result with all answers, and keeps a session file for each", async () => {
    const prompts: string[] = [];
    const play: Play = ({ told, turn, request }) => {
      if (told === "Go") {
        if (turn > 0) return says("done");
        const tasks = [{ task: "A" }, { task: "B", name: "Second one" }, { task: "C", agent: "explore" }, { task: "D" }];
        return calls({ id: "c1", name: "task", args: { context: "Use tabs", tasks } });
      }
      prompts.push(request.systemPrompt.join("\n"));
      return says(`answer ${told}`);
    };
    const { daemon: d } = await started(play);
    const frames = await d.prompt("Go");
    const [result] = taskResults(frames);
    expect(result?.isError).toBe(false);
    const { results } = result?.details ?? { results: [] };
    expect(
      results.map(({ id, index, agent, exitCode, output, requests }) => [id, index, agent, exitCode, output, requests]),
    ).toEqual([
      ["Task", 0, "task", 0, "answer A", 1],
      ["Second-one", 1, "task", 0, "answer B", 1],
      ["Explore", 2, "explore", 0, "answer C", 1],
      ["Task-2", 3, "task", 0, "answer D", 1],
    ]);
    expect(result?.text).toContain("## Second-one (task) has finished\nanswer B");
    expect(prompts.every((prompt) => prompt.includes("Use tabs"))).toBe(true);
    expect(prompts.filter((prompt) => prompt.includes("You only read"))).toHaveLength(1);
    const file = String((await d.ask("get_state"))["sessionFile"]);
    for (const id of ["Task", "Second-one", "Explore", "Task-2"]) {
      const lines = readFileSync(join(file.replace(/\.jsonl$/, ""), `${id}.jsonl`), "utf8").split("\n");
      expect(JSON.parse(lines[0] ?? "")).toMatchObject({ type: "session", parentSession: file });
      expect(lines.some((line) => line.includes('"type":"session_init"'))).toBe(true);
    }
    await noneLeft(d);
  });

  it("accepts the flat shape as well, and offers it with agent.batch: false", async () => {
    const play: Play = ({ told, turn }) => {
      if (told !== "Go") return says(`answer ${told}`);
      return turn === 0 ? calls({ id: "c1", name: "task", args: { task: "A", name: "Solo" } }) : says("done");
    };
    const { daemon: d, provider } = await started(play);
    expect(taskResults(await d.prompt("Go"))[0]?.details.results[0]).toMatchObject({ id: "Solo", output: "answer A" });
    const offered = (index: number) => provider.requests[index]?.tools.find(({ name }) => name === "task")?.parameters;
    expect(offered(0)).toHaveProperty("properties.tasks");
    await d.stop();
    const flat = await started(play, { files: { "config.yml": "task:\n  batch: false\n" } });
    expect(taskResults(await flat.daemon.prompt("Go"))[0]?.details.results[0]).toMatchObject({ id: "Solo", output: "answer A" });
    expect(flat.provider.requests[0]?.tools.find(({ name }) => name === "task")?.parameters).toHaveProperty("properties.task");
  });

  it("names an unknown agent before anything has started", async () => {
    const { daemon: d } = await started(parent([{ task: "A" }, { task: "B", agent: "nobody" }], () => says("x")));
    const [result] = taskResults(await d.prompt("Go"));
    expect(result).toMatchObject({ isError: true, text: "Unknown agent: nobody. There are: task, explore, review" });
  });

  it("case 29.2: names the one that failed and holds the other's answer", async () => {
    const children: Play = ({ told }) => (told === "bad" ? [fail("The stream broke", "fatal")] : says("good answer"));
    const { daemon: d } = await started(
      parent(
        [
          { task: "bad", name: "Bad" },
          { task: "good", name: "Good" },
        ],
        children,
      ),
    );
    const [result] = taskResults(await d.prompt("Go"));
    expect(result?.isError).toBe(false);
    expect(result?.text).toContain("## Bad (task) has failed: The stream broke");
    expect(result?.text).toContain("## Good (task) has finished\ngood answer");
    expect(result?.details.results.map(({ exitCode, error }) => [exitCode, error])).toEqual([
      [1, "The stream broke"],
      [0, undefined],
    ]);
  });

  it("takes agents from the project before the user's before the built-in ones, skips bad files with a notice", async () => {
    const agent = (head: string, body: string) => `---\n${head}\n---\n${body}\n`;
    const prompts: string[] = [];
    const play = parent(
      [
        { task: "x", agent: "explore" },
        { task: "y", agent: "mine" },
      ],
      ({ request }) => {
        prompts.push(`${request.systemPrompt.join("\n")}\nTOOLS ${request.tools.map(({ name }) => name).join(",")}`);
        return says("ok");
      },
    );
    const { daemon: d } = await started(play, {
      files: {
        "cwd/.mortise/agents/e.md": agent("name: explore\ndescription: Ours\ntools: read, ls", "PROJECT BODY"),
        "agents/e.md": agent("name: explore\ndescription: Mine", "USER BODY"),
        "agents/mine.md": agent("name: mine\ndescription: Mine too\ntools:\n  - read\n  - task", "MINE BODY"),
        "agents/bad.md": agent("name: no description", "BAD"),
      },
    });
    const frames = await d.prompt("Go");
    expect(taskResults(frames)[0]?.details.results.map(({ exitCode }) => exitCode)).toEqual([0, 0]);
    expect(taskResults(frames)[0]?.details).toMatchObject({ projectAgentsDir: join(d.cwd, ".mortise/agents") });
    expect(prompts.find((prompt) => prompt.includes("PROJECT BODY"))).toMatch(/TOOLS ls,read$/);
    expect(prompts.find((prompt) => prompt.includes("MINE BODY"))).toMatch(/TOOLS read,task$/);
    const notices = d.frames.filter((frame) => frame.type === "notice").map((frame) => String(frame["message"]));
    expect(notices.filter((message) => message.includes("bad.md"))).toHaveLength(1);
  });

  it("hands the answer of an agent with an output schema in as data, after reminders", async () => {
    const head =
      "name: form\ndescription: Fills a form\ntools: read\noutput:\n  type: object\n  required: [n]\n  properties: {n: {type: number}}";
    const children: Play = ({ turn }) => {
      if (turn === 0) return says("forgot");
      if (turn === 1) return calls({ id: "y1", name: "yield", args: { data: { n: "seven" } } });
      return turn === 2 ? calls({ id: "y2", name: "yield", args: { data: { n: 7 } } }) : says("bye");
    };
    const { daemon: d } = await started(parent([{ task: "x", agent: "form" }], children), {
      files: { "agents/f.md": `---\n${head}\n---\nFill it` },
    });
    const [result] = taskResults(await d.prompt("Go"));
    expect(result?.details.results[0]).toMatchObject({
      exitCode: 0,
      extractedToolData: { yield: { n: 7 } },
      output: '{\n  "n": 7\n}',
    });
    await d.stop();
    const silent = await started(
      parent([{ task: "x", agent: "form" }], () => says("never")),
      { files: { "agents/f.md": `---\n${head}\n---\nFill it` } },
    );
    const [failed] = taskResults(await silent.daemon.prompt("Go"));
    expect(failed?.details.results[0]).toMatchObject({
      exitCode: 1,
      requests: 4,
      error: "It did not hand in its answer after 3 reminders",
    });
  });

  it("is not offered beyond agent.maxNestedSpawnDepth, and never to agents that may not spawn", async () => {
    const offered: Record<string, boolean> = {};
    const play: Play = ({ told, turn, request }) => {
      offered[told] = request.tools.some(({ name }) => name === "task");
      if (turn > 0) return says("done");
      if (told === "Go") return spawns("c1", { task: "one" }, { task: "look", agent: "explore" });
      return told === "one" ? spawns("c2", { task: "two" }) : says("leaf");
    };
    const { daemon: d } = await started(play);
    await d.prompt("Go");
    expect(offered).toEqual({ Go: true, one: true, look: false, two: false });
    await d.stop();
    const none = await started(() => says("x"), { files: { "config.yml": "agent:\n  maxNestedSpawnDepth: 0\n" } });
    expect(none.daemon.daemon.conversations.attached.toolSchemas().map(({ name }) => name)).not.toContain("task");
  });

  it("has no tool that the session itself was denied", async () => {
    const offered: string[][] = [];
    const play = parent([{ task: "x", agent: "review" }, { task: "y" }], ({ request }) => {
      offered.push(request.tools.map(({ name }) => name).sort());
      return says("ok");
    });
    const { daemon: d } = await started(play, { options: { tools: ["task", "read", "ls"] } });
    await d.prompt("Go");
    expect(offered.sort((a, b) => a.length - b.length)).toEqual([
      ["ls", "read"],
      ["ls", "read", "task"],
    ]);
  });

  it("follows agent.agents: an agent that is switched off, another model; and extensions contribute agents", async () => {
    const seen: string[] = [];
    const play = parent([{ task: "x" }, { task: "y", agent: "poet" }], ({ request }) => {
      seen.push(`${request.model.id} ${request.thinkingLevel} ${request.systemPrompt.at(-1)}`);
      return says("ok");
    });
    const poet = defineAgent({
      name: "poet",
      description: "Rhymes",
      tools: ["read"],
      thinkingLevel: "high",
      systemPrompt: "RHYME",
    });
    const config = "agent:\n  agents:\n    explore: {enabled: false}\n    task: {model: offline/echo}\n";
    const { daemon: d } = await started(play, { tools: [poet], files: { "config.yml": config } });
    const [result] = taskResults(await d.prompt("Go"));
    expect(result?.details.results.map(({ agent, output }) => [agent, output])).toEqual([
      ["task", "x"],
      ["poet", "ok"],
    ]);
    expect(seen).toEqual(["scripted high RHYME"]);
    await d.ask("new_session");
    const prompt = ((await d.ask("get_state"))["systemPrompt"] as string[]).join("\n");
    expect(prompt).toContain("- poet: Rhymes");
    expect(prompt).not.toContain("- explore:");
  });

  it("stops a subagent that uses up agent.requestBudget", async () => {
    const children: Play = ({ turn }) => calls({ id: `r${turn}`, name: "ls", args: { path: turn % 2 === 0 ? "." : ".." } });
    const { daemon: d } = await started(parent([{ task: "endless" }], children), {
      files: { "config.yml": "agent:\n  requestBudget: 4\n" },
    });
    const [result] = taskResults(await d.prompt("Go"));
    expect(result?.details.results[0]).toMatchObject({ exitCode: 1, requests: 6 });
  });

  it("lets agents that need not be waited for go on as a job", async () => {
    const gate = new Gate();
    const children: Play = () => [
      { type: "text_start", index: 0 },
      gate,
      { type: "text_delta", index: 0, delta: "late answer" },
      done(),
    ];
    const play: Play = (turn) =>
      turn.told === "Go" && turn.turn === 2 ? says("saw it") : parent([{ task: "x", agent: "slow" }], children)(turn);
    const { daemon: d } = await started(play, {
      files: { "agents/s.md": "---\nname: slow\ndescription: Slow\nblocking: false\n---\nTake your time" },
    });
    const [result] = taskResults(await d.prompt("Go"));
    expect(result?.details.async).toMatchObject({ state: "running", type: "task" });
    const after = d.frames.length;
    expect(d.daemon.kernel.services.use(Jobs).running(d.daemon.conversations.attached)).toBe(1);
    gate.open();
    const end = await d.next("agent_end", { after });
    expect(JSON.stringify(end)).toContain("late answer");
  });
});

describe("frames and commands", () => {
  const types = (frames: readonly Frame[]) => frames.filter(({ type }) => type.startsWith("subagent_"));

  it("are silent at off, tell the life and progress at progress, and every event at events", async () => {
    const play = parent([{ task: "x", description: "Do x" }], ({ turn }) =>
      turn === 0 ? calls({ id: "l", name: "ls" }) : says("ok"),
    );
    const { daemon: d } = await started(play);
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
    const { daemon: d } = await started(parent([{ task: "x" }], talks));
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
    const { daemon: d } = await started(play, { files: { "config.yml": "agent:\n  maxConcurrency: 1\n" } });
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
    const { daemon: d } = await started(parent([{ task: "x" }], () => held(gate)));
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

describe("the record in the parent's session", () => {
  const spawnsOf = (file: string) =>
    readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line.includes('"type":"subagent_spawn"'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  it("names each subagent when it starts and when it ends, and is no part of the context", async () => {
    const { daemon: d, provider } = await started(
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
    const { daemon: d } = await started(parent([{ task: "x" }], () => says("fine")));
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

  it("does not end what an earlier generation of the extension still runs", async () => {
    const gate = new Gate();
    const { daemon: d } = await started(parent([{ task: "x" }], () => held(gate)));
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
