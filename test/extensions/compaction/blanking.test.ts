// Old outputs of tools are left out of what is sent before anything is summed up (agent-semantics §2.10).
import { afterEach, describe, expect, it } from "vitest";
import type { ProviderRequest } from "../../../core/extension.ts";
import type { TestDaemon } from "../../../core/testing.ts";
import { calls, done, type Reply } from "../../support/scripted-provider.ts";
import { answers, ofType, type Scene, startScene, textOf, tokensOf } from "./_start.ts";

let d: TestDaemon;
afterEach(() => d.stop());

const config =
  "compaction:\n  thresholdTokens: 9000\n  keepRecentTokens: 40\n  blankProtectTokens: 200\n  blankSavedTokens: 500\n";
/** `big` makes the model call the tool of that name; the counts are honest. */
const answer = (request: ProviderRequest): Reply => {
  const last = request.messages.at(-1);
  if (textOf(last) !== "big") return answers("said", tokensOf(request));
  return [...calls({ id: `c${request.messages.length}`, name: "big", args: { chars: 10_000 } }).slice(0, -1), done("toolUse")];
};
const start = async (scene: Partial<Scene> = {}) => {
  const made = await startScene({ answer, config, ...scene });
  d = made.d;
  return made;
};
const results = (request: ProviderRequest | undefined) =>
  (request?.messages ?? []).flatMap((message) => (message.role === "toolResult" ? [textOf(message)] : []));
const sizes = (request: ProviderRequest | undefined) => results(request).map((text) => (text.length > 5000 ? "whole" : "blank"));
const notices = () => ofType(d, "notice").filter((frame) => frame["source"] === "compaction");

describe("blanking", () => {
  it("comes before a summary, spares the newest outputs, and leaves session and host alone", async () => {
    const { provider, summaries } = await start();
    for (let n = 0; n < 3; n++) await d.prompt("big");
    expect(notices()).toMatchObject([{ level: "info", message: expect.stringMatching(/Old outputs of tools are left out/) }]);
    await d.prompt("next");
    expect(sizes(provider.requests.at(-1))).toEqual(["blank", "blank", "whole"]);
    expect(results(provider.requests.at(-1))[0]).toMatch(/^\[An output of about 2500 tokens was left out/);
    expect(summaries()).toEqual([]);
    expect(ofType(d, "auto_compaction_start")).toEqual([]);
    expect(provider.refused).toEqual([]);
    const { messages } = (await d.ask("get_messages")) as { messages: { role: string; content: { text: string }[] }[] };
    expect(messages.filter(({ role }) => role === "toolResult").map(({ content }) => content[0]?.text.length)).toEqual([
      10_000, 10_000, 10_000,
    ]);
  });

  it("does not happen again before there is more to leave out, and a summary comes when it is not enough", async () => {
    const { provider, summaries } = await start();
    for (let n = 0; n < 3; n++) await d.prompt("big");
    await d.prompt("next");
    expect(notices()).toHaveLength(1);
    for (let n = 0; n < 2; n++) await d.prompt("big");
    await d.prompt("next");
    expect(notices()).toHaveLength(2);
    expect(sizes(provider.requests.at(-1))).toEqual(["blank", "blank", "blank", "blank", "whole"]);
    expect(summaries()).toEqual([]);
    await d.prompt(`long ${"y".repeat(20_000)}`);
    expect(summaries()).toHaveLength(1);
    expect(provider.refused).toEqual([]);
  });

  it("holds for a session that is opened again, for handoff, and not for a branch from before", async () => {
    const { provider } = await start();
    await d.prompt("first");
    for (let n = 0; n < 3; n++) await d.prompt("big");
    const { sessionFile } = (await d.ask("get_state")) as { sessionFile: string };
    await d.prompt("next");
    const before = results(provider.requests.at(-1));
    await d.ask("new_session");
    await d.ask("switch_session", { sessionPath: sessionFile });
    await d.prompt("again");
    expect(results(provider.requests.at(-1))).toEqual(before);
    const { messages } = (await d.ask("get_branch_messages")) as { messages: { entryId: string; text: string }[] };
    await d.ask("branch", { entryId: messages.filter(({ text }) => text === "big").at(-1)?.entryId });
    await d.prompt("other");
    expect(sizes(provider.requests.at(-1))).toEqual(["whole", "whole"]);
    await d.ask("switch_session", { sessionPath: sessionFile });
    await d.ask("handoff");
    expect(results(provider.requests.at(-1))).toEqual(before);
    expect(provider.refused).toEqual([]);
  });

  it("can be turned off", async () => {
    const { summaries } = await start({ config: `${config}  blankOutputs: false\n` });
    for (let n = 0; n < 3; n++) await d.prompt("big");
    expect(summaries()).toHaveLength(1);
    expect(notices()).toEqual([]);
  });
});
