// A picture that the service refuses leaves the context instead of making every later request fail (issue: "never refused by a
// provider because of our own history").
import { afterEach, describe, expect, it } from "vitest";
import { defineTool, ProviderError, type ProviderRequest, z } from "../../../core/extension.ts";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import { calls, type Reply, says, scriptedModel, scriptedProvider } from "../../support/scripted-provider.ts";

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const image = { type: "image" as const, data: png, mimeType: "image/png" };
const REFUSAL = "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum";

let d: TestDaemon | undefined;
afterEach(async () => {
  await d?.stop();
  d = undefined;
});

const pictures = (request: ProviderRequest | undefined) =>
  (request?.messages ?? []).flatMap((message) =>
    typeof message.content === "string" ? [] : message.content.filter((block) => block.type === "image"),
  ).length;
const look = defineTool({
  name: "look",
  description: "Gives a picture",
  params: z.object({}),
  run: () => ({ content: [{ type: "text", text: "seen" }, image] }),
});

/** A service that takes so many pictures. */
async function start(most: number, answer: (request: ProviderRequest) => Reply = () => says("fine"), config = "") {
  const provider = scriptedProvider((request) =>
    pictures(request) > most ? [{ type: "error", error: new ProviderError(REFUSAL, "fatal", { status: 400 }) }] : answer(request),
  );
  d = await startDaemon({ files: { "config.yml": config }, extensions: { scripted: [[provider.definition, look]] } });
  d.daemon.conversations.attached.select({ model: { ...scriptedModel, input: ["text", "image"] } });
  return { d, provider };
}
const warnings = (daemon: TestDaemon) =>
  daemon.frames.filter((frame) => frame.type === "notice" && frame["source"] === "providers");
const lastStop = (daemon: TestDaemon) =>
  daemon.frames.findLast(
    (frame) => frame.type === "message_end" && (frame["message"] as { role: string }).role === "assistant",
  )?.["message"];

describe("a refused picture", () => {
  it("of the prompt is left out, the same run goes on, and later ones too, with the same bytes", async () => {
    const { d, provider } = await start(0);
    await d.prompt("look at this", { images: [image] });
    expect(lastStop(d)).toMatchObject({ stopReason: "stop" });
    expect(warnings(d)).toMatchObject([{ level: "warning", message: expect.stringContaining(REFUSAL) }]);
    expect(d.frames.filter((frame) => frame.type === "agent_end")).toHaveLength(1);
    await d.prompt("and now?");
    expect(provider.requests.map(pictures)).toEqual([1, 0, 0]);
    expect(JSON.stringify(provider.requests[2]?.messages[0])).toBe(JSON.stringify(provider.requests[1]?.messages[0]));
    expect(JSON.stringify(provider.requests[1]?.messages[0])).toContain("[Picture left out: the model service refused it]");
    const { sessionFile } = (await d.ask("get_state")) as { sessionFile: string };
    await d.ask("new_session");
    await d.ask("switch_session", { sessionPath: sessionFile });
    await d.prompt("still?");
    expect(provider.requests.map(pictures)).toEqual([1, 0, 0, 0]);
  });

  it("of a tool is left out, and one that was taken before stays", async () => {
    const { d, provider } = await start(1, (request) =>
      request.messages.at(-1)?.role === "user" && request.messages.length > 2 ? calls({ id: "c", name: "look" }) : says("fine"),
    );
    await d.prompt("this is taken", { images: [image] });
    await d.prompt("look");
    expect(lastStop(d)).toMatchObject({ stopReason: "stop" });
    expect(provider.requests.map(pictures)).toEqual([1, 1, 2, 1]);
    expect(
      pictures({ ...(provider.requests[3] as ProviderRequest), messages: provider.requests[3]?.messages.slice(0, 1) ?? [] }),
    ).toBe(1);
  });

  it("after a change of model: all are left out, however old", async () => {
    let most = 9;
    const provider = scriptedProvider((request) =>
      pictures(request) > most
        ? [{ type: "error", error: new ProviderError("This model does not support image input", "fatal", { status: 400 }) }]
        : says("ok"),
    );
    d = await startDaemon({ extensions: { scripted: [[provider.definition]] } });
    d.daemon.conversations.attached.select({ model: { ...scriptedModel, input: ["text", "image"] } });
    await d.prompt("one", { images: [image] });
    await d.prompt("two", { images: [image] });
    most = 0;
    await d.prompt("three");
    expect(lastStop(d)).toMatchObject({ stopReason: "stop" });
    expect(provider.requests.map(pictures)).toEqual([1, 2, 2, 0]);
  });

  it("with retries off ends the run, and the next prompt works", async () => {
    const { d, provider } = await start(0, undefined, "retry:\n  enabled: false\n");
    await d.prompt("look", { images: [image] });
    expect(lastStop(d)).toMatchObject({ stopReason: "error" });
    await d.prompt("go on");
    expect(lastStop(d)).toMatchObject({ stopReason: "stop" });
    expect(provider.requests.map(pictures)).toEqual([1, 0]);
  });

  it("that stays refused for another reason is asked for once more at most", async () => {
    const provider = scriptedProvider(() => [{ type: "error", error: new ProviderError(REFUSAL, "fatal", { status: 400 }) }]);
    d = await startDaemon({ extensions: { scripted: [[provider.definition]] } });
    d.daemon.conversations.attached.select({ model: { ...scriptedModel, input: ["text", "image"] } });
    await d.prompt("one", { images: [image] });
    expect(lastStop(d)).toMatchObject({ stopReason: "error" });
    await d.prompt("two");
    expect(provider.requests.map(pictures)).toEqual([1, 0, 0]);
  });
});
