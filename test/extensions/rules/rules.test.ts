// Rules (agent-semantics §5 TTSR and §10 "Rules"): the three uses of a rule file, and what happens when an answer goes against one.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { type StartOptions, startDaemon, type TestDaemon } from "../../../core/testing.ts";
import type { Frame } from "../../../protocol/frame.ts";
import {
  calls,
  done,
  Gate,
  type Reply,
  type Script,
  says,
  scriptedModel,
  scriptedProvider,
} from "../../support/scripted-provider.ts";

const daemons: TestDaemon[] = [];
afterEach(async () => {
  for (const daemon of daemons.splice(0)) await daemon.stop();
});

async function start(files: Record<string, string>, script: Script[], options: StartOptions = {}) {
  const provider = scriptedProvider(...script);
  const warnings: string[] = [];
  const quiet = () => {};
  const log = { debug: quiet, info: quiet, warn: (text: string) => void warnings.push(text), error: quiet };
  const daemon = await startDaemon({ extensions: { scripted: [[provider.definition]] }, files, log, ...options });
  daemons.push(daemon);
  daemon.daemon.conversations.attached.select({ model: scriptedModel });
  return { daemon, provider, warnings };
}
const triggered = (frames: readonly Frame[]) =>
  frames
    .filter(({ type }) => type === "ttsr_triggered")
    .map((frame) => (frame["rules"] as { name: string }[]).map(({ name }) => name));
const messages = (frames: readonly Frame[]) =>
  frames.filter(({ type }) => type === "message_end").map((frame) => frame["message"] as Record<string, unknown>);
const NO_TODO = "---\nname: no-todo\ncondition: TODO\\b\n---\nNever leave a TODO behind.";
/** An answer that goes on for ever after these deltas. */
const endless = (...deltas: string[]): Reply => [
  { type: "text_start", index: 0 },
  ...deltas.map((delta) => ({ type: "text_delta" as const, index: 0, delta })),
  new Gate(),
];

describe("a rule with a condition", () => {
  it("cuts the answer off at once, across deltas, and the run goes on with the rule; no abort is seen", async () => {
    const { daemon, provider } = await start({ "rules/no-todo.md": NO_TODO }, [
      endless("Fine. TO", "D", "O later"),
      says("Done"),
    ]);
    const frames = await daemon.prompt("Go");
    expect(triggered(frames)).toEqual([["no-todo"]]);
    expect(frames.find(({ type }) => type === "ttsr_triggered")).toMatchObject({
      rules: [{ content: "Never leave a TODO behind.", condition: ["TODO\\b"], path: join(daemon.home, "rules/no-todo.md") }],
    });
    expect(provider.requests.map(({ signal }) => signal.aborted)).toEqual([true, false]);
    expect(
      messages(frames).map(({ role, stopReason, customType, display }) => [role, stopReason ?? customType, display]),
    ).toEqual([
      ["user", undefined, undefined],
      ["assistant", "aborted", undefined],
      ["custom", "ttsr-injection", false],
      ["assistant", "stop", undefined],
    ]);
    expect(messages(frames)[1]).toMatchObject({ errorMessage: "Cut off by rule no-todo" });
    expect(frames.filter(({ type }) => type === "agent_end")).toHaveLength(1);
    expect(frames.filter(({ type }) => type === "turn_end")).toHaveLength(2);
    // The model sees the rule and not what it had said.
    const second = JSON.stringify(provider.requests[1]?.messages);
    expect(second).toContain("Never leave a TODO behind.");
    expect(second).not.toContain("Fine.");
    expect(provider.refused).toEqual([]);
    expect(await daemon.ask("get_state")).toMatchObject({ isStreaming: false, queuedMessageCount: 0 });
  });

  it("keeps what was said with contextMode keep", async () => {
    const { daemon, provider } = await start({ "rules/no-todo.md": NO_TODO, "config.yml": "ttsr:\n  contextMode: keep\n" }, [
      endless("Fine. TODO later"),
      says("Done"),
    ]);
    await daemon.prompt("Go");
    expect(JSON.stringify(provider.requests[1]?.messages)).toContain("Fine. TODO later");
  });

  it("comes once in a conversation, also after a restart; with after-gap again after so many turns", async () => {
    const first = await start({ "rules/no-todo.md": NO_TODO }, [endless("TODO x"), says("Done"), says("Another TODO here")]);
    const { daemon } = first;
    await daemon.prompt("Go");
    expect(triggered(await daemon.prompt("Again"))).toEqual([]);
    const { sessionFile } = await daemon.ask("get_state");
    const text = readFileSync(String(sessionFile), "utf8");
    const resumed = await start({ "rules/no-todo.md": NO_TODO, "old.jsonl": text }, [says("One TODO more")]);
    await resumed.daemon.ask("switch_session", { sessionPath: join(resumed.daemon.home, "old.jsonl") });
    resumed.daemon.daemon.conversations.attached.select({ model: scriptedModel });
    expect(triggered(await resumed.daemon.prompt("Again"))).toEqual([]);
    const gap = "ttsr:\n  repeatMode: after-gap\n  repeatGap: 2\n";
    const repeating = await start({ "rules/no-todo.md": NO_TODO, "config.yml": gap }, [
      endless("TODO x"),
      says("TODO 1"),
      says("TODO 2"),
      endless("TODO 3"),
      says("Done"),
    ]);
    const seen: number[] = [];
    for (let turn = 0; turn < 3; turn++) seen.push(triggered(await repeating.daemon.prompt("Go")).length);
    expect(seen).toEqual([1, 0, 1]);
  });

  it("is known to be told in a session that another program wrote", async () => {
    const timestamp = "2026-01-01T00:00:00.000Z";
    const message = { role: "user", content: [{ type: "text", text: "Hi" }], timestamp: 1 };
    const lines = [
      { type: "session", version: 3, id: "01936a00-0000-7000-8000-000000000001", timestamp, cwd: "/" },
      { type: "message", id: "00000001", parentId: null, timestamp, message },
      { type: "ttsr_injection", id: "00000002", parentId: "00000001", timestamp, injectedRules: ["no-todo"] },
    ];
    const old = `${lines.map((line) => JSON.stringify(line)).join("\n")}\n`;
    const { daemon } = await start({ "rules/no-todo.md": NO_TODO, "old.jsonl": old }, [says("A TODO")]);
    await daemon.ask("switch_session", { sessionPath: join(daemon.home, "old.jsonl") });
    daemon.daemon.conversations.attached.select({ model: scriptedModel });
    expect(triggered(await daemon.prompt("Go"))).toEqual([]);
  });

  it("is told after the turn when it may not interrupt, and the run goes on", async () => {
    const { daemon, provider } = await start({ "rules/no-todo.md": NO_TODO, "config.yml": "ttsr.interruptMode: never\n" }, [
      says("A TODO", " for later"),
      says("Sorry"),
    ]);
    const frames = await daemon.prompt("Go");
    expect(triggered(frames)).toEqual([["no-todo"]]);
    expect(messages(frames).map(({ role, stopReason }) => stopReason ?? role)).toEqual(["user", "stop", "custom", "stop"]);
    expect(JSON.stringify(provider.requests[1]?.messages)).toContain("A TODO for later");
    expect(frames.filter(({ type }) => type === "agent_end")).toHaveLength(1);
  });

  it("waits for the next character where the pattern looks ahead, and counts the end of the answer", async () => {
    const { daemon } = await start({ "rules/any.md": "---\ncondition: ': any\\b'\n---\nNo any." }, [
      says("let x: any", "thing"),
      says("let x: any"),
      says("ok"),
    ]);
    expect(triggered(await daemon.prompt("Go"))).toEqual([]);
    const frames = await daemon.prompt("Go");
    expect(triggered(frames)).toEqual([["any"]]);
    expect(messages(frames).at(-1)).toMatchObject({ stopReason: "stop" });
  });

  it.each([
    ["never", false],
    ["tool-only", true],
  ])("about a call of a certain file: interruptMode %s", async (mode, cuts) => {
    const rule = `---\nscope: tool:write(*.ts)\ncondition: 'say\\("hi"\\)\\n'\ninterruptMode: ${mode}\n---\nUse the logger.`;
    const args = (path: string) => ({ path, content: 'say("hi")\nx' });
    const call = (id: string, path: string) => calls({ id, name: "write", args: args(path) });
    const { daemon, provider } = await start({ "rules/log.md": rule }, [call("c1", "a.js"), call("c2", "b.ts"), says("Done")]);
    const frames = await daemon.prompt('Say say("hi")\n');
    expect(triggered(frames)).toEqual([["log"]]);
    const results = messages(frames).filter(({ role }) => role === "toolResult");
    expect(provider.requests[1]?.signal.aborted).toBe(cuts);
    expect(provider.refused).toEqual([]);
    expect(results).toHaveLength(cuts ? 1 : 2);
    if (!cuts) {
      const [reminder, own] = (results[1]?.["content"] ?? []) as { text: string }[];
      expect(reminder?.text).toContain("Use the logger.");
      expect(own?.text).toContain("b.ts");
    }
    expect(readdirSync(daemon.cwd).includes("b.ts")).toBe(!cuts);
  });

  it("watches thinking only where its scope says so", async () => {
    const thinking: Reply = [
      { type: "thinking_start", index: 0 },
      { type: "thinking_delta", index: 0, delta: "TODO" },
      { type: "thinking_delta", index: 0, delta: " hm" },
      { type: "thinking_end", index: 0 },
      { type: "text_start", index: 1 },
      { type: "text_delta", index: 1, delta: "ok" },
      { type: "text_end", index: 1 },
      done(),
    ];
    const quiet = await start({ "rules/no-todo.md": NO_TODO }, [thinking]);
    expect(triggered(await quiet.daemon.prompt("Go"))).toEqual([]);
    const { daemon } = await start({ "rules/t.md": "---\nscope: [thinking]\ncondition: [TODO]\n---\nThink on." }, [
      thinking,
      says("ok"),
    ]);
    expect(triggered(await daemon.prompt("Go"))).toEqual([["t"]]);
  });

  it("is skipped with a warning when its pattern is broken, and the others still work", async () => {
    const { daemon, warnings } = await start(
      { "rules/bad.md": "---\ncondition: ['(', 'x*']\n---\nNo.", "rules/no-todo.md": NO_TODO },
      [endless("( x TODO y"), says("Done")],
    );
    expect(triggered(await daemon.prompt("Go"))).toEqual([["no-todo"]]);
    expect(warnings.filter((text) => text.includes("bad.md"))).toEqual([
      expect.stringContaining('condition "(" is left out'),
      expect.stringContaining('condition "x*" is left out, it matches text that says nothing'),
    ]);
  });

  it("of a project that is not trusted may not hold a pattern that can take for ever", async () => {
    const evil = "---\ncondition: '(a+)+$'\n---\nNo.";
    const { daemon, warnings } = await start({ "cwd/.mortise/rules/evil.md": evil }, [says(`${"a".repeat(60)}!`)]);
    expect(triggered(await daemon.prompt("Go"))).toEqual([]);
    expect(warnings).toContainEqual(expect.stringContaining("until the project is trusted"));
  });

  it("does nothing with ttsr.enabled false or when it is disabled by name", async () => {
    for (const config of ["ttsr.enabled: false\n", "ttsr:\n  disabledRules: [no-todo]\n"]) {
      const { daemon } = await start({ "rules/no-todo.md": NO_TODO, "config.yml": config }, [says("TODO x")]);
      expect(triggered(await daemon.prompt("Go"))).toEqual([]);
    }
  });
});

describe("rule files", () => {
  it("with alwaysApply stand in the system prompt, with a description are listed and read on demand", async () => {
    const { daemon } = await start(
      {
        "rules/house.md": "---\nalwaysApply: true\n---\nSpeak plainly.",
        "rules/sql.mdc": "---\ndescription: How we write SQL\nglobs: *.sql\nalwaysApply: false\n---\nUpper case.",
        "rules/unused.md": "No head, no use.",
        "cwd/.mortise/rules/house.md": "---\nalwaysApply: true\n---\nThe project speaks.",
      },
      [],
      { options: { model: "offline/echo" } },
    );
    await daemon.ask("set_model", { provider: "offline", modelId: "echo" });
    const prompt = async () => ((await daemon.ask("get_state"))["systemPrompt"] as string[]).join("\n");
    expect(await prompt()).toContain("The project speaks.");
    expect(await prompt()).toContain("- rule://sql: How we write SQL (for *.sql)");
    for (const absent of ["Speak plainly.", "Upper case.", "No head, no use."]) expect(await prompt()).not.toContain(absent);
    expect(await daemon.callTool("read", { path: "rule://sql" })).toMatchObject({ isError: false });
    expect((await daemon.callTool("read", { path: "rule://sql" })).text).toContain("Upper case.");
    expect((await daemon.callTool("read", { path: "rule://none" })).text).toContain("Rules: elided-code, house, sql, unused");
  });

  it("take effect when they change on disk", async () => {
    const { daemon } = await start({ "rules/house.md": "---\nalwaysApply: true\n---\nOld." }, [
      says("A TODO"),
      endless("TODO x"),
      says("ok"),
    ]);
    expect(triggered(await daemon.prompt("Go"))).toEqual([]);
    const { registry } = daemon.daemon.kernel;
    const changed = new Promise<void>((resolve) => {
      registry.onChange(() => {
        if (registry.list("hook").some(({ definition }) => definition.name === "answerStarting")) resolve();
      });
    });
    daemon.write("rules/no-todo.md", NO_TODO);
    await changed;
    expect(triggered(await daemon.prompt("Go"))).toEqual([["no-todo"]]);
  });
});

describe("RULES.md", () => {
  const sent = (provider: { requests: { messages: readonly { role: string; content: unknown }[] }[] }, index: number) =>
    (provider.requests[index]?.messages ?? []).map(({ role, content }) => [role, JSON.stringify(content)] as const);
  const places = (messages: readonly (readonly [string, string])[]) =>
    messages.flatMap(([, text], at) => (text.includes("Rules that hold") ? [at] : []));

  it("of the user and the project stands in front of the newest prompt in every request, and is not stored", async () => {
    const files = { "RULES.md": "Speak plainly.\n", "cwd/.mortise/RULES.md": "Use tabs.\n" };
    const { daemon, provider } = await start(files, [says("One"), calls({ id: "c", name: "ls" }), says("Two")]);
    await daemon.prompt("First");
    expect(places(sent(provider, 0))).toEqual([0]);
    expect(sent(provider, 0)[0]?.[1]).toMatch(/Speak plainly\.\\n\\nUse tabs\./);
    await daemon.prompt("Second");
    for (const index of [1, 2]) {
      const messages = sent(provider, index);
      const [at = -1, ...more] = places(messages);
      expect(more).toEqual([]);
      expect(messages[at + 1]?.[1]).toContain("Second");
    }
    // The beginning is the same in both calls of the run, so that it stays cached.
    expect(sent(provider, 2).slice(0, 4)).toEqual(sent(provider, 1));
    const { sessionFile } = await daemon.ask("get_state");
    expect(readFileSync(String(sessionFile), "utf8")).not.toContain("Speak plainly");
    expect(provider.refused).toEqual([]);
  });

  it("holds for subagents, and an edit holds from the next call on", async () => {
    const spawn = calls({ id: "c", name: "task", args: { task: "Child" } });
    const { daemon, provider } = await start({ "RULES.md": "Old rule" }, [
      ...[spawn, says("child"), says("done")],
      ...Array.from({ length: 50 }, () => says("later")),
    ]);
    await daemon.prompt("Go");
    expect(JSON.stringify(provider.requests[1]?.messages)).toContain("Old rule");
    daemon.write("RULES.md", "New rule");
    for (let n = 0; !JSON.stringify(provider.requests.at(-1)?.messages).includes("New rule"); n++) {
      expect(n).toBeLessThan(50);
      await daemon.prompt("Again");
    }
    expect(JSON.stringify(provider.requests.at(-1)?.messages)).not.toContain("Old rule");
  });
});

it("rules that the project keeps for other programs are read as theirs, behind our own", async () => {
  const { daemon, provider, warnings } = await start(
    {
      "cwd/.cursor/rules/style.mdc": "---\ndescription:\nglobs:\nalwaysApply: true\n---\nCursor style.",
      "cwd/.cursor/rules/sql.mdc":
        "---\ndescription: Before SQL\nglobs: *.sql, migrations/**\nalwaysApply: false\n---\nNo joins.",
      "cwd/.windsurf/rules/wind.md": "---\ntrigger: always_on\n---\nWindsurf says.",
      "cwd/.clinerules/cline.md": "Cline says.",
      "cwd/.agents/rules/shared.md": "---\nalwaysApply: true\n---\nAgents say.",
      "cwd/.mortise/rules/style.md": "---\nalwaysApply: true\n---\nOur style.",
    },
    [says("One")],
  );
  await daemon.prompt("Go");
  const prompt = provider.requests[0]?.systemPrompt.join("\n") ?? "";
  for (const text of ["Our style.", "Windsurf says.", "Cline says.", "Agents say."]) expect(prompt).toContain(text);
  expect(prompt).not.toContain("Cursor style.");
  expect(prompt).toContain("- rule://sql: Before SQL (for *.sql, migrations/**)");
  expect(warnings.filter((text) => !text.includes("read line by line"))).toEqual([]);
});
