// A login that the service refuses before its time is renewed and asked with again, once.
import { afterEach, expect, it } from "vitest";
import { defineLoginFlow } from "../../../core/extension.ts";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import { startFakeOpenAI } from "../../support/fake-openai.ts";
import type { FakeServer } from "../../support/fake-provider.ts";

let daemon: TestDaemon;
let fake: FakeServer;
afterEach(async () => {
  await daemon.stop();
  await fake.close();
});

async function start(renewed: () => string) {
  fake = await startFakeOpenAI();
  fake.otherwise((request) =>
    request.headers.authorization === "Bearer token-new-1234"
      ? { text: "fine" }
      : { failure: { status: 401, message: "Token revoked" } },
  );
  let renewals = 0;
  const flow = defineLoginFlow({
    name: "house",
    displayName: "Test",
    run: () => Promise.reject(new Error("not asked")),
    refresh: (current) => {
      renewals++;
      return Promise.resolve({ ...current, access: renewed() } as never);
    },
  });
  daemon = await startDaemon({
    watch: false,
    options: { model: "house/one" },
    env: {},
    files: {
      "auth.json": JSON.stringify({ house: { type: "oauth", access: "token-old-1234", refresh: "r", expires: 4e12 } }),
      "models.yml": `providers:
  house:
    baseUrl: ${fake.url}/v1
    api: openai-completions
    models: [{ id: one }]
`,
    },
    extensions: { flow: [flow] },
  });
  return () => renewals;
}
const lastText = async () => (await daemon.ask("get_last_assistant_text"))["text"];

it("asks again with the renewed token, unseen by the host", async () => {
  const renewals = await start(() => "token-new-1234");
  const frames = await daemon.prompt("go");
  expect(await lastText()).toBe("fine");
  expect(renewals()).toBe(1);
  expect(fake.requests).toHaveLength(2);
  expect(frames.filter((frame) => frame.type === "auto_retry_start")).toEqual([]);
  await daemon.prompt("again");
  expect(fake.requests).toHaveLength(3);
});

it("shows the refusal when the renewed token is refused too", async () => {
  const renewals = await start(() => "token-bad-1234");
  const frames = await daemon.prompt("go");
  expect(JSON.stringify(frames)).toContain("Token revoked");
  expect(renewals()).toBe(1);
  expect(fake.requests).toHaveLength(2);
});
