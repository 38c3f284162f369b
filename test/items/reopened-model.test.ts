// What model a session goes on with when it is opened again, and what the host is told.
import { describe, expect, it } from "vitest";
import { ask, prompt, sessionText, useProcesses, userMessage, wait } from "../cases/_support.ts";
import type { DaemonProcess } from "../support/process.ts";

const use = useProcesses();

function answered(provider: string, model: string): Record<string, unknown> {
  const content = [{ type: "text", text: "hello" }];
  return { role: "assistant", content, api: "x", provider, model, stopReason: "stop", timestamp: 2 };
}
function stored(daemon: DaemonProcess, provider: string, model: string): string {
  return daemon.write(`${model}.jsonl`, sessionText(daemon.cwd, [userMessage("hi"), answered(provider, model)]));
}
const modelOf = async (daemon: DaemonProcess) => (await ask(daemon, "get_state"))["model"] as { provider: string; id: string };
const noticesOf = (daemon: DaemonProcess) =>
  daemon.frames.filter((frame) => frame.type === "notice" && frame["source"] === "models");

describe("a session that is opened again", () => {
  it("with a model that is not known, or has no credential, goes on with the one at hand, and says so", async () => {
    const daemon = use.start({ env: { ANTHROPIC_API_KEY: "" } });
    await wait(daemon, "ready");
    for (const [provider, model, why] of [
      ["gone", "model-x", /gone\/model-x, is not available \(it is not known here\): it goes on with offline\/echo/],
      ["anthropic", "claude-haiku-4-5", /no credential for anthropic/],
    ] as const) {
      const after = daemon.frames.length;
      await ask(daemon, "switch_session", { sessionPath: stored(daemon, provider, model) });
      const told = daemon.frames.slice(after).filter((frame) => frame.type === "notice");
      expect(told).toMatchObject([{ level: "warning", source: "models", message: expect.stringMatching(why) }]);
      expect(await modelOf(daemon)).toMatchObject({ provider: "offline", id: "echo" });
      await prompt(daemon, "go on");
    }
  });

  it("tells it at the start as well, and nothing when the model is there", async () => {
    const first = use.start();
    const missing = stored(first, "gone", "model-x");
    const present = stored(first, "offline", "echo");
    await first.end();
    const second = use.start({ home: first.home, model: "", args: ["--session", missing] });
    await wait(second, (frame) => frame.type === "available_commands_update");
    expect(noticesOf(second)).toMatchObject([{ message: expect.stringContaining("no model is selected") }]);
    await second.end();
    const third = use.start({ home: first.home, model: "", args: ["--session", present] });
    await wait(third, (frame) => frame.type === "available_commands_update");
    expect(noticesOf(third)).toEqual([]);
    expect(await modelOf(third)).toMatchObject({ provider: "offline", id: "echo" });
  });

  it("says nothing at the start of a new one whose model has no credential yet: the prompt does", async () => {
    const daemon = use.start({ model: "anthropic/claude-haiku-4-5", env: { ANTHROPIC_API_KEY: "" } });
    await wait(daemon, (frame) => frame.type === "available_commands_update");
    await ask(daemon, "get_state");
    expect(noticesOf(daemon)).toEqual([]);
    daemon.send({ id: "p", type: "prompt", message: "hello" });
    const failure = await wait(daemon, (frame) => frame["id"] === "p" && frame["success"] === false);
    expect(failure["error"]).toContain("No API key found for anthropic");
  });

  it("goes on with the model and level that the command line names", async () => {
    const first = use.start();
    const file = stored(first, "offline", "echo");
    await first.end();
    const second = use.start({ home: first.home, model: "offline/script", args: ["--thinking", "high", "--session", file] });
    expect(await modelOf(second)).toMatchObject({ provider: "offline", id: "script" });
    expect(await ask(second, "get_state")).toMatchObject({ thinkingLevel: "high" });
  });
});
