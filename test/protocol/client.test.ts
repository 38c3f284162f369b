import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { type Frame, HostClient, HostError, type SpawnOptions } from "../../protocol/index.ts";

const DAEMON = fileURLToPath(new URL("fixtures/daemon.mjs", import.meta.url));
const open: HostClient[] = [];

async function start(variant = "v2", options: SpawnOptions = {}): Promise<HostClient> {
  const client = await HostClient.spawn({ command: process.execPath, args: [DAEMON, variant], ...options });
  open.push(client);
  return client;
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((client) => client.close({ graceMs: 500 })));
});

function texts(messages: readonly Record<string, unknown>[]): unknown[] {
  return messages.map((message) => (message["content"] as { text: string }[])[0]?.text);
}

async function failure(promise: Promise<unknown>): Promise<HostError> {
  const error = await promise.then(
    (value) => new Error(`Expected a failure, got ${JSON.stringify(value)}`),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(HostError);
  return error as HostError;
}

describe("HostClient: connecting", () => {
  it("waits for ready, negotiates v2 and passes the environment on", async () => {
    const client = await start("v2", { env: { ...process.env, MORTISE_TEST: "here" } });
    expect(client.ready["type"]).toBe("ready");
    expect(client.protocolVersion).toBe(2);
    expect(await client.request("get_state")).toEqual({ isStreaming: false, environment: "here" });
  });

  for (const variant of ["v1", "old-ready", "odd-limits"]) {
    it(`stays on v1 with a daemon that is ${variant}`, async () => {
      expect((await start(variant)).protocolVersion).toBe(1);
    });
  }

  it("stays on v1 when asked to", async () => {
    expect((await start("v2", { protocolVersion: 1 })).protocolVersion).toBe(1);
  });

  it("says why a daemon does not come up", async () => {
    const error = await failure(start("dies"));
    expect(error.code).toBe("disconnected");
    expect(error.message).toBe("Daemon exited with code 1; its last words: Cannot find module");
    expect((await failure(start("silent", { readyTimeoutMs: 50 }))).code).toBe("timeout");
    expect((await failure(start("v2", { command: "/nonexistent/mortise" }))).message).toMatch(/cannot be started: .*ENOENT/);
  });

  it("attaches to streams", async () => {
    const { spawn } = await import("node:child_process");
    const child = spawn(process.execPath, [DAEMON, "v2"], { stdio: ["pipe", "pipe", "ignore"] });
    const client = await HostClient.attach({ input: child.stdout, output: child.stdin });
    expect(await client.request("get_state")).toMatchObject({ isStreaming: false });
    await client.close();
    expect((await failure(client.request("get_state"))).code).toBe("disconnected");
  });

  it("ends a daemon that does not end itself", async () => {
    const client = await start("deaf");
    const started = Date.now();
    expect(await client.close({ graceMs: 20 })).toEqual({ code: null, signal: "SIGKILL" });
    expect(Date.now() - started).toBeLessThan(4_000);
  });
});

describe("HostClient: requests", () => {
  it("matches answers by id, not by order", async () => {
    const client = await start();
    const order: string[] = [];
    const ask = async (command: string, delay: number) => {
      // The fixture takes a parameter that the daemon's own command does not have.
      const name: string = "bash";
      const result = await client.request(name, { command, delay });
      order.push(command);
      expect(result).toEqual({ output: command });
    };
    await Promise.all([ask("slow", 80), ask("fast", 1)]);
    expect(order).toEqual(["fast", "slow"]);
  });

  it("throws the daemon's text and code, also for unknown commands, which are answered without id", async () => {
    const client = await start();
    const refused = await failure(client.request("prompt", { message: "refused" }));
    expect([refused.command, refused.message, refused.code]).toEqual(["prompt", "No model selected.", "not_found"]);
    const [unknown, state] = await Promise.all([failure(client.request("nope")), client.request("get_state")]);
    expect(unknown.message).toBe("Unknown command: nope");
    expect(state).toMatchObject({ isStreaming: false });
  });

  it("gives up by time and by signal", async () => {
    const client = await start();
    expect((await failure(client.request("never", {}, { timeoutMs: 20 }))).message).toBe("No answer to never within 20 ms");
    const controller = new AbortController();
    const waiting = failure(client.request("never", {}, { signal: controller.signal }));
    controller.abort();
    expect((await waiting).code).toBe("cancelled");
    expect((await failure(client.request("never", {}, { signal: AbortSignal.abort() }))).code).toBe("cancelled");
    expect(await client.request("get_state")).toMatchObject({ isStreaming: false });
  });

  it("public bug 7 B: takes large answers in chunks", async () => {
    const client = await start();
    const [big, state] = await Promise.all([client.request("big", { length: 700_000 }), client.request("get_state")]);
    expect(big).toEqual({ text: "ü\u2028".repeat(700_000) });
    expect(state).toMatchObject({ isStreaming: false });
  });

  it("rejects everything that waits when the daemon dies, with its last words", async () => {
    const client = await start();
    const waiting = failure(client.request("never"));
    const watching = failure(client.waitFor("agent_end"));
    const prompting = failure(client.promptAndWait("die"));
    expect((await waiting).message).toMatch(/^Daemon exited with code 7; its last words: FATAL: out of luck/);
    expect((await watching).code).toBe("disconnected");
    expect((await prompting).command).toBe("prompt");
    expect((await client.exited).code).toBe(7);
  });

  it("ends the connection when the framing is broken", async () => {
    for (const [text, message] of [
      ["not json\n", /not JSON.*the line begins: not json/],
      ["[1]\n", /rpc frame must be an object/],
      ['{"type":"rpc_chunk","chunkId":"a","index":0,"count":1,"byteLength":1,"data":"YQ=="}\n', /invalid rpc chunk metadata/],
    ] as const) {
      const client = await start();
      const error = await failure(client.request("raw", { text }));
      expect([error.code, error.command]).toEqual(["protocol", "raw"]);
      expect(error.message).toMatch(message);
    }
  });
});

describe("HostClient: frames", () => {
  it("passes every frame on in order, unknown ones too, and ends with the connection", async () => {
    const client = await start();
    const frames = client.frames();
    const heard: string[] = [];
    const stop = client.onFrame((frame) => heard.push(frame.type));
    await client.request("emit", {
      frames: [{ type: "notice" }, { type: "of_the_future", n: 1 }, { type: "response", id: "alien", success: true }],
    });
    stop();
    await client.request("emit", { frames: [{ type: "late" }] });
    await client.close();
    const seen: string[] = [];
    for await (const frame of frames) seen.push(frame.type);
    expect(seen).toEqual(["notice", "of_the_future", "response", "late"]);
    expect(heard).toEqual(["notice", "of_the_future", "response"]);
  });

  it("a broken-off iteration stops collecting", async () => {
    const client = await start();
    const frames = client.frames();
    await client.request("emit", { frames: [{ type: "one" }, { type: "two" }] });
    for await (const frame of frames) {
      expect(frame.type).toBe("one");
      break;
    }
    expect(await frames.next()).toEqual({ done: true, value: undefined });
  });

  it("waits for a type or a predicate, no longer than told", async () => {
    const client = await start();
    const [byType, byPredicate] = await Promise.all([
      client.waitFor("notice"),
      client.waitFor((frame: Frame) => frame["n"] === 2),
      client.request("emit", {
        frames: [
          { type: "notice", n: 1 },
          { type: "notice", n: 2 },
        ],
      }),
    ]);
    expect([byType["n"], byPredicate["n"]]).toEqual([1, 2]);
    expect((await failure(client.waitFor("nothing", { timeoutMs: 10 }))).message).toBe("No nothing frame within 10 ms");
    await expect(
      Promise.all([
        client.waitFor(() => {
          throw new Error("predicate");
        }),
        client.request("emit", { frames: [{ type: "x" }] }),
      ]),
    ).rejects.toThrow("predicate");
  });
});

describe("HostClient: promptAndWait", () => {
  const ends: readonly [string, boolean, unknown[], string | undefined][] = [
    ["plain", true, ["one", "two"], undefined],
    ["local", false, [], undefined],
    ["local-later", false, [], undefined],
    ["run-before-answer", true, ["skill"], undefined],
    ["continues", true, ["second"], undefined],
    ["result-first", true, [], "aborted"],
    ["shortened", true, ["a", "b", "c"], undefined],
  ];
  for (const [prompt, agentInvoked, expected, status] of ends) {
    it(`knows the end of a prompt that is ${prompt}`, async () => {
      const client = await start();
      const outcome = await client.promptAndWait(prompt);
      expect(outcome).toMatchObject({ agentInvoked, status });
      expect(texts(outcome.messages)).toEqual(expected);
    });
  }

  it("throws failures, refused at once or after acceptance, whatever ended in between", async () => {
    const client = await start();
    expect((await failure(client.promptAndWait("refused"))).code).toBe("not_found");
    const late = await failure(client.promptAndWait("late-failure"));
    expect([late.message, late.code]).toEqual(["Agent is already processing.", "busy"]);
  });

  it("delivers a failure that comes after the end, as a frame and as an error", async () => {
    const errors: Error[] = [];
    const client = await start("v2", { onError: (error) => errors.push(error) });
    const frame = client.waitFor((one) => one.type === "response" && one["success"] === false);
    await client.promptAndWait("failure-after-end");
    expect(await frame).toMatchObject({ command: "prompt", error: "Too late" });
    expect(errors.map((error) => error.message)).toEqual(["Too late"]);
  });

  it("joins a run that streams, gives up in time, and aborts by signal", async () => {
    const client = await start();
    const controller = new AbortController();
    const first = client.promptAndWait("hang", { signal: controller.signal });
    await client.waitFor("agent_start");
    expect((await failure(client.promptAndWait("nothing", { timeoutMs: 20 }))).code).toBe("timeout");
    controller.abort();
    expect(texts((await first).messages)).toEqual(["aborted"]);
  });
});

describe("HostClient: history", () => {
  it("drains the pages on v2, and takes one answer on v1", async () => {
    expect(texts(await (await start()).getMessages())).toEqual(["page 0 of 256", "page 1 of 256", "page 2 of 256"]);
    expect(texts(await (await start("v1")).getMessages())).toEqual(["snapshot"]);
  });

  it("falls back to a snapshot when the conversation moves, by code or by text, and on nothing else", async () => {
    expect(texts(await (await start("busy-pages")).getMessages())).toEqual(["snapshot"]);
    expect(texts(await (await start("stale-pages")).getMessages())).toEqual(["snapshot"]);
    expect((await failure((await start("bad-pages")).getMessages())).message).toBe("Invalid RPC message cursor");
  });
});
