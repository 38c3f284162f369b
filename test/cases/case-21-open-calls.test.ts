// Case 21, item 24: whatever left a call without result, the next request is accepted, and is the same the next time.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { SERVICES } from "../anthropic/_services.ts";
import { startFakeAnthropic } from "../support/fake-anthropic.ts";
import type { FakeServer } from "../support/fake-provider.ts";
import type { DaemonProcess } from "../support/process.ts";
import {
  ask,
  eventually,
  PATIENCE_MS,
  prompt,
  request,
  sessionFiles,
  sessionLines,
  sessionText,
  useProcesses,
  userMessage,
  wait,
} from "./_support.ts";

const use = useProcesses();

async function service(): Promise<FakeServer> {
  const fake = await startFakeAnthropic();
  use.later(() => fake.close());
  return fake;
}
/** Everything but the last few words is worth a summary. */
const COMPACTING = "compaction:\n  keepRecentTokens: 4\n";

function start(fake: FakeServer, home?: string): DaemonProcess {
  return use.start({
    model: "anthropic/claude-haiku-4-5",
    env: { ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: fake.url },
    ...(home === undefined ? { files: { "cwd/a.txt": "alpha\n", "config.yml": COMPACTING } } : { home }),
  });
}
const refusals = (fake: FakeServer) => fake.requests.flatMap((request) => request.refusal ?? []);
const bash = (command: string, id?: string) => ({ name: "bash", arguments: { command }, ...(id === undefined ? {} : { id }) });
// Results are stored in the order of the calls, so the one that ends first stands first.
const threeCalls = {
  text: "Three",
  toolCalls: [{ name: "read", id: "t1", arguments: { path: "a.txt" } }, bash("sleep 30", "t2"), bash("sleep 30", "t3")],
};
type Message = Record<string, unknown>;
const messagesOf = (file: string) =>
  sessionLines(file).flatMap((line) => (line["type"] === "message" ? [line["message"] as Message] : []));

/** A stored answer that calls `read` with these ids. */
function answerWith(...ids: string[]): Message {
  return {
    role: "assistant",
    content: ids.map((id) => ({ type: "toolCall", id, name: "read", arguments: { path: "a.txt" } })),
    api: "anthropic-messages",
    provider: "anthropic",
    model: "claude-haiku-4-5",
    usage: {
      input: 1,
      output: 1,
      cacheRead: 0,
      cacheWrite: 0,
      totalTokens: 2,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
    },
    stopReason: "toolUse",
    timestamp: 2,
  };
}

describe("case 21", () => {
  it("1: kill -9 with one result of three stored: prompt and compaction are accepted, the filling-in is the same each time", {
    timeout: PATIENCE_MS,
  }, async () => {
    const fake = await service();
    const first = start(fake);
    fake.script(threeCalls);
    await ask(first, "prompt", { message: `Look into all of this: ${"word ".repeat(60)}` });
    await wait(first, (frame) => frame.type === "tool_execution_start");
    await eventually("the result of read in the file", () =>
      sessionFiles(first.home).some((file) => readFileSync(file, "utf8").includes('"toolResult"')),
    );
    first.child.kill("SIGKILL");
    await first.exited;
    const [file] = sessionFiles(first.home);
    expect(file).toBeDefined();
    const bodies: string[] = [];
    for (const message of ["again", "again"]) {
      const second = start(fake, first.home);
      fake.script({ failure: { status: 400, message: "No thanks" } });
      await ask(second, "switch_session", { sessionPath: file });
      await prompt(second, message);
      const { messages = [] } = (fake.requests.at(-1)?.body ?? {}) as { messages?: unknown[] };
      const results = (messages[2] as { content: unknown[] } | undefined)?.content.slice(0, 3);
      // Cache marks move with the end of the conversation.
      bodies.push(JSON.stringify([messages[0], messages[1], results]).replaceAll(',"cache_control":{"type":"ephemeral"}', ""));
      await second.end();
    }
    expect(bodies[1]).toBe(bodies[0]);
    expect(bodies[0]?.match(/"tool_result"/g)).toHaveLength(3);
    expect(bodies[0]).toContain("alpha");
    expect(bodies[0]?.match(/"is_error":true/g)).toHaveLength(2);
    const third = start(fake, first.home);
    await ask(third, "switch_session", { sessionPath: file });
    fake.script({ text: "I see" });
    await prompt(third, "go on");
    fake.otherwise({ text: "Summary" });
    expect(await ask(third, "compact")).toMatchObject({ summary: expect.stringContaining("Summary") });
    await prompt(third, "and on");
    expect(refusals(fake)).toEqual([]);
  });

  it("2: a branch at the answer that made the calls", async () => {
    const fake = await service();
    const daemon = start(fake);
    fake.script(
      {
        toolCalls: [
          { name: "ls", arguments: {} },
          { name: "read", arguments: { path: "a.txt" } },
        ],
      },
      { text: "Seen" },
      { text: "Branched" },
    );
    await prompt(daemon, "go");
    const { entries } = (await ask(daemon, "get_entries")) as {
      entries: { id: string; message?: { role: string; content: unknown } }[];
    };
    const caller = entries.find((entry) => entry.message?.role === "assistant");
    // Only messages of the user can be branched at, so no branch of ours ends on a call; the session goes on where it was.
    expect(await request(daemon, "branch", { entryId: caller?.id })).toMatchObject({
      success: false,
      error: "Invalid entry ID for branching",
    });
    await prompt(daemon, "other way");
    expect(JSON.stringify(fake.requests.at(-1)?.body)).toContain("other way");
    expect(refusals(fake)).toEqual([]);
  });

  it("2: a session of another program that was branched there", async () => {
    const fake = await service();
    const daemon = start(fake);
    const file = daemon.write("branched.jsonl", sessionText(daemon.cwd, [userMessage("go"), answerWith("c1", "c2")]));
    await ask(daemon, "switch_session", { sessionPath: file });
    fake.otherwise({ text: "Fine" });
    await prompt(daemon, "next");
    expect(refusals(fake)).toEqual([]);
    expect(JSON.stringify(fake.requests[0]?.body).match(/the tool call has no result/g)).toHaveLength(2);
  });

  it("3: an abort in the middle of three calls, and one before any has started", async () => {
    const fake = await service();
    const daemon = start(fake);
    fake.script(
      threeCalls,
      { text: "Back" },
      { ...threeCalls, toolCalls: [bash("sleep 30", "u1"), bash("sleep 30", "u2")] },
      { text: "Again" },
    );
    const began = daemon.frames.length;
    await ask(daemon, "prompt", { message: "go" });
    await wait(daemon, "tool_execution_start", began);
    await ask(daemon, "abort");
    await wait(daemon, "agent_end", began);
    await prompt(daemon, "and now?");
    const again = daemon.frames.length;
    await ask(daemon, "prompt", { message: "once more" });
    await wait(daemon, (frame) => frame.type === "message_end" && (frame["message"] as Message)["role"] === "assistant", again);
    await ask(daemon, "abort");
    await wait(daemon, "agent_end", again);
    await prompt(daemon, "at last");
    expect(refusals(fake)).toEqual([]);
    const [file = ""] = sessionFiles(daemon.home);
    const results = messagesOf(file).filter((message) => message["role"] === "toolResult");
    expect(results.map((message) => message["toolCallId"])).toEqual(["t1", "t2", "t3", "u1", "u2"]);
  });

  it("3: an abort while the first call waits for a yes: none has started, each has its result", async () => {
    const fake = await service();
    const daemon = use.start({
      model: "anthropic/claude-haiku-4-5",
      env: { ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: fake.url },
      files: { "config.yml": "tools:\n  approvalMode: ask\n" },
    });
    fake.script({ toolCalls: [bash("touch ran", "n1"), bash("touch ran", "n2"), bash("touch ran", "n3")] }, { text: "Back" });
    const began = daemon.frames.length;
    await ask(daemon, "prompt", { message: "go" });
    await wait(daemon, "extension_ui_request", began);
    await ask(daemon, "abort");
    await wait(daemon, "agent_end", began);
    await prompt(daemon, "and now?");
    expect(refusals(fake)).toEqual([]);
    const results = messagesOf(sessionFiles(daemon.home)[0] ?? "").filter((message) => message["role"] === "toolResult");
    expect(results.map((message) => [message["toolCallId"], message["isError"]])).toEqual([
      ["n1", true],
      ["n2", true],
      ["n3", true],
    ]);
    expect(existsSync(join(daemon.cwd, "ran"))).toBe(false);
  });

  it("4: steering with interrupt mode immediate: what has not started is skipped, the steer comes after all results", async () => {
    const fake = await service();
    const daemon = start(fake);
    await ask(daemon, "set_interrupt_mode", { mode: "immediate" });
    // The plan is exclusive: it waits for the command, and the last call for it.
    fake.script(
      {
        toolCalls: [
          bash("while [ ! -e go ]; do sleep 0.05; done", "s1"),
          { name: "todo", id: "s2", arguments: {} },
          { name: "write", id: "s3", arguments: { path: "s3.txt", content: "x" } },
        ],
      },
      { text: "Heard" },
    );
    const began = daemon.frames.length;
    await ask(daemon, "prompt", { message: "go" });
    await wait(daemon, "tool_execution_start", began);
    await ask(daemon, "steer", { message: "rather not" });
    daemon.write("cwd/go", "");
    await wait(daemon, "agent_end", began);
    const messages = messagesOf(sessionFiles(daemon.home)[0] ?? "");
    const roles = messages.map((message) => message["role"]);
    expect(roles).toEqual(["user", "assistant", "toolResult", "toolResult", "toolResult", "user", "assistant"]);
    expect(JSON.stringify(messages[5])).toContain("rather not");
    const [, second, third] = messages.filter((message) => message["role"] === "toolResult");
    for (const skipped of [second, third]) expect(JSON.stringify(skipped)).toContain("Skipped due to queued user message");
    expect(refusals(fake)).toEqual([]);
  });

  it.each(SERVICES)("5: a stored session with results in another order and one of them twice ($name)", async (under) => {
    const fake = await under.open();
    use.later(() => fake.close());
    const daemon = use.start({ ...under.options(fake), files: { "config.yml": COMPACTING } });
    const result = (id: string, text: string) => ({
      role: "toolResult",
      toolCallId: id,
      toolName: "read",
      content: [{ type: "text", text }],
      isError: false,
      timestamp: 3,
    });
    const file = daemon.write(
      "stored.jsonl",
      sessionText(daemon.cwd, [
        userMessage(`go ${"word ".repeat(200)}`),
        answerWith("c1", "c2"),
        result("c2", "SECOND"),
        result("c1", "FIRST"),
        result("c2", "ONCE-MORE"),
      ]),
    );
    await ask(daemon, "switch_session", { sessionPath: file });
    fake.otherwise({ text: "Fine" });
    await prompt(daemon, "next");
    const body = JSON.stringify(fake.requests[0]?.body);
    expect(body.match(/FIRST|SECOND|ONCE-MORE/g)).toEqual(["FIRST", "SECOND"]);
    expect(await ask(daemon, "compact")).toMatchObject({ summary: expect.stringContaining("Fine") });
    await prompt(daemon, "and on");
    expect(refusals(fake)).toEqual([]);
  });
});
