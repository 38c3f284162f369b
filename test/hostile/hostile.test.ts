// Every trick in one built daemon, one after another: it goes on, answers, speaks JSON lines only and names who did it.
import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Frame } from "../../protocol/frame.ts";
import { type DaemonProcess, startProcess } from "../support/process.ts";
import { TRICKS } from "./_tricks.ts";

let daemon: DaemonProcess;
beforeAll(async () => {
  daemon = startProcess();
  await daemon.next("available_commands_update");
});
afterAll(() => daemon.dispose());

const LIMIT = { timeoutMs: 10_000 };

interface Unit {
  path?: string;
  state: string;
  origin: string;
}

async function request(type: string, params: Record<string, unknown> = {}): Promise<Frame> {
  const response = await daemon.request(type, params);
  expect(response).toMatchObject({ success: true });
  return response;
}

async function unitAt(path: string): Promise<Unit | undefined> {
  const { data } = await request("get_extensions");
  return (data as { extensions: Unit[] }).extensions.find((unit) => unit.path === path);
}

async function settled(path: string): Promise<void> {
  for (const start = Date.now(); Date.now() - start < 3000; ) {
    const unit = await unitAt(path);
    if (unit !== undefined && unit.state !== "loading") return;
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
}

async function prompt(message: string, cut = false): Promise<void> {
  const after = daemon.frames.length;
  await request("prompt", { message });
  if (cut) {
    await daemon.next("tool_execution_end", { after, ...LIMIT });
    await request("abort");
  }
  await daemon.next("agent_end", { after, ...LIMIT });
}

test("there are at least forty of them", () => {
  expect(new Set(TRICKS.map(({ name }) => name)).size).toBeGreaterThanOrEqual(40);
});

test.each(TRICKS.map((trick, index) => ({ ...trick, index })))("$name", { timeout: 60_000 }, async (trick) => {
  const after = daemon.frames.length;
  const path = daemon.write(`extensions/trick-${trick.index}.ts`, trick.code);
  // Those that never end are not waited for: the others must not be held by them.
  if (trick.name.startsWith("never") || trick.name.startsWith("deletes"))
    await new Promise((resolve) => setTimeout(resolve, 150));
  else await settled(path);
  await request("get_state");
  await prompt(trick.prompt ?? "hi", trick.cut);
  const named = async () => {
    const { due } = trick;
    if (due === undefined) return;
    const isDue = (frame: Frame) =>
      frame.type === "extension_error" && frame["extensionPath"] === path && due.test(String(frame["error"]));
    await daemon.next(isDue, { after, ...LIMIT }).catch(() => {
      const seen = daemon.frames.slice(after).filter((frame) => frame.type === "extension_error");
      throw new Error(`No extension_error with ${due}; there were ${JSON.stringify(seen).slice(0, 2000)}`);
    });
  };
  if (trick.atEnd !== true) await named();
  if ((await unitAt(path)) !== undefined) await request("set_extension_enabled", { extensionId: path, enabled: false });
  if (trick.atEnd === true) await named();
  rmSync(path, { force: true });
  await prompt("hi");
  expect(daemon.child.exitCode).toBe(null);
});

test("a gate that hangs is given up with the abort", { timeout: 60_000 }, async () => {
  const path = daemon.write(
    "extensions/gate.ts",
    'import { defineHook, toolDecide } from "mortise/extension"; export default defineHook(toolDecide, () => new Promise(() => {}));',
  );
  await settled(path);
  const after = daemon.frames.length;
  await request("prompt", { message: "call ls {}" });
  await daemon.next("tool_execution_start", { after, ...LIMIT });
  await request("abort");
  await daemon.next("agent_end", { after, ...LIMIT });
  await request("set_extension_enabled", { extensionId: path, enabled: false });
  rmSync(path);
  await prompt("call ls {}");
});

test("links that go in circles are looked at and passed", { timeout: 60_000 }, async () => {
  const folder = join(daemon.home, "extensions/loop");
  mkdirSync(folder);
  symlinkSync(folder, join(folder, "again"));
  symlinkSync("self.ts", join(folder, "self.ts"));
  symlinkSync(join(daemon.home, "extensions"), join(daemon.home, "extensions/up"));
  symlinkSync("round.ts", join(daemon.home, "extensions/round.ts"));
  await request("reload_extensions");
  await prompt("hi");
});

test("the environment of the daemon's commands is as it was, and what was printed is on stderr", {
  timeout: 60_000,
}, async () => {
  const after = daemon.frames.length;
  await prompt('call bash {"command":"printenv PATH"}');
  const end = daemon.frames.slice(after).find((frame) => frame.type === "tool_execution_end");
  expect(JSON.stringify(end)).toContain(String(process.env["PATH"]).split(":")[0]);
  expect(daemon.frames[0]?.type).toBe("ready");
  for (const line of daemon.stdout().trimEnd().split("\n"))
    expect(typeof (JSON.parse(line) as Frame).type, line.slice(0, 300)).toBe("string");
});

test("no stack that was sent names the daemon's own code", () => {
  const stacks = daemon.frames.flatMap((frame) => (frame.type === "extension_error" ? String(frame["stack"]) : []));
  expect(stacks.length).toBeGreaterThan(20);
  // Beside the author's lines there is only what these call of Node.
  for (const stack of stacks) expect(stack).not.toMatch(/\(?mortise\/|\/dist|AsyncLocalStorage|processTicks/);
});

test("it ends as always", { timeout: 60_000 }, async () => {
  daemon.write(
    "extensions/last.ts",
    'import { defineExtension } from "mortise/extension"; export default defineExtension({ name: "last", setup(scope) { scope.onRetire(() => new Promise(() => {})); scope.own(() => new Promise(() => {})); } });',
  );
  await settled(join(daemon.home, "extensions/last.ts"));
  expect(await daemon.end()).toBe(0);
});
