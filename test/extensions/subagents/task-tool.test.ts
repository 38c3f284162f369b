// The task tool through the front door (000_…, agent-semantics §3.5): what it starts, with what, and what it gives back.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { defineAgent, Jobs } from "../../../core/extension.ts";
import { done, fail, Gate } from "../../support/scripted-provider.ts";
import { calls, noneLeft, type Play, parent, says, spawns, start, taskResults } from "./_start.ts";

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
    const { daemon: d } = await start(play);
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
    const { daemon: d, provider } = await start(play);
    expect(taskResults(await d.prompt("Go"))[0]?.details.results[0]).toMatchObject({ id: "Solo", output: "answer A" });
    const offered = (index: number) => provider.requests[index]?.tools.find(({ name }) => name === "task")?.parameters;
    expect(offered(0)).toHaveProperty("properties.tasks");
    await d.stop();
    const flat = await start(play, { files: { "config.yml": "task:\n  batch: false\n" } });
    expect(taskResults(await flat.daemon.prompt("Go"))[0]?.details.results[0]).toMatchObject({ id: "Solo", output: "answer A" });
    expect(flat.provider.requests[0]?.tools.find(({ name }) => name === "task")?.parameters).toHaveProperty("properties.task");
  });

  it("names an unknown agent before anything has started", async () => {
    const { daemon: d } = await start(parent([{ task: "A" }, { task: "B", agent: "nobody" }], () => says("x")));
    const [result] = taskResults(await d.prompt("Go"));
    expect(result).toMatchObject({ isError: true, text: "Unknown agent: nobody. There are: task, explore, review" });
  });

  it("case 29.2: names the one that failed and holds the other's answer", async () => {
    const children: Play = ({ told }) => (told === "bad" ? [fail("The stream broke", "fatal")] : says("good answer"));
    const { daemon: d } = await start(
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
    const { daemon: d } = await start(play, {
      files: {
        "cwd/.mortise/agents/e.md": agent("name: explore\ndescription: Ours\ntools: read, ls", "PROJECT BODY"),
        "agents/e.md": agent("name: explore\ndescription: Mine", "USER BODY"),
        "agents/mine.md": agent("name: mine\ndescription: Mine too\ntools:\n  - read\n  - task", "MINE BODY"),
        "agents/bad.md": agent("name: no-description", "BAD"),
        "agents/level.md": agent("name: level\ndescription: Thinks\nthinkingLevel: enormous", "BAD"),
        "agents/colon.md": agent("name: colon\ndescription: Says: this, and: that\ntools: read", "STILL READ"),
      },
    });
    const frames = await d.prompt("Go");
    expect(taskResults(frames)[0]?.details.results.map(({ exitCode }) => exitCode)).toEqual([0, 0]);
    expect(taskResults(frames)[0]?.details).toMatchObject({ projectAgentsDir: join(d.cwd, ".mortise/agents") });
    expect(prompts.find((prompt) => prompt.includes("PROJECT BODY"))).toMatch(/TOOLS ls,read$/);
    expect(prompts.find((prompt) => prompt.includes("MINE BODY"))).toMatch(/TOOLS read,task$/);
    const notices = d.frames.filter((frame) => frame.type === "notice").map((frame) => String(frame["message"]));
    const about = (file: string) =>
      notices.filter((message) => message.includes(file)).map((message) => message.split('" ').slice(1).join('" '));
    expect(about("bad.md")).toEqual(['is ignored: it needs a "description" in its head']);
    expect(about("level.md")).toEqual([expect.stringMatching(/^is ignored: "thinkingLevel" in its head invalid option/)]);
    expect(about("colon.md")).toEqual([expect.stringMatching(/^is read line by line: /)]);
    expect(await d.slash("/agents")).toContain("colon    Says: this, and: that");
  });

  it("is not offered beyond agent.maxNestedSpawnDepth, and never to agents that may not spawn", async () => {
    const offered: Record<string, boolean> = {};
    const play: Play = ({ told, turn, request }) => {
      offered[told] = request.tools.some(({ name }) => name === "task");
      if (turn > 0) return says("done");
      if (told === "Go") return spawns("c1", { task: "one" }, { task: "look", agent: "explore" });
      return told === "one" ? spawns("c2", { task: "two" }) : says("leaf");
    };
    const { daemon: d } = await start(play);
    await d.prompt("Go");
    expect(offered).toEqual({ Go: true, one: true, look: false, two: false });
    await d.stop();
    const none = await start(() => says("x"), { files: { "config.yml": "agent:\n  maxNestedSpawnDepth: 0\n" } });
    expect(none.daemon.daemon.conversations.attached.toolSchemas().map(({ name }) => name)).not.toContain("task");
  });

  it("has no tool that the session itself was denied", async () => {
    const offered: string[][] = [];
    const play = parent([{ task: "x", agent: "review" }, { task: "y" }], ({ request }) => {
      offered.push(request.tools.map(({ name }) => name).sort());
      return says("ok");
    });
    const { daemon: d } = await start(play, { options: { tools: ["task", "read", "ls"] } });
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
    const { daemon: d } = await start(play, { tools: [poet], files: { "config.yml": config } });
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

  it("reads agents in files that an extension brings along, behind the user's and before the built-in ones", async () => {
    const agent = (name: string, text: string) => `---\nname: ${name}\ndescription: ${text}\n---\n${text}\n`;
    const extension = `
import { defineContentFolder } from "mortise/extension";
export default [
  defineContentFolder({ name: "team agents", content: "agents", path: import.meta.dirname + "/agents" }),
  defineContentFolder({ name: "one agent", content: "agents", path: import.meta.dirname + "/single.md" }),
];
`;
    const { daemon: d } = await start(
      parent([{ task: "x", agent: "writer" }], ({ request }) => says(request.systemPrompt.at(-1) ?? "")),
      {
        files: {
          "extensions/team/index.ts": extension,
          "extensions/team/agents/writer.md": agent("writer", "THEIR WRITER"),
          "extensions/team/agents/explore.md": agent("explore", "THEIR EXPLORER"),
          "extensions/team/agents/mine.md": agent("mine", "THEIR MINE"),
          "extensions/team/single.md": agent("single", "THEIR SINGLE"),
          "agents/mine.md": agent("mine", "MY OWN"),
        },
      },
    );
    const list = await d.slash("/agents");
    const lines = list.split("\n").map((line) => line.split(/ {2,}/));
    expect(lines.filter(([, text]) => /^(?:THEIR|MY)/.test(text ?? ""))).toEqual([
      ["mine", "MY OWN (user)"],
      ["explore", "THEIR EXPLORER (user)"],
      ["writer", "THEIR WRITER (user)"],
      ["single", "THEIR SINGLE (user)"],
    ]);
    expect(taskResults(await d.prompt("Go"))[0]?.details.results[0]).toMatchObject({ agent: "writer", output: "THEIR WRITER" });
  });

  it("stops a subagent that uses up agent.requestBudget", async () => {
    const children: Play = ({ turn }) => calls({ id: `r${turn}`, name: "ls", args: { path: turn % 2 === 0 ? "." : ".." } });
    const { daemon: d } = await start(parent([{ task: "endless" }], children), {
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
    const { daemon: d } = await start(play, {
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
