// Items 59 to 66 of agent-semantics §12 with native extensions, on the built daemon.
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { Frame } from "../../protocol/frame.ts";
import { type DaemonProcess, type ProcessOptions, startProcess } from "../support/process.ts";
import { resultOf, setup, until } from "./_support.ts";

const LIMIT = { timeoutMs: 15_000 };
const running: DaemonProcess[] = [];
afterEach(async () => {
  for (const daemon of running.splice(0)) await daemon.dispose();
});

async function start(options: ProcessOptions = {}): Promise<DaemonProcess> {
  const daemon = startProcess(options);
  running.push(daemon);
  await daemon.next("available_commands_update", LIMIT);
  return daemon;
}

async function prompt(daemon: DaemonProcess, message: string): Promise<Frame[]> {
  const after = daemon.frames.length;
  expect(await daemon.request("prompt", { message })).toMatchObject({ success: true });
  await daemon.next("agent_end", { after, ...LIMIT });
  return daemon.frames.slice(after);
}

test("item 59: hanging shutdown handlers share one short budget", { timeout: 60_000 }, async () => {
  const hangs = setup("scope.onRetire(() => new Promise(() => {}));");
  const daemon = await start({
    files: { "extensions/a.ts": hangs, "extensions/b.ts": hangs, "extensions/c.ts": hangs },
  });
  const began = performance.now();
  expect(await daemon.end()).toBe(0);
  // 2 s for all three; the rest is a busy machine.
  expect(performance.now() - began).toBeLessThan(4500);
});

test("item 60: a handler that throws is named, later ones run, and updates do not wait for handlers", {
  timeout: 60_000,
}, async () => {
  const daemon = await start({
    files: {
      "extensions/a.ts": setup('scope.add(m.defineHook(m.messageEnded, () => { throw new Error("sixty") }));'),
      "extensions/b.ts": setup('scope.add(m.defineHook(m.messageEnded, (_m, ctx) => ctx.ui.notify({ message: "later" })));'),
      "extensions/c.ts": setup("scope.add(m.defineHook(m.frameEmitted, () => new Promise((go) => setTimeout(go, 700))));"),
    },
  });
  const after = daemon.frames.length;
  const began = performance.now();
  void daemon.request("prompt", { message: "hello" });
  await daemon.next("message_update", { after, ...LIMIT });
  expect(performance.now() - began).toBeLessThan(600);
  await daemon.next((frame) => frame.type === "extension_error" && frame["error"] === "sixty", { after, ...LIMIT });
  await daemon.next((frame) => frame["method"] === "notify" && frame["message"] === "later", { after, ...LIMIT });
  expect(daemon.frames.find((frame) => frame["error"] === "sixty")).toMatchObject({
    extensionPath: join(daemon.home, "extensions/a.ts"),
  });
});

test("items 61 and 64: a tool added while running is usable next; the text of a failed tool is rewritten", {
  timeout: 60_000,
}, async () => {
  const daemon = await start({
    files: {
      "extensions/a.ts": setup(`scope.add(m.defineHook(m.runStarting, () => {
        scope.add(m.defineTool({ name: "late", description: "d", params: m.z.object({}), run: () => { throw new m.ToolError("broken") } }));
      }), m.defineHook(m.toolFinished, (value) => value.isError ? { ...value, result: m.textResult("rewritten") } : undefined));`),
    },
  });
  const frames = await prompt(daemon, "call late {}");
  expect(resultOf(frames)).toBe("rewritten");
  expect(frames.find((frame) => frame.type === "tool_execution_end")).toMatchObject({ isError: true });
});

test("item 62: changed settings and commands are picked up, announced, and a first extension has its dialogs", {
  timeout: 60_000,
}, async () => {
  const daemon = await start({ mode: "rpc-ui" });
  const { data } = await daemon.request("get_state");
  expect(data).toMatchObject({ steeringMode: "one-at-a-time" });
  const after = daemon.frames.length;
  daemon.write("config.yml", "compaction:\n  enabled: false\n");
  daemon.write("commands/greet.md", "Say hello");
  daemon.write(
    "extensions/asks.ts",
    `import * as m from "mortise/extension"; export default m.defineSlashCommand({ name: "asks", description: "d",
      async run(ctx) { ctx.output("answer " + await ctx.ui.confirm({ title: "t", message: "m" })); } });`,
  );
  expect(await daemon.request("reload_extensions")).toMatchObject({ success: true });
  await until("both are announced", () => {
    const names = JSON.stringify(daemon.frames.slice(after).filter((frame) => frame.type === "available_commands_update"));
    return names.includes('"greet"') && names.includes('"asks"');
  });
  await until("the setting holds", async () => {
    const state = (await daemon.request("get_state"))["data"] as Record<string, unknown>;
    return state["autoCompactionEnabled"] === false;
  });
  daemon.send({ id: "ask", type: "prompt", message: "/asks" });
  const dialog = await daemon.next((frame) => frame["method"] === "confirm", LIMIT);
  daemon.send({ type: "extension_ui_response", id: dialog["id"], confirmed: true });
  expect(await daemon.next("command_output", { after, ...LIMIT })).toMatchObject({ text: "answer true" });
});

test("item 63: a command hides neither a built-in name nor an alias, nor anything after builtin:", {
  timeout: 60_000,
}, async () => {
  const names = ["help", "plugins", "model:x", "builtin:help", "builtin:anything"];
  const daemon = await start({
    files: {
      "extensions/a.ts": `import { defineSlashCommand } from "mortise/extension";
        export default ${JSON.stringify(names)}.map((name) => defineSlashCommand({ name, description: "d", run: (ctx) => ctx.output("mine") }));`,
    },
  });
  const after = daemon.frames.length;
  for (const [index, name] of names.entries()) {
    daemon.send({ id: `p${index}`, type: "prompt", message: `/${name}` });
    await daemon.next((frame) => frame["id"] === `p${index}`, LIMIT);
  }
  await daemon.request("get_state");
  expect(daemon.frames.slice(after).filter((frame) => frame["text"] === "mine")).toEqual([]);
});

test("items 65 and 66: a prompt of one run and an environment of one version do not reach what comes after", {
  timeout: 60_000,
}, async () => {
  const source = (version: string) =>
    setup(`process.env.ITEM_66 = "${version}"; let once = true;
      scope.add(m.defineHook(m.beforeAgentStart, (plan) => { if (!once) return; once = false; return { ...plan, systemPrompt: [...plan.systemPrompt, "ONLY ${version}"] } }),
        m.defineHook(m.providerRequest, ({ request }, ctx) => ctx.ui.notify({ message: "prompt " + (/ONLY \\w+/.exec(request.systemPrompt.join(" ")) ?? "plain") })),
        m.defineSlashCommand({ name: "env", description: "d", run: (ctx) => ctx.output("env " + process.env.ITEM_66) }));`);
  const daemon = await start({ files: { "extensions/a.ts": source("one") } });
  const prompts = async () => {
    const frames = await prompt(daemon, "hi");
    return frames.filter(({ method }) => method === "notify").map((frame) => frame["message"]);
  };
  expect([await prompts(), await prompts()]).toEqual([["prompt ONLY one"], ["prompt plain"]]);
  const env = async (): Promise<unknown> => {
    const after = daemon.frames.length;
    daemon.send({ type: "prompt", message: "/env" });
    return (await daemon.next("command_output", { after, ...LIMIT }))["text"];
  };
  expect(await env()).toBe("env one");
  const shell = async () => JSON.stringify((await daemon.request("bash", { command: "echo [$ITEM_66]" }))["data"]);
  expect(await shell()).toContain("[]");
  expect(resultOf(await prompt(daemon, 'call bash {"command":"echo [$ITEM_66]"}'))).toContain("[]");
  daemon.write("extensions/a.ts", source("two"));
  expect(await daemon.request("reload_extensions", { extensionId: "a" })).toMatchObject({ success: true });
  expect(await env()).toBe("env two");
  expect(await prompts()).toEqual(["prompt ONLY two"]);
});
