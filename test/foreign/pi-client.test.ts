// The RPC client class of @mariozechner/pi-coding-agent 0.73.1, unmodified, drives the built daemon.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import type { Frame } from "../../protocol/frame.ts";
import { BIN } from "../support/process.ts";
import { installed } from "./_folder.ts";

const file = installed("pi", "@mariozechner/pi-coding-agent/dist/modes/rpc/rpc-client.js");

interface Message {
  role: string;
  content: { type: string; text?: string }[];
}
/** The part of the client that is used here. */
interface RpcClient {
  process: { stdin: { write(text: string): void } } | null;
  start(): Promise<void>;
  stop(): Promise<void>;
  onEvent(listener: (event: Frame) => void): () => void;
  prompt(message: string): Promise<void>;
  steer(message: string): Promise<void>;
  followUp(message: string): Promise<void>;
  abort(): Promise<void>;
  newSession(parentSession?: string): Promise<{ cancelled: boolean }>;
  switchSession(path: string): Promise<{ cancelled: boolean }>;
  getState(): Promise<Record<string, unknown>>;
  getMessages(): Promise<Message[]>;
  getLastAssistantText(): Promise<string | null>;
  getAvailableModels(): Promise<{ provider: string; id: string }[]>;
  getSessionStats(): Promise<Record<string, unknown>>;
  setSteeringMode(mode: "all" | "one-at-a-time"): Promise<void>;
  setSessionName(name: string): Promise<void>;
  setModel(provider: string, modelId: string): Promise<{ provider: string; id: string }>;
  setThinkingLevel(level: string): Promise<void>;
  exportHtml(path?: string): Promise<{ path: string }>;
  bash(command: string): Promise<Record<string, unknown>>;
  abortBash(): Promise<void>;
  promptAndWait(message: string, images?: unknown, timeout?: number): Promise<Frame[]>;
  waitForIdle(timeout?: number): Promise<void>;
}

const asks = `export default function (pi) {
  pi.registerCommand("ask", { description: "Asks", handler: async (_args, ctx) => {
    const name = await ctx.ui.input("Branch name", "feature/...");
    ctx.ui.notify("chosen: " + name, "info");
  } });
}`;

describe.skipIf(file === undefined)("pi's client", () => {
  let home: string;
  let client: RpcClient;
  const events: Frame[] = [];
  afterEach(async () => {
    await client.stop();
    rmSync(home, { recursive: true, force: true });
  });

  async function start(): Promise<void> {
    home = realpathSync(mkdtempSync(join(tmpdir(), "mortise-foreign-pi-")));
    mkdirSync(join(home, "extensions"));
    mkdirSync(join(home, "work"));
    writeFileSync(join(home, "extensions/asks.ts"), asks);
    const module = (await import(/* @vite-ignore */ pathToFileURL(file ?? "").href)) as {
      RpcClient: new (options: Record<string, unknown>) => RpcClient;
    };
    client = new module.RpcClient({
      cliPath: BIN,
      cwd: join(home, "work"),
      env: { MORTISE_HOME: home, HOME: home },
      provider: "offline",
      model: "echo",
    });
    events.length = 0;
    client.onEvent((event) => events.push(event));
    await client.start();
  }
  const event = (fits: (frame: Frame) => boolean) =>
    new Promise<Frame>((resolve) => {
      const found = events.find(fits);
      if (found) return resolve(found);
      const stop = client.onEvent((each) => {
        if (!fits(each)) return;
        stop();
        resolve(each);
      });
    });

  it("prompts, steers, follows up, aborts and reads back", async () => {
    await start();
    const run = await client.promptAndWait("hello there");
    expect(run.map((each) => each.type)).toEqual(
      expect.arrayContaining(["agent_start", "message_start", "message_end", "agent_end"]),
    );
    expect(await client.getLastAssistantText()).toBe("hello there");

    const idle = client.waitForIdle();
    await client.prompt("delay 20\none two three four five six seven eight");
    await client.steer("steered");
    await client.followUp("followed");
    await idle;
    const texts = (await client.getMessages())
      .filter((message) => message.role === "user")
      .map((message) => message.content[0]?.text);
    expect(texts.slice(2)).toEqual(["steered", "followed"]);

    const aborted = client.waitForIdle();
    await client.prompt(`delay 50\n${"word ".repeat(200)}`);
    await client.abort();
    await aborted;
    expect(await client.getState()).toMatchObject({ isStreaming: false, model: { provider: "offline", id: "echo" } });
  }, 90_000);

  it("runs bash, reads and sets state, changes sessions, exports", async () => {
    await start();
    expect(await client.bash("echo out; exit 3")).toMatchObject({
      output: "out\n",
      exitCode: 3,
      cancelled: false,
      truncated: false,
    });
    const long = client.bash("sleep 30");
    await client.getState();
    await client.abortBash();
    expect(await long).toMatchObject({ cancelled: true });
    await client.setSteeringMode("all");
    await client.setSessionName("From pi");
    await client.setThinkingLevel("off");
    expect(await client.getState()).toMatchObject({ steeringMode: "all", sessionName: "From pi", thinkingLevel: "off" });
    expect(await client.getAvailableModels()).toEqual(
      expect.arrayContaining([expect.objectContaining({ provider: "offline", id: "echo" })]),
    );
    expect(await client.setModel("offline", "echo")).toMatchObject({ provider: "offline", id: "echo" });
    await expect(client.setModel("no", "such")).rejects.toThrow("Model not found: no/such");
    await client.promptAndWait("to be kept");
    const { sessionFile } = await client.getState();
    expect(await client.getSessionStats()).toMatchObject({ userMessages: 1, assistantMessages: 1 });
    expect(await client.exportHtml("out.html")).toEqual({ path: "out.html" });
    expect(await client.newSession()).toEqual({ cancelled: false });
    expect(await client.getMessages()).toEqual([]);
    expect(await client.switchSession(String(sessionFile))).toEqual({ cancelled: false });
    expect((await client.getMessages()).map((message) => message.role)).toEqual(expect.arrayContaining(["user", "assistant"]));
  }, 90_000);

  it("answers a dialog of an extension", async () => {
    await start();
    await client.prompt("/ask");
    const request = await event((each) => each.type === "extension_ui_request" && each["method"] === "input");
    expect(request).toMatchObject({ title: "Branch name", placeholder: "feature/..." });
    // The class has no method for it; hosts write the frame themselves.
    client.process?.stdin.write(`${JSON.stringify({ type: "extension_ui_response", id: request["id"], value: "feature/x" })}\n`);
    const notice = await event((each) => each.type === "extension_ui_request" && each["method"] === "notify");
    expect(notice).toMatchObject({ message: "chosen: feature/x" });
    await event((each) => each.type === "prompt_result");
  }, 90_000);
});
