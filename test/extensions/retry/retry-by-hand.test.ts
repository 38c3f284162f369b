// `/retry`: the model is asked again without a new message.
import { afterEach, describe, expect, it } from "vitest";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import { fail, says, scriptedModel, scriptedProvider } from "../../support/scripted-provider.ts";

let d: TestDaemon;
afterEach(() => d.stop());

async function start(...script: Parameters<typeof scriptedProvider>) {
  const provider = scriptedProvider(...script);
  d = await startDaemon({ watch: false, env: {}, extensions: { scripted: [[provider.definition]] } });
  d.daemon.conversations.attached.select({ model: scriptedModel });
  return provider;
}

describe("/retry", () => {
  it("asks again after a failure, with the same message and without the failed answer", async () => {
    const provider = await start([fail("Your credit is used up", "quota")], says("fine"));
    await d.prompt("go");
    const after = d.frames.length;
    expect(await d.request("prompt", { message: "/retry" })).toMatchObject({ success: true, data: { agentInvoked: true } });
    await d.next("agent_end", { after });
    expect((await d.ask("get_last_assistant_text"))["text"]).toBe("fine");
    expect(provider.requests[1]?.messages).toEqual(provider.requests[0]?.messages);
    expect(provider.refused).toEqual([]);
  });

  it("says that there is nothing to retry", async () => {
    await start(says("fine"));
    const told = async () => {
      const after = d.frames.length;
      expect(await d.request("prompt", { message: "/retry" })).toMatchObject({ data: { agentInvoked: false } });
      return d.frames.slice(after).find((frame) => frame.type === "command_output")?.["text"];
    };
    expect(await told()).toBe("No messages to continue from");
    await d.prompt("go");
    expect(await told()).toBe("No messages to continue from");
  });
});
