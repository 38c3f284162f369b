// Secrets of the daemon in what tools report and give: the host and the model see "[redacted]" (docs/runtime.md, "Redaction").
import { CommandError, defineCommand, defineHook, defineTool, notice, toolProgress, z } from "mortise/extension";
import { type StartOptions, startDaemon, type TestDaemon } from "mortise/testing";
import { afterEach, expect, test } from "vitest";

const SECRET = "sk-live-CANARY-0123456789";
const files = { "auth.json": JSON.stringify({ anthropic: { type: "api_key", key: SECRET } }) };

let daemon: TestDaemon | undefined;
afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
});
async function start(more: StartOptions = {}): Promise<TestDaemon> {
  daemon = await startDaemon({ watch: false, files, ...more });
  return daemon;
}

/** Reports texts without waiting, then the last one after the host was shown the first. */
const teller = defineTool({
  name: "teller",
  description: "Reports what it is given",
  params: z.object({ texts: z.array(z.string()) }),
  run: (ctx, { texts }) => {
    for (const text of texts) ctx.update({ content: [{ type: "text", text }], details: { text } });
    return texts.join("\n");
  },
});

test("a tool's progress and its result are masked, texts and details alike; nothing else of them is changed", async () => {
  const d = await start({ extensions: { teller: [teller] } });
  const told = await d.callTool("teller", { texts: [`key ${SECRET}, and ${SECRET}`] });
  expect(told.updates).toEqual(["key [redacted], and [redacted]"]);
  expect(told.text).toBe("key [redacted], and [redacted]");
  const update = d.frames.find((frame) => frame.type === "tool_execution_update");
  expect(update?.["partialResult"]).toEqual({
    content: [{ type: "text", text: "key [redacted], and [redacted]" }],
    details: { text: "key [redacted], and [redacted]" },
  });
  expect((await d.callTool("teller", { texts: ["harmless"] })).updates).toEqual(["harmless"]);
});

test.each([
  [
    "with a character that is sent as another",
    "http://u:p%40ssword-CANARY@127.0.0.1:1/",
    ["p%40ssword-CANARY", "p@ssword-CANARY"],
  ],
  ["with a per cent sign of its own", "http://u:50%-off-CANARY@127.0.0.1:1/", ["50%-off-CANARY"]],
  ["without a scheme", "u:plain-word-CANARY@127.0.0.1:1", ["plain-word-CANARY"]],
])("the password of a proxy %s is masked, and so is everything else", async (_what, address, passwords) => {
  const d = await start({ env: { HTTPS_PROXY: address }, extensions: { teller: [teller] } });
  const told = await d.callTool("teller", { texts: [`${passwords.join(" ")} ${SECRET} ${address}`] });
  expect(told.text).toContain("[redacted] [redacted]");
  for (const secret of [SECRET, ...passwords]) expect(told.text).not.toContain(secret);
});

test("a key of models.yml is masked before it was ever used; a renewed or removed one stays masked", async () => {
  const key = "mine-CANARY-0123456789";
  const provider = `{ baseUrl: "http://127.0.0.1:1/v1", api: openai-completions, apiKey: ${key}, models: [{ id: m }] }`;
  const d = await start({
    files: { ...files, "models.yml": `providers:\n  mine: ${provider}\n` },
    extensions: { teller: [teller] },
  });
  expect((await d.callTool("teller", { texts: [`${key} ${SECRET}`] })).text).toBe("[redacted] [redacted]");
  d.write("auth.json", JSON.stringify({ anthropic: { type: "api_key", key: "another-CANARY-012345" } }));
  expect((await d.callTool("teller", { texts: [`another-CANARY-012345 ${SECRET}`] })).text).toBe("[redacted] [redacted]");
  const cut = '{ "anthropic": { "type": "api_key", "key": "unread-CANARY-0123456789';
  d.write("auth.json", cut);
  expect((await d.callTool("teller", { texts: [`${SECRET} ${cut}`] })).text).toBe(
    '[redacted] { "anthropic": { "type": "api_key", "key": "[redacted]',
  );
});

test("failures, notices and the list of extensions say nothing of a key", async () => {
  const command = defineCommand({
    name: "leak",
    group: "Process",
    summary: "Fails with a key in its words.",
    concurrency: "serial",
    params: z.object({ expected: z.boolean() }),
    example: { params: { expected: true }, failure: "No" },
    run(ctx, { expected }) {
      ctx.send(notice, { level: "info", message: `noticed ${SECRET}`, source: "leak" });
      throw expected ? new CommandError(`refused ${SECRET}`) : new Error(`broke ${SECRET}`);
    },
  });
  const d = await start({
    files: { ...files, "extensions/broken.ts": `throw new Error("loaded ${SECRET}");\n` },
    extensions: { leak: [command] },
  });
  for (const [expected, error] of [
    [true, "refused [redacted]"],
    [false, "broke [redacted]"],
  ] as const)
    expect(await d.request("leak", { expected })).toMatchObject({ success: false, error });
  expect(d.frames.find((frame) => frame.type === "notice" && frame["source"] === "leak")).toMatchObject({
    message: "noticed [redacted]",
  });
  expect(JSON.stringify(await d.ask("get_extensions"))).toContain("loaded [redacted]");
  expect(JSON.stringify(d.frames)).not.toContain(SECRET);
});

test("what a command prints is masked while it runs", async () => {
  const d = await start();
  const id = d.frames.length;
  d.send({ id: "p", type: "prompt", message: `call bash {"command": "cat ../auth.json; until [ -e go ]; do sleep 0.01; done"}` });
  const update = await d.next((frame) => frame.type === "tool_execution_update" && JSON.stringify(frame).includes("api_key"));
  expect(JSON.stringify(update)).toContain("[redacted]");
  d.write("cwd/go", "");
  await d.next("agent_end");
  const shown = d.frames.slice(id).filter((frame) => frame.type !== "tool_execution_start");
  expect(JSON.stringify(shown)).not.toContain(SECRET);
});

test("an extension changes what is shown; one that throws or hangs costs neither the call nor its result", async () => {
  const prefixed = defineHook(toolProgress, ({ partial, ...rest }) => {
    const [first] = partial.content;
    const text = first?.type === "text" ? `shown: ${first.text}` : "";
    return { ...rest, partial: { content: [{ type: "text" as const, text }] } };
  });
  const throws = defineHook(toolProgress, () => {
    throw new Error("not today");
  });
  const hangs = defineHook(toolProgress, () => new Promise<undefined>(() => {}), { priority: 2 });
  const d = await start({ extensions: { teller: [teller], prefixed: [prefixed], throws: [throws], hangs: [hangs] } });
  const told = await d.callTool("teller", { texts: [`loud ${SECRET}`] });
  expect(told.updates).toEqual(["shown: loud [redacted]"]);
  expect(told.text).toBe("loud [redacted]");
  const errors = d.frames.filter((frame) => frame.type === "extension_error");
  expect(errors.map((frame) => frame["error"]).toSorted()).toEqual([
    'Handler of "toolProgress" took longer than 1000 ms',
    "not today",
  ]);
});
