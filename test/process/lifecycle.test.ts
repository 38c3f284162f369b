import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { BIN, type DaemonProcess, type ProcessOptions, processesWith, ROOT, startProcess } from "../support/process.ts";

const running: DaemonProcess[] = [];
const start = (options?: ProcessOptions) => {
  const daemon = startProcess(options);
  running.push(daemon);
  return daemon;
};
afterEach(async () => {
  for (const daemon of running.splice(0)) await daemon.dispose();
});
const run = (...args: string[]) => spawnSync(process.execPath, [BIN, ...args], { encoding: "utf8", input: "" });

describe("The command line", () => {
  it.each([
    [["--mode", "rpc", "--modle", "x"], 'Error: Unknown option "--modle"; did you mean "--mode"?'],
    [["--mode", "rpc", "@notes.md"], "Error: @file arguments are not supported in RPC mode"],
    [["--mode", "json"], 'Error: --mode: expected rpc, rpc-ui, found "json"'],
    [["--mode", "rpc", "--config", "/nowhere/c.yml"], 'Error: File of --config does not exist: "/nowhere/c.yml"'],
    [["--mode", "rpc-ui", "--no-ui"], "Error: --no-ui requires --mode rpc"],
    [["--mode", "rpc", "--thinking", "hard"], "Error: --thinking: expected off"],
  ])("refuses %j with one line, exit code 1 and no frame", (args, message) => {
    const result = run(...args);
    expect(result.status).toBe(1);
    expect(result.stdout).toBe("");
    expect(result.stderr.trim().split("\n")).toHaveLength(1);
    expect(result.stderr).toContain(message);
  });

  it("prints help with exit code 1 without a mode, and 0 when asked", () => {
    const bare = run();
    expect([bare.status, bare.stdout]).toEqual([1, ""]);
    expect(bare.stderr).toContain("Usage: mortise --mode rpc|rpc-ui");
    expect(run("--help")).toMatchObject({ status: 0, stderr: "" });
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
    expect(run("--version").stdout).toBe(`${version}\n`);
  });

  it("accepts options of relatives that mean nothing here with a line on stderr", () => {
    const result = run("--mode", "rpc", "--no-skills", "--theme", "dark", "--model", "offline/echo");
    expect(result.status).toBe(0);
    expect(result.stderr).toContain('Option "--theme" has no meaning here and is ignored');
  });
});

describe("The process", () => {
  it("writes ready first, answers what was piped in, and exits with 0 at the end of input", async () => {
    const daemon = start();
    daemon.send({ id: "a", type: "get_state" });
    daemon.send({ id: "b", type: "prompt", message: "hello" });
    await daemon.next("agent_end");
    expect(await daemon.end()).toBe(0);
    expect(daemon.frames[0]).toEqual({
      type: "ready",
      protocolVersion: 1,
      supportedProtocolVersions: [1, 2],
      maxFrameBytes: 1048576,
      maxReassembledFrameBytes: 67108864,
    });
    expect(daemon.frames[1]?.type).toBe("available_commands_update");
    expect(daemon.stdout().endsWith("\n")).toBe(true);
  });

  it.each([
    ["SIGTERM", 143],
    ["SIGINT", 130],
    ["SIGHUP", 129],
  ] as const)("ends on %s with %i", async (signal, code) => {
    const daemon = start();
    await daemon.request("get_state");
    daemon.child.kill(signal);
    expect(await daemon.exited).toBe(code);
  });

  it("ends with 1 when stdout is lost, without a write storm", async () => {
    const daemon = start();
    await daemon.request("get_state");
    daemon.child.stdout?.destroy();
    daemon.send({ type: "get_state" });
    daemon.send({ type: "get_state" });
    expect(await daemon.exited).toBe(1);
  });

  it("keeps stdout clean whatever an extension or a child of it prints", async () => {
    const daemon = start({
      files: {
        "extensions/noisy.ts": `
import { execSync } from "node:child_process";
import { writeSync } from "node:fs";
import { defineHook, messageEnded } from "mortise/extension";
console.log("loading"); process.stdout.write("\\x1b]9;ready\\x07"); writeSync(1, "raw");
export default defineHook(messageEnded, () => { console.table([{ a: 1 }]); execSync("echo from-child", { stdio: "inherit" }); });
`,
      },
    });
    daemon.send({ id: "p", type: "prompt", message: "hi" });
    await daemon.next("agent_end");
    expect(await daemon.end()).toBe(0);
    for (const line of daemon.stdout().trimEnd().split("\n")) expect(JSON.parse(line)).toHaveProperty("type");
    const logs = join(daemon.home, "logs");
    const logged = readdirSync(logs)
      .map((name) => readFileSync(join(logs, name), "utf8"))
      .join("");
    expect(daemon.stderr() + logged).toContain("loading");
    expect(daemon.stderr()).toContain("from-child");
  });

  it("reports a broken --config after ready and exits with 1", async () => {
    const daemon = start({ files: { "broken.yml": "a: [1,\n" }, args: ["--config", "../broken.yml"] });
    expect(await daemon.exited).toBe(1);
    expect(daemon.frames[0]?.type).toBe("ready");
    expect(daemon.frames.at(-1)).toMatchObject({ type: "notice", level: "error" });
    expect(daemon.stderr()).toContain("broken.yml");
  });

  it("ends running commands at the end of input and leaves nothing behind", async () => {
    const daemon = start();
    daemon.send({ id: "b", type: "bash", command: "sleep 98761 & sleep 98762" });
    await daemon.request("get_state");
    const code = await daemon.end();
    expect(code).toBe(0);
    expect(daemon.frames.find((frame) => frame["id"] === "b")).toMatchObject({ success: true, data: { cancelled: true } });
    expect(processesWith("sleep 9876")).toEqual([]);
  });

  it("answers everything that was read before the end of input, to a slow reader", async () => {
    const daemon = start({ paused: true });
    for (let index = 0; index < 128; index++) daemon.send({ id: `e${index}`, type: "get_state" });
    const ended = daemon.end();
    setTimeout(() => daemon.resume(), 500);
    expect(await ended).toBe(0);
    expect(daemon.frames.filter((frame) => frame.type === "response" && frame["success"] === true)).toHaveLength(128);
  });
});

describe("The checkout's extensions/ folder", () => {
  const file = join(ROOT, "extensions/zz-dropped.ts");
  afterEach(() => rmSync(file, { force: true }));

  it("loads a module dropped there like any other, and forgets it when it is deleted", async () => {
    const daemon = start();
    await daemon.request("get_state");
    const tools = async () => {
      const state = await daemon.request("get_state");
      return ((state["data"] as { dumpTools: { name: string }[] }).dumpTools ?? []).map((tool) => tool.name);
    };
    expect(await tools()).not.toContain("dropped");
    writeFileSync(
      file,
      `import { defineExtension, defineSlashCommand, defineTool, z } from "mortise/extension";
const tool = defineTool({ name: "dropped", description: "x", params: z.object({}), run: () => "v1" });
const slash = defineSlashCommand({ name: "dropped", description: "x", run: () => {} });
export default defineExtension({ name: "dropped", contributes: [tool, slash] });`,
    );
    const after = daemon.frames.length;
    await daemon.next((frame) => frame.type === "available_commands_update" && JSON.stringify(frame).includes('"dropped"'));
    expect(await tools()).toContain("dropped");
    rmSync(file);
    await daemon.next((frame) => frame.type === "available_commands_update" && !JSON.stringify(frame).includes('"dropped"'), {
      after: after + 1,
    });
    expect(await tools()).not.toContain("dropped");
    expect(existsSync(file)).toBe(false);
    expect(await daemon.end()).toBe(0);
  });
});
