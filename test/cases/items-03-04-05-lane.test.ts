// agent-semantics 12.3, 12.4, 12.5: what is piped in at once, what runs beside the lane, what is written before the exit.
import { expect, it } from "vitest";
import { ask, ofId, request, useProcesses, wait } from "./_support.ts";

const { start } = useProcesses();

it("answers frames piped in right after the spawn, though an extension reads stdin while it loads (item 3)", async () => {
  const thief = `
    process.stdin.setEncoding("utf8");
    process.stdin.on("data", () => {});
    process.stdin.on("readable", () => process.stdin.read());
    process.stdin.pause();
    await new Promise((resolve) => setTimeout(resolve, 50));
    export default function () { process.stdin.resume(); process.stdin.pause(); }
  `;
  const daemon = start({ files: { "extensions/thief.ts": thief } });
  const frames = [
    { id: 1, type: "get_state" },
    { id: "two", type: "set_session_name", name: "é漢" },
    { id: 3, type: "prompt", message: "first text" },
    { id: "4", type: "get_state" },
  ];
  daemon.send(Buffer.from(frames.map((frame) => `${JSON.stringify(frame)}\n`).join("")));
  await wait(daemon, "agent_end");
  for (const id of [1, "two", 3, "4"]) expect(ofId(daemon, id), String(id)).toMatchObject([{ success: true }]);
  expect(ofId(daemon, "4")[0]?.["data"]).toMatchObject({ sessionName: "é漢" });
  const user = daemon.frames.find((frame) => frame.type === "message_end");
  expect(user?.["message"]).toMatchObject({ role: "user", content: [{ type: "text", text: "first text" }] });
  // The second thing sent is still read.
  expect(await ask(daemon, "get_state")).toMatchObject({ isStreaming: false });
});

it("answers get_state and abort_bash while bash runs; its own answer comes with its id (item 4)", async () => {
  const daemon = start();
  daemon.send({ id: "b", type: "bash", command: "echo begun; sleep 50" });
  daemon.send({ id: "s", type: "get_state" });
  await wait(daemon, (frame) => frame["id"] === "s", 0);
  expect(ofId(daemon, "b")).toEqual([]);
  daemon.send({ id: "x", type: "abort_bash" });
  daemon.send({ id: "s2", type: "get_state" });
  const response = await wait(daemon, (frame) => frame["id"] === "b", 0);
  await wait(daemon, (frame) => frame["id"] === "s2", 0);
  expect(response).toMatchObject({ command: "bash", success: true, data: { cancelled: true } });
  for (const id of ["b", "s", "x", "s2"]) expect(ofId(daemon, id), id).toHaveLength(1);
});

it("writes the answer of a running bash before an exit that an extension asked for (item 5)", async () => {
  const leave = `export default function (pi) {
    pi.registerCommand("leave", { description: "Ends the daemon", handler: async (_args, ctx) => ctx.shutdown() });
  }`;
  const daemon = start({ files: { "extensions/leave.ts": leave } });
  daemon.send({ id: "b", type: "bash", command: "echo before; sleep 50" });
  await request(daemon, "get_state");
  daemon.send({ id: "l", type: "prompt", message: "/leave" });
  expect(await daemon.exited).toBe(0);
  expect(ofId(daemon, "l")).toMatchObject([{ success: true }]);
  expect(ofId(daemon, "b")).toMatchObject([{ success: true, data: { cancelled: true } }]);
  expect(daemon.stdout().endsWith("\n")).toBe(true);
});

it("answers every one of sixty running commands at the end of input (item 4, case 5 A)", async () => {
  const daemon = start();
  const ids = Array.from({ length: 60 }, (_, index) => `b${index}`);
  for (const id of ids) daemon.send({ id, type: "bash", command: "sleep 50" });
  await ask(daemon, "get_state");
  expect(await daemon.end()).toBe(0);
  for (const id of ids) expect(ofId(daemon, id), id).toMatchObject([{ success: true, data: { cancelled: true } }]);
}, 60_000);
