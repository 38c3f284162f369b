// public-bugs 30: every call to the host settles exactly once, and what comes late touches nothing.
import { expect, it } from "vitest";
import type { Frame } from "../../protocol/frame.ts";
import type { DaemonProcess } from "../support/process.ts";
import {
  ask,
  ofId,
  prompt,
  request,
  type Service,
  sessionFiles,
  sessionLines,
  sessionText,
  textOf,
  useProcesses,
  userMessage,
  wait,
} from "./_support.ts";

const { start, service } = useProcesses();

const tool = (name: string) => ({
  name,
  description: `The host's ${name} tool`,
  parameters: { type: "object", properties: { n: { type: "number" } }, additionalProperties: false },
});
const call = (name: string, n = 1) => ({ toolCalls: [{ name, arguments: { n } }] });
const setTools = (daemon: DaemonProcess, ...names: string[]) => ask(daemon, "set_host_tools", { tools: names.map(tool) });
const result = (id: unknown, text: string, more: Record<string, unknown> = {}) => ({
  type: "host_tool_result",
  id,
  result: { content: [{ type: "text", text }] },
  ...more,
});
const update = (id: unknown, text: string) => ({
  type: "host_tool_update",
  id,
  partialResult: { content: [{ type: "text", text }] },
});
const ends = (daemon: DaemonProcess) =>
  daemon.frames
    .filter((frame) => frame.type === "tool_execution_end")
    .map((frame) => ({ isError: frame["isError"] === true, text: textOf(frame["result"]) }));
const cancels = (daemon: DaemonProcess, type: string) => daemon.frames.filter((frame) => frame.type === type);
const refusals = (fake: Service) => fake.requests.map((each) => each.refusal).filter((each) => each !== undefined);
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

it("ends an aborted call once, and its late answers do not reach the next call (case 30.1)", async () => {
  const fake = await service();
  fake.script(call("slow"), call("slow", 2), { text: "done" });
  const daemon = start(fake.daemon);
  await setTools(daemon, "slow", "fast");
  daemon.send({ id: "p1", type: "prompt", message: "go" });
  const first = await wait(daemon, "host_tool_call");
  expect(first).toMatchObject({ toolName: "slow", arguments: { n: 1 } });
  daemon.send(update(first["id"], "10 %"));
  daemon.send(update(first["id"], "20 %"));
  await wait(daemon, (frame) => frame.type === "tool_execution_update" && textOf(frame["partialResult"]) === "20 %");
  expect(await request(daemon, "abort")).toMatchObject({ success: true });
  await wait(daemon, "agent_end");
  const cancelled = cancels(daemon, "host_tool_cancel");
  expect(cancelled).toMatchObject([{ targetId: first["id"] }]);
  expect(cancelled[0]?.["id"]).not.toBe(first["id"]);
  expect(ends(daemon)).toMatchObject([{ isError: true }]);

  daemon.send(result(first["id"], "late"));
  daemon.send(update(first["id"], "later"));
  daemon.send({ id: "p2", type: "prompt", message: "again" });
  const second = await wait(daemon, (frame) => frame.type === "host_tool_call" && frame["id"] !== first["id"], 0);
  daemon.send(result(first["id"], "late again"));
  daemon.send(update(first["id"], "even later"));
  daemon.send(result(second["id"], "the second"));
  await wait(daemon, "agent_end", daemon.frames.indexOf(second));
  expect(ends(daemon).map((end) => end.text)[1]).toBe("the second");
  expect(JSON.stringify(daemon.frames)).not.toMatch(/late|later/);
  expect(refusals(fake)).toEqual([]);
  expect(cancels(daemon, "host_tool_cancel")).toHaveLength(1);
  expect(await daemon.end()).toBe(0);
  expect(daemon.stderr()).not.toMatch(/unhandled/i);
});

interface Answer {
  name: string;
  frames: (id: unknown) => Record<string, unknown>[];
  expected: { isError: boolean; text: unknown };
}
const MISFIT = "Invalid host_tool_result: expected `result.content` to be an array of content blocks";
const answers: Answer[] = [
  { name: "two results", frames: (id) => [result(id, "one"), result(id, "two")], expected: { isError: false, text: "one" } },
  {
    name: "an unknown id before",
    frames: (id) => [result("host_999", "x"), result(7, "y"), result(id, "mine")],
    expected: { isError: false, text: "mine" },
  },
  { name: "no result", frames: (id) => [{ type: "host_tool_result", id }], expected: { isError: true, text: MISFIT } },
  {
    name: "an empty result",
    frames: (id) => [{ type: "host_tool_result", id, result: {} }],
    expected: { isError: true, text: MISFIT },
  },
  {
    name: "a text as content",
    frames: (id) => [{ type: "host_tool_result", id, result: { content: "x" } }],
    expected: { isError: true, text: MISFIT },
  },
  {
    name: "an error without content",
    frames: (id) => [{ type: "host_tool_result", id, isError: true, result: { content: [] } }],
    expected: { isError: true, text: "Host tool execution failed" },
  },
  {
    name: "an error with text",
    frames: (id) => [result(id, "row 7 is locked", { isError: true })],
    expected: { isError: true, text: "row 7 is locked" },
  },
  {
    name: "empty content",
    frames: (id) => [{ type: "host_tool_result", id, result: { content: [] } }],
    expected: { isError: false, text: "" },
  },
  {
    name: "an update of the wrong shape",
    frames: (id) => [{ type: "host_tool_update", id, partialResult: 7 }, result(id, "fine")],
    expected: { isError: false, text: "fine" },
  },
  {
    name: "a block of unknown type",
    frames: (id) => [{ type: "host_tool_result", id, result: { content: [{ type: "audio", data: "x" }] } }],
    expected: { isError: false, text: expect.stringContaining("audio") },
  },
  {
    name: "20 MB of text",
    frames: (id) => [result(id, "z".repeat(20_000_000))],
    expected: { isError: false, text: expect.stringMatching(/\[19600000 characters of the host's result cut\]$/) },
  },
  {
    name: "a picture",
    frames: (id) => [
      { type: "host_tool_result", id, result: { content: [{ type: "image", data: PIXEL, mimeType: "image/png" }] } },
    ],
    expected: { isError: false, text: "" },
  },
];

it("makes a result or a clean error of whatever the host answers (case 30.2)", async () => {
  const fake = await service();
  const daemon = start(fake.daemon);
  await setTools(daemon, "slow", "fast");
  for (const { name, frames, expected } of answers) {
    fake.script(call("slow"), { text: "ok" });
    const after = daemon.frames.length;
    daemon.send({ type: "prompt", message: name });
    const asked = await wait(daemon, "host_tool_call", after);
    for (const frame of frames(asked["id"])) daemon.send(frame);
    await wait(daemon, "agent_end", after);
    expect(ends(daemon).at(-1), name).toEqual(expected);
    expect(refusals(fake), name).toEqual([]);
  }
  expect(ends(daemon)).toHaveLength(answers.length);
  const image = daemon.frames.findLast((frame) => frame.type === "tool_execution_end");
  expect(image?.["result"]).toMatchObject({ content: [{ type: "image", mimeType: "image/png" }] });
  expect(await daemon.end()).toBe(0);
  expect(daemon.stderr()).not.toMatch(/unhandled/i);
}, 120_000);

it("a call outlives its definition, and is settled by its answer (case 30.3, set_host_tools)", async () => {
  const fake = await service();
  fake.script(call("slow"), { text: "done" });
  const daemon = start(fake.daemon);
  await setTools(daemon, "slow", "fast");
  daemon.send({ type: "prompt", message: "go" });
  const asked = await wait(daemon, "host_tool_call");
  expect(await setTools(daemon, "fast")).toEqual({ toolNames: ["fast"] });
  daemon.send(result(asked["id"], "still mine"));
  await wait(daemon, "agent_end");
  expect(ends(daemon)).toEqual([{ isError: false, text: "still mine" }]);
  const body = fake.requests[1]?.body as { tools: { function: { name: string } }[] };
  const offered = body.tools.map((each) => each.function.name);
  expect(offered).toContain("fast");
  expect(offered).not.toContain("slow");
  expect(refusals(fake)).toEqual([]);
});

it("switch_session cancels a pending call, and both sessions stay usable (case 30.3)", async () => {
  const fake = await service();
  fake.script(call("slow"));
  const daemon = start({ ...fake.daemon, files: { "cwd/other.jsonl": sessionText("/", [userMessage("old")]) } });
  await setTools(daemon, "slow");
  daemon.send({ type: "prompt", message: "go" });
  const asked = await wait(daemon, "host_tool_call");
  const { sessionFile } = await ask(daemon, "get_state");
  expect(await request(daemon, "switch_session", { sessionPath: "other.jsonl" })).toMatchObject({ success: true });
  await wait(daemon, (frame) => frame.type === "host_tool_cancel" && frame["targetId"] === asked["id"], 0);
  daemon.send(result(asked["id"], "too late for that session"));
  fake.script({ text: "in the other one" }, { text: "back" });
  await prompt(daemon, "hello");
  expect(await request(daemon, "switch_session", { sessionPath: sessionFile })).toMatchObject({ success: true });
  await prompt(daemon, "and again");
  expect(refusals(fake)).toEqual([]);
  expect(JSON.stringify(fake.requests.map((each) => each.body))).not.toContain("too late");
  const results = sessionLines(String(sessionFile)).filter(
    (line) => (line["message"] as { role?: string } | undefined)?.role === "toolResult",
  );
  expect(results).toHaveLength(1);
});

it("immediate steering leaves a running call alone and is read right after it (case 30.3, item 20)", async () => {
  const fake = await service();
  fake.script(
    {
      toolCalls: [
        { name: "slow", arguments: {} },
        { name: "fast", arguments: {} },
      ],
    },
    { text: "done" },
  );
  const daemon = start(fake.daemon);
  await setTools(daemon, "slow", "fast");
  daemon.send({ type: "prompt", message: "go" });
  const slow = await wait(daemon, (frame) => frame.type === "host_tool_call" && frame["toolName"] === "slow", 0);
  const fast = await wait(daemon, (frame) => frame.type === "host_tool_call" && frame["toolName"] === "fast", 0);
  expect(await request(daemon, "steer", { message: "change of plan" })).toMatchObject({ success: true });
  daemon.send(result(fast["id"], "fast done"));
  daemon.send(result(slow["id"], "slow done"));
  await wait(daemon, "agent_end");
  expect(cancels(daemon, "host_tool_cancel")).toEqual([]);
  expect(
    ends(daemon)
      .map((end) => end.text)
      .sort(),
  ).toEqual(["fast done", "slow done"]);
  const body = JSON.stringify(fake.requests[1]?.body);
  expect(body.indexOf("change of plan")).toBeGreaterThan(body.indexOf("slow done"));
  expect(refusals(fake)).toEqual([]);
});

it("the end of input settles a pending call; the session stays paired and no model is asked again (case 30.3)", async () => {
  const fake = await service();
  fake.script(call("slow"), { text: "never" });
  const daemon = start(fake.daemon);
  await setTools(daemon, "slow");
  daemon.send({ type: "prompt", message: "go" });
  await wait(daemon, "host_tool_call");
  expect(await daemon.end()).toBe(0);
  expect(fake.requests).toHaveLength(1);
  const messages = sessionLines(String(sessionFiles(daemon.home)[0])).flatMap((line) =>
    line["type"] === "message" ? [line["message"] as Record<string, unknown>] : [],
  );
  expect(messages.filter((message) => message["role"] === "toolResult")).toMatchObject([{ toolName: "slow", isError: true }]);
  const again = start({ ...fake.daemon, args: ["--session", String(sessionFiles(daemon.home)[0])] });
  await prompt(again, "go on");
  expect(refusals(fake)).toEqual([]);
});

const schemes = (daemon: DaemonProcess, ...list: Record<string, unknown>[]) =>
  request(daemon, "set_host_uri_schemes", { schemes: list });
const read = (daemon: DaemonProcess, path: string) =>
  daemon.send({ type: "prompt", message: `call read ${JSON.stringify({ path })}` });
const uriRequest = (daemon: DaemonProcess, after: number): Promise<Frame> => wait(daemon, "host_uri_request", after);

it("compares schemes in lower case and keeps the rest of the URL; content is optional (case 30.4)", async () => {
  const daemon = start();
  expect(await schemes(daemon, { scheme: "DB", writable: true })).toMatchObject({ success: true, data: { schemes: ["db"] } });
  for (const [path, url] of [
    ["db://a/b", "db://a/b"],
    ["DB://A", "db://A"],
    ["db://", "db://"],
  ]) {
    const after = daemon.frames.length;
    read(daemon, String(path));
    const asked = await uriRequest(daemon, after);
    expect(asked).toMatchObject({ operation: "read", url });
    daemon.send(
      path === "DB://A"
        ? { type: "host_uri_result", id: asked["id"] }
        : { type: "host_uri_result", id: asked["id"], content: `row of ${path}`, notes: ["fresh"], contentType: "text/csv" },
    );
    await wait(daemon, "agent_end", after);
    const end = ends(daemon).at(-1);
    expect(end?.isError).toBe(false);
    if (path !== "DB://A") expect(end?.text).toContain(`row of ${path}`);
    if (path !== "DB://A") expect(end?.text).toContain("fresh");
  }
});

it("abort gives up a silent host with one host_uri_cancel, and late answers are ignored (case 30.4)", async () => {
  const daemon = start();
  await schemes(daemon, { scheme: "db" });
  read(daemon, "db://silent");
  const asked = await uriRequest(daemon, 0);
  expect(await request(daemon, "abort")).toMatchObject({ success: true });
  await wait(daemon, "agent_end");
  expect(cancels(daemon, "host_uri_cancel")).toMatchObject([{ targetId: asked["id"] }]);
  daemon.send({ type: "host_uri_result", id: asked["id"], content: "too late" });
  await prompt(daemon, "hello");
  expect(JSON.stringify(daemon.frames)).not.toContain("too late");
  expect(await daemon.end()).toBe(0);
});

it("asks the host for writes of writable schemes only, and never for edits (case 30.4)", async () => {
  const daemon = start();
  await schemes(daemon, { scheme: "db", writable: true }, { scheme: "log" });
  const lines = (...calls: [string, Record<string, unknown>][]) =>
    calls.map(([name, args]) => `call ${name} ${JSON.stringify(args)}`).join("\n");
  daemon.send({
    type: "prompt",
    message: lines(
      ["write", { path: "log://a", content: "x" }],
      ["edit", { path: "db://a", oldText: "a", newText: "b" }],
      ["grep", { pattern: "x", path: "db://a" }],
      ["write", { path: "DB://A/b", content: "full\ntext" }],
    ),
  });
  const asked = await uriRequest(daemon, 0);
  expect(asked).toMatchObject({ operation: "write", url: "db://A/b", content: "full\ntext" });
  daemon.send({ type: "host_uri_result", id: asked["id"] });
  await wait(daemon, "agent_end");
  const all = ends(daemon);
  expect(all.filter((end) => !end.isError).map((end) => end.text)).toEqual([expect.stringContaining("DB://A/b")]);
  expect(all.filter((end) => end.isError).map((end) => end.text)).toEqual([
    expect.stringContaining("read-only"),
    expect.stringMatching(/edit|write/),
    expect.stringContaining("db://"),
  ]);
  expect(daemon.frames.filter((frame) => frame.type === "host_uri_request")).toHaveLength(1);
  // An error of the host reaches the model as it is.
  const after = daemon.frames.length;
  read(daemon, "db://gone");
  const second = await uriRequest(daemon, after);
  daemon.send({ type: "host_uri_result", id: second["id"], isError: true, error: "row 42 not found" });
  await wait(daemon, "agent_end", after);
  expect(ends(daemon).at(-1)).toEqual({ isError: true, text: expect.stringContaining("row 42 not found") });
});

it("refuses reserved and malformed scheme names and keeps the old set (case 30.4)", async () => {
  const daemon = start();
  await schemes(daemon, { scheme: "db" });
  for (const scheme of ["file", "http", "HTTPS", "", "  ", "a b", "1a", "é", 7, null, undefined]) {
    expect(await schemes(daemon, { scheme: "ok" }, { scheme }), String(scheme)).toMatchObject({
      success: false,
      command: "set_host_uri_schemes",
    });
  }
  expect(await request(daemon, "set_host_uri_schemes", { schemes: "db" })).toMatchObject({
    success: false,
    code: "invalid_params",
  });
  read(daemon, "db://a");
  const asked = await uriRequest(daemon, 0);
  daemon.send({ type: "host_uri_result", id: asked["id"], content: "still here" });
  await wait(daemon, "agent_end");
  expect(ends(daemon)).toMatchObject([{ isError: false }]);
  const after = daemon.frames.length;
  read(daemon, "ok://a");
  await wait(daemon, "agent_end", after);
  expect(ends(daemon).at(-1)).toEqual({ isError: true, text: expect.stringContaining("Unknown protocol: ok://") });
  expect(ofId(daemon, "none")).toEqual([]);
});
