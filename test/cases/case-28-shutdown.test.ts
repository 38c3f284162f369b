// public-bugs 28: the end of the daemon while everything runs. No process, lock or temporary file stays, the session files are
// complete, hooks run once, and nothing that hangs holds it up.
import { randomInt } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { FakeReply, RecordedRequest } from "../support/fake-provider.ts";
import { type DaemonProcess, processesWith } from "../support/process.ts";
import { ask, eventually, ofId, prompt, type Service, sessionFiles, sessionLines, sleep, useProcesses } from "./_support.ts";

const use = useProcesses();
const patience = { timeout: 60_000 };
/** Five seconds by the case; a busy machine gets more. */
const END_LIMIT_MS = 9_000;
/** The stage is set quickly or never. */
const wait = (daemon: DaemonProcess, fits: Parameters<DaemonProcess["next"]>[0], after?: number) =>
  daemon.next(fits, { timeoutMs: 20_000, ...(after === undefined ? {} : { after }) });
const forever = () => new Promise<never>(() => {});

/** Interval, server, dialog, a command that ends the daemon; its goodbye is counted, and a second one hangs. */
const extension = `
import { appendFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { defineExtension, defineSlashCommand, defineTool, z } from "mortise/extension";
export default defineExtension({
  name: "busy",
  contributes: [
    defineTool({
      name: "ask_me", description: "Asks", params: z.object({}),
      run: async (ctx) => String(await ctx.ui.select({ title: "Which?", options: ["a", "b"] })),
    }),
    defineSlashCommand({ name: "quit-all", description: "Ends the daemon", run: (ctx) => ctx.shutdown() }),
  ],
  setup(scope) {
    setInterval(() => {}, 5);
    createServer((_, response) => response.end("hi")).listen(0, "127.0.0.1");
    scope.onRetire((reason) => {
      appendFileSync(process.env.GOODBYE, "native " + reason + "\\n");
      return new Promise(() => {});
    });
  },
});
`;
const piExtension = `
import { appendFileSync } from "node:fs";
export default function (pi) {
  pi.on("session_shutdown", () => { appendFileSync(process.env.GOODBYE, "pi quit\\n"); });
}
`;

interface Stage {
  daemon: DaemonProcess;
  service: Service;
  mark: string;
  temp: string;
  goodbye: string;
}

async function open(reply: (request: RecordedRequest) => FakeReply, config = "", mode: "rpc" | "rpc-ui" = "rpc"): Promise<Stage> {
  const service = await use.service();
  service.otherwise(reply);
  const mark = String(randomInt(1e8));
  const home = `mortise-28-${mark}`;
  const temp = join("/tmp", home);
  mkdirSync(temp);
  const goodbye = `${temp}.goodbye`;
  use.later(async () => {
    const { rmSync } = await import("node:fs");
    rmSync(temp, { recursive: true, force: true });
    rmSync(goodbye, { force: true });
  });
  const daemon = use.start({
    mode,
    model: service.daemon.model,
    env: { ...service.daemon.env, TMPDIR: temp, GOODBYE: goodbye },
    files: { "extensions/busy.ts": extension, "extensions/old.ts": piExtension, "config.yml": config },
  });
  await wait(daemon, "available_commands_update");
  return { daemon, service, mark, temp, goodbye };
}

const bodyOf = (request: RecordedRequest) => JSON.stringify(request.body);
const endless: FakeReply = { text: "word ".repeat(5000), chunk: 5, delayMs: 20 };

/** The state of the case: all of it at once. */
async function everything(mode: "rpc" | "rpc-ui" = "rpc"): Promise<Stage> {
  let mark = "";
  const stage = await open(
    (request) => {
      const body = bodyOf(request);
      if (body.includes("count for ever")) return endless;
      if (body.includes("leave one")) {
        if (body.includes('"role":"tool"')) return { text: "left" };
        return { toolCalls: [{ name: "bash", arguments: { command: `sleep 803.${mark} > /dev/null 2>&1 & echo left` } }] };
      }
      return endless;
    },
    "async:\n  enabled: true\n",
    mode,
  );
  mark = stage.mark;
  // Whatever a failure leaves, also what init took over.
  use.later(() => {
    for (const line of processesWith(`.${mark}`)) endNow(Number.parseInt(line, 10));
  });
  const { daemon, service } = stage;
  await prompt(daemon, "leave one");
  expect(processesWith(`sleep 803.${mark}`)).toHaveLength(1);
  await ask(daemon, "set_host_tools", {
    tools: [{ name: "ask_host", description: "Asks the host", parameters: { type: "object", properties: {} } }],
  });
  await ask(daemon, "set_host_uri_schemes", { schemes: [{ scheme: "doc", description: "Documents" }] });
  await ask(daemon, "set_subagent_subscription", { level: "events" });
  daemon.send({ id: "b1", type: "bash", command: `sleep 801.${mark}` });
  const task = (name: string) => ({ name, task: `${name}: count for ever` });
  service.script({
    toolCalls: [
      { name: "bash", arguments: { command: `sh -c 'trap "" TERM HUP; sleep 802.${mark}; sleep 802.${mark}'` } },
      { name: "bash", arguments: { command: `sleep 804.${mark}`, async: true } },
      { name: "ask_host", arguments: {} },
      { name: "read", arguments: { path: "doc://one" } },
      { name: "ask_me", arguments: {} },
      { name: "task", arguments: { tasks: [task("Ann"), task("Ben")] } },
    ],
  });
  daemon.send({ id: "p1", type: "prompt", message: "all at once" });
  await wait(daemon, "host_tool_call", 0);
  await wait(daemon, "host_uri_request", 0);
  await wait(daemon, (frame) => frame.type === "extension_ui_request" && frame["method"] === "select", 0);
  await eventually(
    "both subagents stream",
    () => service.requests.filter((each) => bodyOf(each).includes("count for ever")).length >= 2,
  );
  await eventually(
    "the commands run",
    () => [801, 802, 804].every((n) => processesWith(`sleep ${n}.${mark}`).length > 0),
    20_000,
  );
  return stage;
}

function endNow(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended with its parent.
  }
}

/** Every process below the daemon, with its start time. */
function descendants(root: number): Map<number, string> {
  const all = readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? (statOf(Number(name)) ?? []) : []));
  const found = new Map<number, string>();
  for (let grown = true; grown; ) {
    grown = false;
    for (const { pid, ppid, started } of all) {
      if (found.has(pid) || (ppid !== root && !found.has(ppid))) continue;
      found.set(pid, started);
      grown = true;
    }
  }
  return found;
}
/** Those of them that still run. A zombie now waits for the machine's init: the daemon is gone. */
function living(family: ReadonlyMap<number, string>) {
  return [...family.keys()]
    .flatMap((pid) => statOf(pid) ?? [])
    .filter(({ pid, started, state }) => state !== "Z" && family.get(pid) === started);
}
function statOf(pid: number) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { pid, ppid: Number(fields[1]), started: fields[19] ?? "", state: fields[0] };
  } catch {
    return undefined;
  }
}

/** Ends the daemon by `act` and checks what the case expects of every orderly end. */
async function endsClean(stage: Stage, code: number, act: () => unknown): Promise<void> {
  const { daemon, mark, temp, goodbye } = stage;
  const family = descendants(daemon.child.pid ?? 0);
  const began = performance.now();
  await act();
  expect(await daemon.exited).toBe(code);
  expect(performance.now() - began).toBeLessThan(END_LIMIT_MS);
  // Mostly at once; when the machine is too busy for the time a shutdown has, the watcher over the commands does the rest.
  await eventually("no command is left", () => processesWith(`.${mark}`).length === 0, 3000);
  await eventually("nothing of the daemon is left", () => living(family).length === 0, 3000);
  expect(readdirSync(temp)).toEqual([]);
  expect(readFileSync(goodbye, "utf8").trim().split("\n").sort()).toEqual(["native shutdown", "pi quit"]);
  filesAreComplete(daemon);
}

/** Every line of every session file is whole, every stored call has one result, no lock stays. */
function filesAreComplete(daemon: DaemonProcess): void {
  const files = sessionFiles(daemon.home);
  for (const file of files) {
    const messages = sessionLines(file).flatMap((line) => (line["type"] === "message" ? [line["message"] as Message] : []));
    const called = messages.flatMap(({ role, content }) =>
      role === "assistant" && Array.isArray(content) ? content.flatMap(({ type, id }) => (type === "toolCall" ? [id] : [])) : [],
    );
    const answered = messages.flatMap(({ role, toolCallId }) => (role === "toolResult" ? [toolCallId] : []));
    expect(answered.sort()).toEqual(called.sort());
  }
  const left = readdirSync(join(daemon.home, "sessions"), { recursive: true, encoding: "utf8" });
  expect(left.filter((name) => name.endsWith(".lock"))).toEqual([]);
}
interface Message {
  role: string;
  content?: { type: string; id?: string }[] | string;
  toolCallId?: string;
}

describe("everything runs", () => {
  it.each(["rpc", "rpc-ui"] as const)("a: stdin closes, with %s", patience, async (mode) => {
    const stage = await everything(mode);
    const { daemon } = stage;
    await endsClean(stage, 0, () => daemon.child.stdin?.end());
    expect(ofId(daemon, "b1")).toMatchObject([{ success: true, data: { cancelled: true } }]);
    const ends = daemon.frames.filter((frame) => frame.type === "tool_execution_end").slice(1);
    expect(
      ends
        .filter((frame) => frame["isError"] === true)
        .map((frame) => frame["toolName"])
        .sort(),
    ).toEqual(expect.arrayContaining(["ask_host", "ask_me", "bash", "read", "task"]));
    expect(daemon.frames.at(-1)?.type).toBeDefined();
    expect(daemon.stdout().endsWith("\n")).toBe(true);
  });

  it.each([
    ["b: SIGTERM", "SIGTERM", 143],
    ["c: SIGINT", "SIGINT", 130],
    ["d: SIGHUP", "SIGHUP", 129],
  ] as const)("%s", patience, async (_name, signal, code) => {
    const stage = await everything();
    await endsClean(stage, code, async () => {
      stage.daemon.child.kill(signal);
      if (signal !== "SIGINT") return;
      // An impatient person: twice.
      await sleep(150);
      stage.daemon.child.kill(signal);
    });
  });

  it("e: SIGKILL of the daemon only: its commands end, the session is whole when it is opened again", patience, async () => {
    const { daemon, mark, temp } = await everything();
    const family = descendants(daemon.child.pid ?? 0);
    daemon.child.kill("SIGKILL");
    expect(await daemon.exited).toBe("SIGKILL");
    // The one of 802 ignores TERM and HUP; that of 803 was left in the background by a call that had ended.
    await eventually("all commands have ended", () => processesWith(`.${mark}`).length === 0, 10_000);
    await eventually("nothing of the daemon is left", () => living(family).length === 0, 10_000);
    // docs/runtime.md "Shutdown": the remainder.
    expect(readdirSync(temp).filter((name) => !name.startsWith("mortise-"))).toEqual([]);
    const locks = readdirSync(join(daemon.home, "sessions"), { recursive: true, encoding: "utf8" });
    expect(locks.filter((name) => name.endsWith(".lock")).length).toBeGreaterThan(0);
    const [file = ""] = sessionFiles(daemon.home).filter((each) => readFileSync(each, "utf8").includes("all at once"));
    expect(existsSync(file)).toBe(true);
    const again = use.start({ home: daemon.home, args: ["--session", file] });
    const { messages } = (await ask(again, "get_messages")) as { messages: Message[] };
    expect(JSON.stringify(messages)).toContain("all at once");
    const after = await prompt(again, "still there?");
    expect(after.at(-1)?.type).toBe("agent_end");
    expect(await again.end()).toBe(0);
    // A call that was cut down with its process has no result in the file: what a provider gets says so instead.
    for (const each of sessionFiles(again.home)) sessionLines(each);
  });

  it("f: an extension asks, while the RPC bash runs: after the response", patience, async () => {
    const stage = await everything();
    const { daemon } = stage;
    await endsClean(stage, 0, () => daemon.send({ id: "q", type: "prompt", message: "/quit-all" }));
    expect(ofId(daemon, "q")).toMatchObject([{ success: true }]);
    expect(ofId(daemon, "b1")).toHaveLength(1);
  });
});

describe("one thing runs", () => {
  const endings = [
    ["stdin closes", 0, (daemon: DaemonProcess) => daemon.child.stdin?.end()],
    ["SIGTERM", 143, (daemon: DaemonProcess) => daemon.child.kill("SIGTERM")],
  ] as const;

  it.each(endings)("a retry wait; %s", patience, async (_name, code, end) => {
    const stage = await open(
      () => ({ failure: { status: 429, message: "Slow down" } }),
      "retry:\n  baseDelayMs: 60000\n  maxBackoffMs: 60000\n",
    );
    stage.daemon.send({ id: "p", type: "prompt", message: "go" });
    await wait(stage.daemon, "auto_retry_start");
    await endsClean(stage, code, () => end(stage.daemon));
    expect(stage.daemon.frames.filter((frame) => frame.type === "auto_retry_end")).toMatchObject([{ success: false }]);
  });

  it.each(endings)("a compaction; %s", patience, async (_name, code, end) => {
    const stage = await open(
      (request) =>
        bodyOf(request).includes("You write hand-over notes")
          ? { text: "never", hold: forever() }
          : { text: `said ${"x".repeat(400)}`, usage: { input: 900 } },
      "compaction:\n  keepRecentTokens: 40\n",
    );
    for (const text of ["one", "two", "three"]) await prompt(stage.daemon, text);
    const held = stage.service.request(4);
    stage.daemon.send({ id: "c", type: "compact" });
    await held;
    await endsClean(stage, code, () => end(stage.daemon));
    expect(ofId(stage.daemon, "c")).toMatchObject([{ success: false }]);
    const lines = sessionFiles(stage.daemon.home).flatMap(sessionLines);
    expect(lines.map((line) => line["type"])).not.toContain("compaction");
  });
});

it("g: stdin closes right after a prompt: it is recorded as a whole or not at all", patience, async () => {
  for (const withReady of [true, false]) {
    const service = await use.service();
    service.otherwise({ text: "Hello there" });
    const daemon = use.start(service.daemon);
    if (withReady) await wait(daemon, "available_commands_update");
    daemon.child.stdin?.end(`${JSON.stringify({ id: "p", type: "prompt", message: "the whole prompt" })}\n`);
    expect(await daemon.exited).toBe(0);
    expect(ofId(daemon, "p")).toHaveLength(1);
    const files = existsSync(join(daemon.home, "sessions")) ? sessionFiles(daemon.home) : [];
    for (const file of files) {
      const stored = sessionLines(file).filter((line) => line["type"] === "message");
      expect(stored[0]).toMatchObject({ message: { role: "user", content: [{ type: "text", text: "the whole prompt" }] } });
      const told = daemon.frames.filter((frame) => frame.type === "message_end").map((frame) => frame["message"]);
      expect(stored.map((line) => line["message"])).toEqual(told);
    }
  }
});
