import { afterEach, describe, expect, it } from "vitest";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import { type FakeServer, startFakeAnthropic } from "../../support/fake-anthropic.ts";

const open: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.stop();
});

async function start(config: string): Promise<{ daemon: TestDaemon; service: FakeServer }> {
  const service = await startFakeAnthropic();
  open.push({ stop: () => service.close() });
  const daemon = await startDaemon({
    options: { model: "anthropic/claude-sonnet-4-6" },
    env: { ...process.env, ANTHROPIC_API_KEY: "sk-ant-test", ANTHROPIC_BASE_URL: service.url, OPENAI_API_KEY: "" },
    files: { "config.yml": config },
  });
  open.unshift(daemon);
  return { daemon, service };
}

const overloaded = { failure: { status: 529, type: "overloaded_error", message: "Overloaded" } };

it("A wait longer than a timer can be is waited all the same where nothing caps it", async () => {
  const { daemon, service } = await start("retry:\n  maxDelayMs: 0\n");
  service.otherwise({ failure: { status: 429, type: "rate_limit_error", headers: { "retry-after": "99999999" } } });
  daemon.send({ type: "prompt", message: "hello" });
  const waiting = await daemon.next((frame) => frame.type === "auto_retry_start", { after: 0 });
  expect(waiting["delayMs"]).toBe(2 ** 31 - 1);
  // Whatever would have been asked in the meantime is there now.
  await daemon.ask("get_state");
  await daemon.ask("abort_retry");
  await daemon.next((frame) => frame.type === "agent_end", { after: 0 });
  expect(service.requests).toHaveLength(1);
});

describe("Fallback models", () => {
  it("go on with the next model of the chain when the retries are used up, and say so", async () => {
    const { daemon, service } = await start(
      "retry:\n  maxRetries: 1\n  baseDelayMs: 1\n  fallbackChains:\n    anthropic/claude-sonnet-4-6: [offline/echo]\n",
    );
    service.otherwise(overloaded);
    const frames = await daemon.prompt("still there?");
    const told = frames.map((frame) => frame.type).filter((type) => type.startsWith("auto_retry") || type.startsWith("retry_"));
    expect(told).toEqual(["auto_retry_start", "auto_retry_end", "retry_fallback_applied", "retry_fallback_succeeded"]);
    expect(frames.find((frame) => frame.type === "retry_fallback_applied")).toMatchObject({
      from: "anthropic/claude-sonnet-4-6",
      to: "offline/echo",
      role: "default",
    });
    expect(frames.find((frame) => frame.type === "retry_fallback_succeeded")).toMatchObject({ model: "offline/echo" });
    expect(service.requests).toHaveLength(2);
    expect((await daemon.ask("get_last_assistant_text"))["text"]).toBe("still there?");
  });

  it("go by any selector, pass over what has no credential, and go on behind one whose credential is refused", async () => {
    const chain = "[openai/gpt-5.1, claude-sonnet-4-6, nobody/knows, anthropic/claude-haiku-4-5, offline/echo]";
    const { daemon, service } = await start(
      `retry:\n  maxRetries: 0\n  fallbackReturnSeconds: 0\n  fallbackChains:\n    claude-sonnet-4-6: ${chain}\n`,
    );
    await daemon.ask("set_thinking_level", { level: "high" });
    service.otherwise(({ body }) =>
      (body as { model: string }).model === "claude-haiku-4-5"
        ? { failure: { status: 401, type: "authentication_error" } }
        : overloaded,
    );
    const frames = await daemon.prompt("still there?");
    const applied = frames.filter((frame) => frame.type === "retry_fallback_applied");
    expect(applied).toMatchObject([{ to: "anthropic/claude-haiku-4-5" }, { to: "offline/echo" }]);
    expect(service.requests).toHaveLength(2);
    expect((await daemon.ask("get_last_assistant_text"))["text"]).toBe("still there?");
    // It thinks on no level at all, and the host is told.
    expect(frames.filter((frame) => frame.type === "thinking_level_changed")).toMatchObject([{ thinkingLevel: "off" }]);
    expect(await daemon.ask("get_state")).toMatchObject({ model: { id: "echo" }, thinkingLevel: "off" });
  });

  it("do not stand in for a credential of the user's own model that is refused", async () => {
    const { daemon, service } = await start("retry:\n  fallbackChains:\n    anthropic/claude-sonnet-4-6: [offline/echo]\n");
    service.otherwise({ failure: { status: 401, type: "authentication_error", message: "invalid x-api-key" } });
    const frames = await daemon.prompt("still there?");
    expect(frames.filter((frame) => /retry/.test(frame.type))).toEqual([]);
    expect(service.requests).toHaveLength(1);
  });

  it("are not asked when the chain has none, and the failure is shown once", async () => {
    const { daemon, service } = await start("retry:\n  maxRetries: 1\n  baseDelayMs: 1\n");
    service.otherwise(overloaded);
    const frames = await daemon.prompt("hello");
    expect(frames.filter((frame) => frame.type === "auto_retry_end")).toMatchObject([{ success: false, attempt: 1 }]);
    expect(frames.some((frame) => frame.type === "retry_fallback_applied")).toBe(false);
    expect(service.requests).toHaveLength(2);
  });

  const CONFIG =
    "retry:\n  maxRetries: 0\n  fallbackReturnSeconds: 0.05\n  fallbackChains:\n    anthropic/claude-sonnet-4-6: [offline/echo]\n";

  it("are left again after a while, and the host is told", async () => {
    const { daemon, service } = await start(CONFIG);
    await daemon.ask("set_thinking_level", { level: "low" });
    service.script(overloaded);
    await daemon.prompt("still there?");
    const frame = await daemon.next((each) => each.type === "model_changed", { after: 0 });
    expect(frame["model"]).toMatchObject({ provider: "anthropic", id: "claude-sonnet-4-6" });
    expect(await daemon.ask("get_state")).toMatchObject({ model: { id: "claude-sonnet-4-6" }, thinkingLevel: "low" });
    service.script({ text: "back again" });
    await daemon.prompt("and now?");
    expect((await daemon.ask("get_last_assistant_text"))["text"]).toBe("back again");
  });

  it("stay when the user has chosen another one meanwhile", async () => {
    const { daemon, service } = await start(CONFIG.replace("0.05", "0.3"));
    service.script(overloaded);
    await daemon.prompt("still there?");
    await daemon.ask("set_model", { provider: "offline", modelId: "script" });
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(await daemon.ask("get_state")).toMatchObject({ model: { provider: "offline", id: "script" } });
  });
});
