// A model that an extension chooses after the prompt was accepted is asked with its own credential.
import { expect, it } from "vitest";
import { prompt, useProcesses, wait } from "../cases/_support.ts";
import { startFakeAnthropic } from "../support/fake-anthropic.ts";

const use = useProcesses();

it("the first request of a run whose model was chosen at its start carries the key of that model", async () => {
  const openai = await use.service();
  const claude = await startFakeAnthropic();
  use.later(() => claude.close());
  claude.otherwise({ text: "fine" });
  const daemon = use.start({
    model: openai.daemon.model,
    env: {
      ...openai.daemon.env,
      OPENAI_API_KEY: "key-of-openai",
      ANTHROPIC_API_KEY: "key-of-anthropic",
      ANTHROPIC_BASE_URL: claude.url,
    },
    files: {
      "extensions/choose.ts": `import { defineHook, Models, runStarting } from "mortise/extension";
export default defineHook(runStarting, ({ conversation }, ctx) => {
  conversation.select({ model: ctx.use(Models).find("anthropic", "claude-haiku-4-5") });
});
`,
    },
  });
  await wait(daemon, (frame) => frame.type === "available_commands_update");
  await prompt(daemon, "go");
  expect(openai.requests).toEqual([]);
  expect(claude.requests.map((request) => request.headers["x-api-key"])).toEqual(["key-of-anthropic"]);
});
