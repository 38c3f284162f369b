// public-bugs 2: a character whose bytes arrive in two reads is one character.
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import type { DaemonProcess } from "../support/process.ts";
import { ask, ofId, PATIENCE_MS, prompt, sessionFiles, sleep, textOf, useProcesses, wait } from "./_support.ts";

const { start } = useProcesses();
const names = { m1: "ß—漢🧭e\u0301", m2: "Ünïcödé—𝔘", m3: "日本語🇨🇭", m4: "🧪ώ—末" };
const frame = (id: keyof typeof names) => Buffer.from(`${JSON.stringify({ id, type: "set_session_name", name: names[id] })}\n`);
const answered = (daemon: DaemonProcess, id: string) => wait(daemon, (each) => each.type === "response" && each["id"] === id, 0);

it("joins characters that were cut anywhere on stdin (case 2)", async () => {
  const daemon = start();
  await ask(daemon, "get_state");
  for (const byte of frame("m1")) {
    daemon.send(Buffer.from([byte]));
    await sleep(2);
  }
  await answered(daemon, "m1");
  const [m2, m3, m4] = [frame("m2"), frame("m3"), frame("m4")];
  daemon.send(m2.subarray(0, -5));
  await sleep(50);
  daemon.send(Buffer.concat([m2.subarray(-5), m3, m4.subarray(0, 7)]));
  await sleep(50);
  daemon.send(m4.subarray(7));
  daemon.send({ id: "m5", type: "get_state" });
  const state = await answered(daemon, "m5");
  expect(state["data"]).toMatchObject({ sessionName: names.m4 });
  const order = daemon.frames.filter((each) => /^m\d$/.test(String(each["id"]))).map((each) => [each["id"], each["success"]]);
  expect(order).toEqual(["m1", "m2", "m3", "m4", "m5"].map((id) => [id, true]));
  await prompt(daemon, "so that there is a file: 漢");
  const [file] = sessionFiles(daemon.home);
  expect(await daemon.end()).toBe(0);
  expect(daemon.stdout()).not.toContain("\ufffd");
  const stored = readFileSync(String(file), "utf8");
  expect(stored).not.toContain("\ufffd");
  expect(stored).toContain(names.m4);
});

it.each(["rpc", "rpc-ui"] as const)("joins the halves of a character that a command prints, with %s (case 2)", async (mode) => {
  const daemon = start({ mode });
  const command = "printf '\\360\\237'; sleep 0.2; printf '\\247\\255\\n'; sleep 0.2; printf done";
  const frames = await prompt(daemon, `call bash ${JSON.stringify({ command })}`);
  const end = frames.find((each) => each.type === "tool_execution_end");
  expect(textOf(end?.["result"])).toContain("\u{1f9ed}");
  const updates = frames.filter((each) => each.type === "tool_execution_update").map((each) => textOf(each["partialResult"]));
  expect(updates.at(-1) ?? "").toContain("\u{1f9ed}");
  daemon.send({ id: "b", type: "bash", command });
  const response = await daemon.next((each) => each["id"] === "b", { after: 0, timeoutMs: PATIENCE_MS });
  expect((response["data"] as { output: string }).output).toContain("\u{1f9ed}\n");
  expect(ofId(daemon, "b")).toHaveLength(1);
  expect(daemon.stdout()).not.toContain("\ufffd");
});
