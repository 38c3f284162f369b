import { describe, expect, it } from "vitest";
import { CommandError, defineCommand, defineHostRequest, overrideCommand, z } from "../../../core/extension.ts";
import { bareKernel } from "../../support/kernel.ts";

const base = { group: "Test", summary: "For the test.", example: { params: {} } } as const;

function deferred<T = void>() {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

describe("A kernel without extensions", () => {
  it("answers every command with `Unknown command`, without the id", () => {
    const daemon = bareKernel();
    daemon.send({ id: "a", type: "get_state" });
    expect(daemon.frames).toEqual([
      { type: "response", command: "get_state", success: false, error: "Unknown command: get_state" },
    ]);
  });
});

describe("Dispatcher", () => {
  it.each([
    ["{", /^Failed to parse command: /, "parse"],
    ["null", /^Failed to parse command: expected a JSON object, found null$/, "parse"],
    ["[]", /^Unknown command: undefined \(.*found an array\)$/, undefined],
    ["42", /^Unknown command: undefined/, undefined],
    ['"get_state"', /^Unknown command: undefined/, undefined],
    ['{"id":"l3"}', /^Unknown command: undefined/, undefined],
    ['{"id":"l4","type":17}', /^Unknown command: undefined/, undefined],
  ])("refuses %s with one failure without id", (line, error, command) => {
    const daemon = bareKernel();
    daemon.send(line);
    expect(daemon.frames).toHaveLength(1);
    expect(daemon.frames[0]).toMatchObject({ type: "response", success: false });
    expect(daemon.frames[0]?.["error"]).toMatch(error);
    expect(daemon.frames[0]?.["command"]).toBe(command);
    expect(daemon.frames[0]).not.toHaveProperty("id");
  });

  it("echoes string and number ids and refuses others", () => {
    const daemon = bareKernel();
    daemon.add(
      "x",
      "builtin",
      defineCommand({ ...base, name: "ping", concurrency: "serial", params: z.object({}), run: () => {} }),
    );
    for (const id of ["", "a", 0, 7]) daemon.send({ id, type: "ping" });
    expect(daemon.frames.map((frame) => frame["id"])).toEqual(["", "a", 0, 7]);
    daemon.frames.length = 0;
    for (const id of [null, true, {}, []]) daemon.send({ id, type: "ping" });
    expect(daemon.frames).toHaveLength(4);
    for (const frame of daemon.frames) {
      expect(frame).toMatchObject({ command: "ping", success: false, code: "invalid_params" });
      expect(frame).not.toHaveProperty("id");
    }
  });

  it("runs serial commands in order and lets a concurrent one leave the lane", async () => {
    const daemon = bareKernel();
    const gate = deferred();
    const slow = deferred();
    const order: string[] = [];
    daemon.add(
      "x",
      "builtin",
      defineCommand({
        ...base,
        name: "slow",
        concurrency: "concurrent",
        params: z.object({}),
        async run() {
          order.push("slow starts");
          await slow.promise;
        },
      }),
      defineCommand({ ...base, name: "wait", concurrency: "serial", params: z.object({}), run: () => gate.promise }),
      defineCommand({ ...base, name: "ping", concurrency: "serial", params: z.object({}), run: () => void order.push("ping") }),
    );
    for (const [id, type] of [
      ["1", "slow"],
      ["2", "wait"],
      ["3", "ping"],
    ])
      daemon.send({ id, type });
    expect(order).toEqual(["slow starts"]);
    gate.resolve();
    await daemon.next((frame) => frame["id"] === "3");
    slow.resolve();
    await daemon.next((frame) => frame["id"] === "1");
    expect(daemon.frames.map((frame) => frame["id"])).toEqual(["2", "3", "1"]);
  });

  it("answers a refusal word for word with its code, and a bug with `internal`", async () => {
    const daemon = bareKernel();
    daemon.add(
      "x",
      "builtin",
      defineCommand({
        ...base,
        name: "refuse",
        concurrency: "serial",
        params: z.object({}),
        run: () => {
          throw new CommandError("Not now", "busy");
        },
      }),
      defineCommand({
        ...base,
        name: "bug",
        concurrency: "serial",
        params: z.object({}),
        run: () => Promise.reject(new Error("oops")),
      }),
    );
    daemon.send({ id: 1, type: "refuse" });
    daemon.send({ id: 2, type: "bug" });
    await daemon.next((frame) => frame["id"] === 2);
    expect(daemon.frames).toEqual([
      { id: 1, type: "response", command: "refuse", success: false, error: "Not now", code: "busy" },
      { id: 2, type: "response", command: "bug", success: false, error: "oops", code: "internal" },
    ]);
  });

  it("names the path of wrong parameters and drops unknown ones", () => {
    const daemon = bareKernel();
    const seen: unknown[] = [];
    daemon.add(
      "x",
      "builtin",
      defineCommand({
        ...base,
        name: "take",
        concurrency: "serial",
        params: z.object({ list: z.array(z.object({ n: z.number() })) }),
        run: (_ctx, params) => void seen.push(params),
      }),
    );
    daemon.send({ id: 1, type: "take", list: [{ n: 1, extra: true }], other: 2 });
    daemon.send({ id: 2, type: "take", list: [{ n: "1" }] });
    expect(seen).toEqual([{ list: [{ n: 1 }] }]);
    expect(daemon.frames[1]).toMatchObject({ id: 2, command: "take", success: false, code: "invalid_params" });
    expect(daemon.frames[1]?.["error"]).toContain("list.0.n");
  });

  it("lets an override call the built-in, and the built-in answer when the override throws first", async () => {
    const daemon = bareKernel();
    daemon.add(
      "x",
      "builtin",
      defineCommand({
        ...base,
        name: "n",
        concurrency: "serial",
        params: z.object({}),
        result: z.object({ n: z.number() }),
        run: () => ({ n: 1 }),
      }),
    );
    const add = daemon.add(
      "good",
      "user",
      overrideCommand("n", { run: async (_ctx, _params, next) => ({ n: ((await next()) as { n: number }).n + 10 }) }),
    );
    daemon.send({ id: 1, type: "n" });
    await daemon.next((frame) => frame["id"] === 1);
    expect(daemon.frames.at(-1)).toMatchObject({ data: { n: 11 } });
    daemon.kernel.registry.swap({ remove: daemon.kernel.registry.ownedBy(add) });
    daemon.add(
      "bad",
      "user",
      overrideCommand("n", {
        run: () => {
          throw new Error("broken");
        },
      }),
    );
    daemon.send({ id: 2, type: "n" });
    await daemon.next((frame) => frame["id"] === 2);
    expect(daemon.frames.slice(-2)).toMatchObject([
      { type: "extension_error", extensionPath: "bad", event: "command:n", error: "broken" },
      { id: 2, success: true, data: { n: 1 } },
    ]);
  });

  it("settles a host's answer while the lane is held, ignores unknown ids, and takes a misfit for no open request as a command", async () => {
    const daemon = bareKernel();
    const request = defineHostRequest({
      name: "host_ask",
      summary: "Asks.",
      ask: z.object({ q: z.string() }),
      answerType: "host_answer",
      answer: z.object({ a: z.string() }),
      misfitMessage: "Invalid host_answer",
      cancelType: "host_cancel",
      idPrefix: "h",
      disconnectMessage: "gone",
    });
    daemon.add(
      "x",
      "builtin",
      request,
      defineCommand({
        ...base,
        name: "ask",
        concurrency: "serial",
        params: z.object({}),
        result: z.object({ a: z.string() }),
        run: (ctx) => ctx.ask(request, { q: "?" }),
      }),
    );
    daemon.send({ id: 1, type: "ask" });
    const asked = await daemon.next((frame) => frame.type === "host_ask");
    daemon.send({ type: "host_answer", id: "nope", a: "x" });
    daemon.send({ type: "host_answer", id: "nope" });
    daemon.send({ type: "host_answer", id: asked["id"], a: "yes" });
    daemon.send({ type: "host_answer", id: asked["id"], a: "again" });
    await daemon.next((frame) => frame["command"] === "host_answer");
    expect(daemon.frames.filter((frame) => frame.type === "response")).toEqual([
      { id: 1, type: "response", command: "ask", success: true, data: { a: "yes" } },
      { type: "response", command: "host_answer", success: false, error: "Unknown command: host_answer" },
    ]);
    daemon.send({ id: 2, type: "ask" });
    const again = await daemon.next((frame) => frame.type === "host_ask" && frame["id"] !== asked["id"]);
    daemon.send({ type: "host_answer", id: again["id"], a: 5 });
    await daemon.next((frame) => frame["id"] === 2);
    expect(daemon.frames.at(-1)).toMatchObject({ id: 2, success: false, error: "Invalid host_answer" });
    daemon.send({ id: 3, type: "ask" });
    daemon.kernel.endInput();
    await daemon.next((frame) => frame["id"] === 3);
    expect(daemon.frames.at(-1)).toMatchObject({ id: 3, success: false, error: "gone" });
    expect(daemon.kernel.requests.size).toBe(0);
  });
});
