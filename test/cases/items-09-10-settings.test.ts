// agent-semantics 12.9, 12.10: runtime setters write no file, and defaults of RPC mode stand below everything configured.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { DaemonProcess } from "../support/process.ts";
import { ask, prompt, request, useProcesses, wait } from "./_support.ts";

const { start } = useProcesses();

/** Every file below a folder with its content and time, session files and logs left out. */
function files(folder: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const path = join(folder, name);
    if (/^(sessions|logs|cache)(\/|$)/.test(name) || statSync(path).isDirectory()) continue;
    found[name] = `${readFileSync(path, "utf8")} ${statSync(path).mtimeMs}`;
  }
  return found;
}

it("set_*_mode and set_auto_* act on this process only (item 9)", async () => {
  const text = "# mine\nsteeringMode: one-at-a-time # kept\nretry: {enabled: true}\n";
  const daemon = start({ files: { "config.yml": text, "cwd/.mortise/config.yml": "compaction: {enabled: true}\n" } });
  await ask(daemon, "get_state");
  const before = files(daemon.home);
  await ask(daemon, "set_steering_mode", { mode: "all" });
  await ask(daemon, "set_follow_up_mode", { mode: "all" });
  await ask(daemon, "set_interrupt_mode", { mode: "wait" });
  await ask(daemon, "set_auto_retry", { enabled: false });
  await ask(daemon, "set_auto_compaction", { enabled: false });
  await ask(daemon, "set_message_updates", { mode: "delta" });
  expect(await ask(daemon, "get_state")).toMatchObject({
    steeringMode: "all",
    followUpMode: "all",
    interruptMode: "wait",
    autoCompactionEnabled: false,
  });
  await prompt(daemon, "hello");
  expect(await daemon.end()).toBe(0);
  expect(files(daemon.home)).toEqual(before);
  const again = start({ home: daemon.home });
  expect(await ask(again, "get_state")).toMatchObject({
    steeringMode: "one-at-a-time",
    interruptMode: "immediate",
    autoCompactionEnabled: true,
  });
  await again.end();
});

const PATHS = [
  "agent.isolation.mode",
  "agent.isolation.merge",
  "agent.isolation.commits",
  "agent.delegation",
  "agent.batch",
  "agent.maxConcurrency",
  "agent.maxNestedSpawnDepth",
  "memory.backend",
  "async.enabled",
  "async.maxJobs",
  "bash.autoBackground.enabled",
  "bash.autoBackground.thresholdMs",
  "todo.enabled",
  "todo.reminders",
];
const show = `
import { defineSlashCommand, Settings } from "mortise/extension";
const paths = ${JSON.stringify(PATHS)};
export default defineSlashCommand({ name: "show", description: "Prints settings", run(ctx) {
  const settings = ctx.use(Settings);
  ctx.output(JSON.stringify(Object.fromEntries(paths.map((path) => [path, settings.getPath(path)]))));
} });`;

async function shown(daemon: DaemonProcess): Promise<Record<string, unknown>> {
  expect(await request(daemon, "prompt", { message: "/show" })).toMatchObject({ success: true });
  const frame = await wait(daemon, "command_output", 0);
  return JSON.parse(String(frame["text"])) as Record<string, unknown>;
}

const configured = {
  "agent.isolation.merge": "branch",
  "agent.delegation": "always",
  "agent.batch": false,
  "agent.maxConcurrency": 3,
  "agent.maxNestedSpawnDepth": 5,
  "async.enabled": true,
  "async.maxJobs": 7,
  "bash.autoBackground.enabled": true,
  "bash.autoBackground.thresholdMs": 12_345,
  "todo.reminders": false,
};
/** `{"a.b": 1}` → `{a: {b: 1}}`; JSON is YAML. */
function nested(flat: Record<string, unknown>): string {
  const root: Record<string, unknown> = {};
  for (const [path, value] of Object.entries(flat)) {
    const keys = path.split(".");
    let at = root;
    for (const key of keys.slice(0, -1)) {
      const inner = (at[key] ?? {}) as Record<string, unknown>;
      at[key] = inner;
      at = inner;
    }
    at[String(keys.at(-1))] = value;
  }
  return JSON.stringify(root);
}

const layers: { name: string; files: Record<string, string>; args: string[] }[] = [
  { name: "config.yml", files: { "config.yml": nested(configured) }, args: [] },
  { name: "a project file", files: { "cwd/.mortise/config.yml": nested(configured) }, args: ["--trust"] },
  { name: "--config", files: { "over.yml": nested(configured) }, args: ["--config", "../over.yml"] },
];
it.each(layers)("host defaults never win over $name (item 10)", async ({ files: given, args }) => {
  const daemon = start({ args, files: { "extensions/show.ts": show, ...given } });
  expect(await shown(daemon)).toMatchObject(configured);
});

it("todo.reminders: false of a project suppresses the reminder in RPC mode; without it there is one (item 10)", async () => {
  const phases = [{ name: "P", tasks: [{ content: "still open", status: "pending" }] }];
  for (const isOn of [true, false]) {
    const daemon = start(isOn ? {} : { files: { "cwd/.mortise/config.yml": "todo: {reminders: false}\n" } });
    await ask(daemon, "set_todos", { phases });
    await prompt(daemon, 'call ls {"path":"."}');
    expect(await daemon.end()).toBe(0);
    expect(daemon.frames.filter((frame) => frame.type === "todo_reminder").length > 0).toBe(isOn);
  }
});
