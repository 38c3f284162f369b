// The main job in one scripted session, without network and without key: a prompt, a tool call, a question to the user, and an
// extension that is edited, broken and repaired while the answer streams. Drives the built daemon as any host would.
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
if (!existsSync(join(root, "dist/client.js"))) {
  console.error("dist/ is missing: run `npm ci` (or `npm run build`) first");
  process.exit(1);
}
const { HostClient } = await import(new URL("../../dist/client.js", import.meta.url).href);

const home = mkdtempSync(join(tmpdir(), "mortise-demo-"));
const project = join(home, "project");
mkdirSync(join(home, "extensions"));
mkdirSync(project);
const extensionFile = join(home, "extensions/greeter.ts");
const greeter = (greeting) => `import { defineExtension, defineHook, defineTool, toolDecide, z } from "mortise/extension";

const greet = defineTool({
  name: "greet",
  description: "Greets somebody.",
  params: z.object({ name: z.string() }),
  run: (_ctx, { name }) => \`${greeting}, \${name}!\`,
});

const askFirst = defineHook(toolDecide, async (call, ctx) => {
  if (call.toolName !== "greet") return;
  const yes = await ctx.ui.confirm({ title: "Greet?", message: "Greet " + call.args.name + "?" });
  return yes ? undefined : { block: true, reason: "The user said no" };
});

export default defineExtension({ name: "greeter", contributes: [greet, askFirst] });
`;
writeFileSync(extensionFile, greeter("Hello"));

let number = 0;
const step = (text) => console.log(`\n${++number}. ${text}`);
const show = (text) => console.log(`   ${text}`);
const expect = (condition, text) => {
  if (!condition) throw new Error(`The demo did not go as it should: ${text}`);
};
const textOf = (content) => content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("");

step("Start the daemon with the offline model, as an editor would: pipes and nothing else");
const began = Date.now();
const client = await HostClient.spawn({
  args: ["--model", "offline/echo"],
  mode: "rpc-ui",
  cwd: project,
  env: { ...process.env, MORTISE_HOME: home },
  ui: {
    confirm: ({ title, message }) => {
      show(`? ${title} ${message}  → the user says yes`);
      return true;
    },
  },
});

try {
  show(`ready after ${Date.now() - began} ms`);
  const state = await client.request("get_state");
  show(
    `model ${state.model.provider}/${state.model.id}, ${state.dumpTools.length} tools, greet among them: ${state.dumpTools.some((tool) => tool.name === "greet")}`,
  );

  const results = [];
  const tell = (frame) => {
    if (frame.type === "tool_execution_start") show(`tool call: ${frame.toolName}(${JSON.stringify(frame.args)})`);
    if (frame.type === "tool_execution_end") {
      results.push(textOf(frame.result.content));
      show(`tool result: ${results.at(-1)}`);
    }
    if (frame.type === "extension_error") show(`extension_error: ${frame.error.split("\n")[0]}`);
    if (frame.type === "available_commands_update") show("available_commands_update");
  };
  client.onFrame(tell);

  step("Prompt: the model calls a tool of an extension, the extension asks the user first");
  await client.promptAndWait('call greet {"name": "Ada"}');
  expect(results.at(-1) === "Hello, Ada!", `greet answered ${results.at(-1)}`);

  step("Start a long answer, and save a new version of the extension while it streams");
  const words = Array.from({ length: 120 }, (_, index) => `word${index}`).join(" ");
  let deltas = 0;
  client.onFrame((frame) => {
    if (frame.type === "message_update") deltas++;
  });
  const streaming = client.promptAndWait(`delay 15\n${words}`);
  await client.waitFor("message_update");
  writeFileSync(extensionFile, greeter("Good evening"));
  show("saved: the greeting is now “Good evening”");
  await streaming;
  show(`the answer streamed on undisturbed (${deltas} updates)`);
  await client.promptAndWait('call greet {"name": "Ada"}');
  expect(results.at(-1) === "Good evening, Ada!", `greet answered ${results.at(-1)}`);

  step("Break it: the save that does not load changes nothing");
  const failed = client.waitFor("extension_error");
  writeFileSync(extensionFile, `${greeter("Broken")}\nconst = 1;`);
  await failed;
  await client.promptAndWait('call greet {"name": "Ada"}');
  expect(results.at(-1) === "Good evening, Ada!", `greet answered ${results.at(-1)}`);

  step("Repair it, and delete it");
  writeFileSync(extensionFile, greeter("Welcome back"));
  await untilGreets("Welcome back, Ada!");
  rmSync(extensionFile);
  for (let tools = true; tools; ) {
    tools = (await client.request("get_state")).dumpTools.some((tool) => tool.name === "greet");
    if (tools) await new Promise((resolve) => setTimeout(resolve, 50));
  }
  show("the tool is gone");

  async function untilGreets(text) {
    for (const until = Date.now() + 5000; Date.now() < until; ) {
      await client.promptAndWait('call greet {"name": "Ada"}');
      if (results.at(-1) === text) return;
    }
    throw new Error(`The repaired version never answered: ${results.at(-1)}`);
  }

  step("Close stdin");
} finally {
  const status = await client.close();
  show(`exit code ${status.code}`);
  rmSync(home, { recursive: true, force: true });
  if (status.code !== 0) process.exitCode = 1;
}
console.log("\nDone.");
