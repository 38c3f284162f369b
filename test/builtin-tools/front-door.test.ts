// Tools, shell commands and todos as a host sees them: a whole daemon with the built-ins and the offline model.

import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { StartOptions, TestDaemon } from "mortise/testing";
import { startDaemon } from "mortise/testing";
import { afterEach, describe, expect, test } from "vitest";

let daemon: TestDaemon | undefined;
const start = async (options: StartOptions = {}) => {
  daemon = await startDaemon(options);
  return daemon;
};
afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
});

const calls = (...list: [string, Record<string, unknown>][]) =>
  list.map(([name, args]) => `call ${name} ${JSON.stringify(args)}`).join("\n");

/** The results of a prompt's tool calls, in order. */
async function run(d: TestDaemon, ...list: [string, Record<string, unknown>][]) {
  const frames = await d.prompt(calls(...list));
  return frames.filter((frame) => frame.type === "tool_execution_end") as unknown as {
    toolName: string;
    isError: boolean;
    result: { content: { text: string }[]; details: Record<string, unknown> };
  }[];
}

describe("tools", () => {
  test("write, read, edit, grep, find, ls and bash work together", async () => {
    const d = await start();
    const results = await run(
      d,
      ["write", { path: "src/a.txt", content: "one\ntwo\n" }],
      ["bash", { command: "cat src/a.txt" }],
      ["todo", { op: "init", items: ["x"] }],
    );
    expect(results.map((result) => [result.toolName, result.isError])).toContainEqual(["write", false]);
    const [edited] = await run(d, ["edit", { path: "src/a.txt", oldText: "two", newText: "2" }]);
    expect(edited?.result.details).toMatchObject({ firstChangedLine: 2 });
    const more = await run(
      d,
      ["grep", { pattern: "2" }],
      ["find", { pattern: "*.txt" }],
      ["ls", {}],
      ["read", { path: "src/a.txt" }],
    );
    const texts = Object.fromEntries(more.map((result) => [result.toolName, result.result.content[0]?.text]));
    expect(texts).toEqual({ grep: "src/a.txt:2: 2", find: "src/a.txt", ls: "src/", read: "one\n2\n" });
  });

  test("case 15 A: edits of one message are all on disk", async () => {
    const d = await start({ files: { "cwd/nums.txt": Array.from({ length: 100 }, (_, index) => `${index + 1}\n`).join("") } });
    const results = await run(
      d,
      ["edit", { path: "nums.txt", oldText: "\n12\n", newText: "\ntwelve\n" }],
      ["edit", { path: "./sub/../nums.txt", oldText: "\n34\n", newText: "\nthirty-four\n" }],
      ["edit", { path: "nums.txt", oldText: "\n56\n", newText: "\nfifty-six\n" }],
    );
    expect(results.map((result) => result.isError)).toEqual([false, false, false]);
    expect(readFileSync(join(d.cwd, "nums.txt"), "utf8")).toMatch(/\ntwelve\n[\s\S]*\nthirty-four\n[\s\S]*\nfifty-six\n/);
  });

  test("case 14: a pattern never becomes a flag", async () => {
    const d = await start({ files: { "cwd/p.sh": "#!/bin/sh\ntouch RAN\n", "cwd/a.txt": "--pre=./p.sh\n" } });
    const [result] = await run(d, ["grep", { pattern: "--pre=./p.sh" }]);
    expect(result?.result.content[0]?.text).toContain("a.txt:1: --pre=./p.sh");
    expect(existsSync(join(d.cwd, "RAN"))).toBe(false);
  });

  test("case 17: nothing that a tool prints breaks frames or the session", async () => {
    const d = await start();
    const [result] = await run(d, ["bash", { command: "head -c 2000 /dev/urandom; printf 'x\\0y\\355\\240\\275\\033[31m🧪'" }]);
    expect(result?.result.content[0]?.text.isWellFormed()).toBe(true);
    for (const frame of d.frames) expect(JSON.stringify(frame)).not.toMatch(/\\ud[89ab][0-9a-f]{2}(?!\\ud)|\\u0000|\\u001b/i);
    const { messages } = await d.ask("get_messages");
    expect(Array.isArray(messages)).toBe(true);
  });

  test("ask is offered in rpc-ui only and gives the person's answer", async () => {
    const plain = await start();
    const names = async (d: TestDaemon) =>
      ((await d.ask("get_state"))["dumpTools"] as { name: string }[]).map((tool) => tool.name);
    expect(await names(plain)).not.toContain("ask");
    expect(await names(plain)).not.toContain("web_search");
    await plain.stop();
    const d = await start({ options: { mode: "rpc-ui" }, answers: { select: { value: "B" } } });
    expect(await names(d)).toContain("ask");
    const [result] = await run(d, ["ask", { questions: [{ question: "Which?", options: [{ label: "A" }, { label: "B" }] }] }]);
    expect(result?.result).toMatchObject({ content: [{ text: "The user answered: B" }], details: { selectedOptions: ["B"] } });
  });

  test("cancelling a question ends the run", async () => {
    const d = await start({ options: { mode: "rpc-ui" }, answers: { select: { cancelled: true } } });
    const frames = await d.prompt(calls(["ask", { questions: [{ question: "Which?", options: [{ label: "A" }] }] }]));
    expect(frames.filter((frame) => frame.type === "agent_end")).toHaveLength(1);
    const end = frames.find((frame) => frame.type === "tool_execution_end");
    expect(end).toMatchObject({ isError: true });
  });

  test("web_search is offered with a key and asks the configured server", async () => {
    const asked: { url: string | undefined; key: unknown }[] = [];
    const server = createServer((request, response) => {
      asked.push({ url: request.url, key: request.headers["x-subscription-token"] });
      response.setHeader("content-type", "application/json");
      response.end(
        JSON.stringify({
          web: { results: [{ title: "<b>T</b> &amp; U", url: "https://x.test/", description: "D", age: "2 days ago" }] },
        }),
      );
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    try {
      const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api`;
      const d = await start({
        env: { ...process.env, BRAVE_API_KEY: "k1" },
        files: { "config.yml": `webSearch:\n  brave:\n    baseUrl: ${base}\n` },
      });
      const [result] = await run(d, ["web_search", { query: "a b", recency: "week", limit: 3 }]);
      expect(asked).toEqual([{ url: "/api/web/search?q=a+b&count=3&freshness=pw", key: "k1" }]);
      expect(result?.result.content[0]?.text).toBe("1. T & U\n   https://x.test/ (2 days ago)\n   D");
      const [env] = await run(d, ["bash", { command: "env" }]);
      expect(env?.result.content[0]?.text).not.toContain("BRAVE_API_KEY");
    } finally {
      server.close();
    }
  });
});

describe("bash command", () => {
  test("case 11, regression 4: other commands are answered meanwhile, and the record reaches the conversation", async () => {
    const d = await start();
    const slow = d.request("bash", { command: "sleep 0.4; sleep 70.3 & echo front" });
    const order: string[] = [];
    void slow.then(() => order.push("bash"));
    await d.ask("get_state");
    order.push("state");
    expect(await slow).toMatchObject({
      success: true,
      data: { output: "front\n", exitCode: 0, notes: [expect.stringContaining("sleep 70.3")] },
    });
    expect(order).toEqual(["state", "bash"]);
    const { messages } = await d.ask("get_messages");
    expect(messages).toMatchObject([{ role: "bashExecution", exitCode: 0 }]);
  });

  test("case 12 A: abort_bash and abort end it, both succeed", async () => {
    const d = await start();
    for (const command of ["abort_bash", "abort"]) {
      const running = d.request("bash", { command: "sleep 60" });
      await d.ask("get_state");
      expect(await d.request(command)).toMatchObject({ success: true });
      expect(await d.request("abort_bash")).toMatchObject({ success: true });
      expect(await running).toMatchObject({ success: true, data: { cancelled: true, output: "[Command cancelled]\n" } });
    }
    expect(await d.ask("bash", { command: "echo ok" })).toMatchObject({ output: "ok\n" });
  });

  test("end of input ends a running command as cancelled", async () => {
    const d = await start();
    const running = d.request("bash", { command: "sleep 60" });
    await d.ask("get_state");
    await d.stop();
    daemon = undefined;
    expect(await running).toMatchObject({ success: true, data: { cancelled: true } });
  });

  test("an empty command is refused", async () => {
    const d = await start();
    expect(await d.request("bash", { command: "" })).toMatchObject({ success: false, command: "bash" });
  });
});

describe("todos", () => {
  const phases = [{ id: "p", name: "Build", tasks: [{ id: "t", content: "a", status: "pending", extra: 1 }] }];
  const plain = [{ name: "Build", tasks: [{ content: "a", status: "pending" }] }];

  test("set_todos drops what it does not know and survives the first prompt", async () => {
    const d = await start();
    expect(await d.ask("set_todos", { phases })).toEqual({ todoPhases: plain });
    expect(await d.ask("get_state")).toMatchObject({ todoPhases: plain });
    await d.prompt("hello?");
    expect(await d.ask("get_state")).toMatchObject({ todoPhases: plain });
    await d.ask("new_session");
    expect(await d.ask("get_state")).toMatchObject({ todoPhases: [] });
  });

  test.each([
    ["a status that is not known", [{ name: "x", tasks: [{ content: "a", status: "blocked" }] }]],
    ["a missing content", [{ name: "x", tasks: [{ status: "pending" }] }]],
    ["missing tasks", [{ name: "x" }]],
    ["no list", "no"],
  ])("set_todos refuses %s and changes nothing", async (_name, bad) => {
    const d = await start();
    await d.ask("set_todos", { phases });
    expect(await d.request("set_todos", { phases: bad })).toMatchObject({ success: false, command: "set_todos" });
    expect(await d.ask("get_state")).toMatchObject({ todoPhases: plain });
  });

  test("the model is reminded of open todos until it has done nothing more", async () => {
    const d = await start();
    await d.ask("set_todos", { phases });
    const frames = await d.prompt("hello");
    const reminders = frames.filter((frame) => frame.type === "todo_reminder");
    expect(reminders).toEqual([
      { type: "todo_reminder", todos: [{ content: "a", status: "pending" }], attempt: 1, maxAttempts: 3 },
    ]);
    expect(frames.filter((frame) => frame.type === "agent_end")).toHaveLength(1);
  });

  test("regression 10: todo.reminders false means none", async () => {
    const d = await start({ files: { "config.yml": "todo:\n  reminders: false\n" } });
    await d.ask("set_todos", { phases });
    expect((await d.prompt("hello")).filter((frame) => frame.type === "todo_reminder")).toEqual([]);
  });
});
