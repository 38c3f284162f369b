// public-bugs 10: a dialog settles once, by the first answer that fits; wrong answers leave it open (docs/protocol.md, "Dialogs").
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import type { Frame } from "../../protocol/frame.ts";
import type { DaemonProcess } from "../support/process.ts";
import { ask, ofId, prompt, request, sleep, useProcesses, wait } from "./_support.ts";

const { start } = useProcesses();

// Written for the pi family, whose authors found the bug; native extensions go through the same table.
const asking = `
export default function (pi) {
  pi.registerCommand("ask-all", { description: "Four dialogs at once", handler: async (_args, ctx) => {
    const done = (name, answer) => { ctx.ui.notify(name + "=" + JSON.stringify(answer ?? null) + ":" + typeof answer, "info"); return answer; };
    const [s, c, i, e] = await Promise.all([
      ctx.ui.select("Pick", ["red", "green"]).then((answer) => done("S", answer)),
      ctx.ui.confirm("Sure?", "Really").then((answer) => done("C", answer)),
      ctx.ui.input("Name").then((answer) => done("I", answer)),
      ctx.ui.editor("Text", "start").then((answer) => done("E", answer)),
    ]);
    const s2 = await ctx.ui.select("Pick again", ["red", "green"]);
    ctx.ui.notify(JSON.stringify({ s, c, i, e: e ?? null, s2 }), "info");
  } });
  pi.registerCommand("wait", { description: "Waits for ever", handler: async (_args, ctx) => {
    const answer = await ctx.ui.confirm("Still there?", "Nobody will answer");
    ctx.ui.notify("wait=" + answer, "info");
  } });
}
`;
const files = { "extensions/asking.ts": asking };

const dialogs = (daemon: DaemonProcess) =>
  daemon.frames.filter((frame) => frame.type === "extension_ui_request" && frame["method"] !== "notify");
const notices = (daemon: DaemonProcess) =>
  daemon.frames
    .filter((frame) => frame.type === "extension_ui_request" && frame["method"] === "notify")
    .map((frame) => frame["message"]);
const dialog = (daemon: DaemonProcess, title: string) => wait(daemon, (frame) => frame["title"] === title, 0);
const answer = (daemon: DaemonProcess, frame: Frame, fields: Record<string, unknown>) =>
  daemon.send({ type: "extension_ui_response", id: frame["id"], ...fields });

it.each(["rpc", "rpc-ui"] as const)(
  "takes the first answer that fits and ignores every other, with %s (case 10)",
  async (mode) => {
    const daemon = start({ mode, files });
    daemon.send({ id: "p", type: "prompt", message: "/ask-all" });
    const [s, c, i, e] = [
      await dialog(daemon, "Pick"),
      await dialog(daemon, "Sure?"),
      await dialog(daemon, "Name"),
      await dialog(daemon, "Text"),
    ];
    answer(daemon, s, { value: "green" });
    answer(daemon, s, { value: "red" });
    daemon.send({ type: "extension_ui_response", id: "nope", value: "x" });
    answer(daemon, c, { value: "yes" });
    answer(daemon, i, { confirmed: true });
    answer(daemon, e, { cancelled: true, timedOut: true });
    await ask(daemon, "get_state");
    const responses = daemon.frames.filter((frame) => frame.type === "response").length;
    // S and E are settled; C and I wait for an answer of their kind.
    await sleep(200);
    expect(notices(daemon)).toEqual(['S="green":string', "E=null:undefined"]);
    answer(daemon, c, { confirmed: true });
    answer(daemon, i, { value: "Ada" });
    const s2 = await dialog(daemon, "Pick again");
    answer(daemon, s2, { value: "blue" });
    answer(daemon, s2, { value: 1 });
    answer(daemon, s, { value: "red" });
    await ask(daemon, "get_state");
    expect(ofId(daemon, "p")).toEqual([{ id: "p", type: "response", command: "prompt", success: true }]);
    answer(daemon, s2, { value: "red" });
    await wait(daemon, (frame) => frame.type === "prompt_result" && frame["id"] === "p");
    expect(notices(daemon).at(-1)).toBe(JSON.stringify({ s: "green", c: true, i: "Ada", e: null, s2: "red" }));
    const ids = dialogs(daemon).map((frame) => frame["id"]);
    expect(new Set(ids).size).toBe(5);
    expect(daemon.frames.filter((frame) => frame.type === "extension_error")).toEqual([]);
    // One more response: to the second get_state.
    expect(daemon.frames.filter((frame) => frame.type === "response").length).toBe(responses + 1);
  },
);

it("answers a dialog response without an id as an unknown command, once (case 10)", async () => {
  const daemon = start({ files });
  const before = await request(daemon, "get_state");
  const after = daemon.frames.indexOf(before) + 1;
  daemon.send({ type: "extension_ui_response" });
  await ask(daemon, "get_state");
  const between = daemon.frames.slice(after).filter((frame) => frame.type === "response");
  expect(between[0]).toEqual({
    type: "response",
    command: "extension_ui_response",
    success: false,
    error: "Unknown command: extension_ui_response",
  });
  expect(between).toHaveLength(2);
});

it("an open dialog holds neither abort, nor reload, nor a prompt, nor the exit (case 10)", async () => {
  const daemon = start({ files });
  daemon.send({ id: "w", type: "prompt", message: "/wait" });
  const first = await dialog(daemon, "Still there?");
  expect(await request(daemon, "abort")).toMatchObject({ success: true });
  await prompt(daemon, "hello meanwhile");
  const reload = await request(daemon, "prompt", { message: "/reload" });
  expect(reload).toMatchObject({ success: true });
  // The generation that asked is gone or going; its dialog is withdrawn at the latest now.
  daemon.send({ id: "w2", type: "prompt", message: "/wait" });
  await wait(daemon, (frame) => frame["title"] === "Still there?" && frame["id"] !== first["id"], 0);
  expect(await daemon.end()).toBe(0);
});

it("without a host that shows dialogs each settles at once as cancelled, and nothing is sent (case 10)", async () => {
  const daemon = start({ files, args: ["--no-ui"] });
  const told = daemon.write("extensions/telling.ts", telling);
  await wait(daemon, (frame) => frame.type === "available_commands_update" && JSON.stringify(frame).includes("tell-all"), 0);
  expect(await request(daemon, "prompt", { message: "/tell-all" })).toMatchObject({ success: true });
  await wait(daemon, "prompt_result");
  expect(JSON.parse(readFileSync(`${told}.answers`, "utf8"))).toEqual([null, false, null, null]);
  expect(daemon.frames.filter((frame) => frame.type === "extension_ui_request")).toEqual([]);
  expect(await daemon.end()).toBe(0);
});

const telling = `
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
export default function (pi) {
  pi.registerCommand("tell-all", { description: "d", handler: async (_args, { ui }) => {
    const answers = [await ui.select("Pick", ["red"]), await ui.confirm("Sure?", "x"), await ui.input("Name"), await ui.editor("Text")];
    writeFileSync(fileURLToPath(import.meta.url) + ".answers", JSON.stringify(answers));
  } });
}
`;

it.each(["rpc", "rpc-ui"] as const)(
  "a dialog of a gate that nobody answers holds neither abort nor a reload, and is withdrawn, with %s (case 10)",
  async (mode) => {
    const gate = (n: number) => `
export default function (pi) {
  pi.on("tool_call", async (event, ctx) => (await ctx.ui.confirm("Run version ${n}?", event.toolName)) ? undefined : { block: true, reason: "no" });
  pi.on("session_start", (event, ctx) => ctx.ui.setStatus("gate", "version ${n}"));
}
`;
    const daemon = start({ mode, files: { "extensions/gate.ts": gate(1) } });
    await wait(daemon, (frame) => frame["statusText"] === "version 1", 0);
    const withdrawn = (asked: Frame, from: number) =>
      wait(daemon, (frame) => frame["method"] === "cancel" && frame["targetId"] === asked["id"], from);

    daemon.send({ id: "a", type: "prompt", message: "call ls {}" });
    const first = await dialog(daemon, "Run version 1?");
    const aborting = daemon.frames.length;
    expect(await request(daemon, "abort")).toMatchObject({ success: true });
    await withdrawn(first, aborting);
    await wait(daemon, "agent_end", aborting);

    const again = daemon.frames.length;
    daemon.send({ id: "b", type: "prompt", message: "call ls {}" });
    await wait(daemon, (frame) => frame["title"] === "Run version 1?", again);
    daemon.write("extensions/gate.ts", gate(2));
    await wait(daemon, (frame) => frame["statusText"] === "version 2", again);
    expect(await daemon.end()).toBe(0);
    // One cancel for each dialog nobody answered, whatever took it back.
    const ids = dialogs(daemon)
      .filter((frame) => frame["method"] === "confirm")
      .map((frame) => frame["id"]);
    const cancelled = dialogs(daemon)
      .filter((frame) => frame["method"] === "cancel")
      .map((frame) => frame["targetId"]);
    expect(cancelled).toEqual(ids);
  },
);
