import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { HostClient, type SpawnOptions, type UiHandlers } from "../../protocol/index.ts";

const DAEMON = fileURLToPath(new URL("fixtures/daemon.mjs", import.meta.url));
const open: HostClient[] = [];

async function start(options: SpawnOptions = {}): Promise<HostClient> {
  const client = await HostClient.spawn({ command: process.execPath, args: [DAEMON, "v2"], ...options });
  open.push(client);
  return client;
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((client) => client.close({ graceMs: 500 })));
});

const call = (id: string, toolName: string, args: unknown = {}) => ({
  frame: { type: "host_tool_call", id, toolCallId: `model-${id}`, toolName, arguments: args },
});
const block = (text: string) => ({ content: [{ type: "text", text }] });

describe("HostClient: host tools", () => {
  const echo = {
    name: "echo",
    description: "Says it again",
    parameters: { type: "object" },
    run: (args: Record<string, unknown>) => String(args["text"]),
  };

  it("runs the function, with progress, and sends no functions to the daemon", async () => {
    const client = await start();
    await client.setHostTools([
      {
        ...echo,
        run: async (args, { update, toolCallId }) => {
          update("half");
          update({ content: [], details: { toolCallId } });
          return { ...block(`${String(args["text"])}!`), details: 1, isError: false } as never;
        },
      },
    ]);
    expect(await client.request("relay", call("c1", "echo", { text: "hi" }))).toEqual({
      answer: { type: "host_tool_result", id: "c1", result: { ...block("hi!"), details: 1, isError: false } },
      updates: [block("half"), { content: [], details: { toolCallId: "model-c1" } }],
    });
  });

  it("answers unknown tools and exceptions with errors", async () => {
    const client = await start();
    await client.setHostTools([
      {
        ...echo,
        run: () => {
          throw new Error("broke");
        },
      },
    ]);
    expect(await client.request("relay", call("c1", "echo"))).toMatchObject({
      answer: { isError: true, result: block("broke") },
    });
    expect(await client.request("relay", call("c2", "nope"))).toMatchObject({
      answer: { isError: true, result: block('Host tool "nope" is not registered') },
    });
  });

  it("keeps the old set when the daemon refuses the new one", async () => {
    const client = await start();
    await client.setHostTools([echo]);
    await expect(client.setHostTools([{ ...echo, name: "read" }])).rejects.toThrow("conflicts with an existing tool");
    expect(await client.request("relay", call("c1", "echo", { text: "still" }))).toMatchObject({
      answer: { result: block("still") },
    });
    await client.setHostTools([]);
    expect(await client.request("relay", call("c2", "echo"))).toMatchObject({ answer: { isError: true } });
  });

  it("aborts the signal of a cancelled call and stays silent about it", async () => {
    const client = await start();
    let aborted = false;
    await client.setHostTools([
      {
        ...echo,
        run: (_args, { signal }) =>
          new Promise((resolve) =>
            signal.addEventListener("abort", () => {
              aborted = true;
              resolve("late");
            }),
          ),
      },
    ]);
    const cancel = { type: "host_tool_cancel", id: "x", targetId: "c1" };
    expect(await client.request("relay_cancelled", { ...call("c1", "echo"), cancel })).toEqual({ answered: false });
    expect(aborted).toBe(true);
  });
});

describe("HostClient: host URIs", () => {
  const request = (id: string, operation: string, url: string, content?: string) => ({
    frame: { type: "host_uri_request", id, operation, url, ...(content === undefined ? {} : { content }) },
  });

  it("reads and writes through functions; an empty content is a valid answer", async () => {
    const client = await start();
    const rows = new Map([["db://row/1", ""]]);
    await client.setHostUriSchemes([
      {
        scheme: "DB",
        description: "Rows",
        read: (url) => rows.get(url) ?? { content: "# none", contentType: "text/markdown", notes: ["new"] },
        write: (url, content) => void rows.set(url, content),
      },
      {
        scheme: "doc",
        read: () => {
          throw new Error("locked");
        },
      },
    ]);
    expect(await client.request("relay", request("u1", "read", "db://row/1"))).toEqual({
      answer: { type: "host_uri_result", id: "u1", content: "" },
    });
    expect(await client.request("relay", request("u2", "read", "db://row/2"))).toMatchObject({
      answer: { content: "# none", contentType: "text/markdown", notes: ["new"] },
    });
    expect(await client.request("relay", request("u3", "write", "db://row/2", "new"))).toEqual({
      answer: { type: "host_uri_result", id: "u3" },
    });
    expect(rows.get("db://row/2")).toBe("new");
    const errors = [
      ["read", "doc://x", "locked"],
      ["write", "doc://x", 'Host URI scheme "doc" cannot be written'],
      ["read", "alien://x", 'Host URI scheme "alien" is not registered'],
    ] as const;
    for (const [operation, url, error] of errors) {
      expect(await client.request("relay", request("u4", operation, url, "c"))).toMatchObject({
        answer: { isError: true, error },
      });
    }
  });
});

describe("HostClient: dialogs", () => {
  const dialog = (id: string, method: string, fields: object = {}) => ({
    frame: { type: "extension_ui_request", id, method, title: "T", ...fields },
  });

  it("answers with the handlers, and cancels what has none, throws or gives nothing", async () => {
    const shown: unknown[] = [];
    const errors: string[] = [];
    const ui: UiHandlers = {
      select: ({ options }) => options[1],
      confirm: async ({ message }) => message === "sure?",
      input: () => {
        throw new Error("no terminal");
      },
      notify: ({ message }) => void shown.push(message),
      setWidget: ({ widgetLines }) => void shown.push(widgetLines),
    };
    const client = await start({ ui, onError: (error) => errors.push(error.message) });
    const answers: unknown[] = [];
    for (const ask of [
      dialog("d1", "select", { options: ["a", "b"] }),
      dialog("d2", "select", { options: [] }),
      dialog("d3", "confirm", { message: "sure?" }),
      dialog("d4", "confirm", { message: "really?" }),
      dialog("d5", "input"),
      dialog("d6", "editor", { prefill: "x" }),
      dialog("d7", "of_the_future"),
    ]) {
      const result = await client.request("relay", ask);
      answers.push(result && typeof result === "object" && "answer" in result ? result.answer : undefined);
    }
    const reply = (id: string, fields: object) => ({ type: "extension_ui_response", id, ...fields });
    expect(answers).toEqual([
      reply("d1", { value: "b" }),
      reply("d2", { cancelled: true }),
      reply("d3", { confirmed: true }),
      reply("d4", { confirmed: false }),
      reply("d5", { cancelled: true }),
      reply("d6", { cancelled: true }),
      reply("d7", { cancelled: true }),
    ]);
    expect(errors).toEqual(["no terminal"]);
    const notify = dialog("n1", "notify", { message: "hello" }).frame;
    const widget = dialog("n2", "setWidget", { widgetLines: ["l"] }).frame;
    await client.request("emit", { frames: [notify, widget, dialog("n3", "setStatus").frame] });
    expect(shown).toEqual(["hello", ["l"]]);
  });

  it("gives up a dialog when its time is over, and when the daemon takes it back", async () => {
    const reasons: string[] = [];
    const ui: UiHandlers = {
      input: ({ title }, { signal }) =>
        new Promise((resolve) =>
          signal.addEventListener("abort", () => {
            reasons.push(title);
            resolve("late");
          }),
        ),
    };
    const client = await start({ ui });
    expect(await client.request("relay", dialog("d1", "input", { timeout: 15 }))).toEqual({
      answer: { type: "extension_ui_response", id: "d1", cancelled: true, timedOut: true },
    });
    const cancel = { type: "extension_ui_request", id: "x", method: "cancel", targetId: "d2" };
    expect(await client.request("relay_cancelled", { ...dialog("d2", "input"), cancel })).toEqual({ answered: false });
    expect(reasons).toEqual(["T", "T"]);
  });
});
