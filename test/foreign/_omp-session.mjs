// Run by Bun: the RPC client of oh-my-pi drives the daemon and prints one JSON object with what it saw.
// Arguments: the client's module, the daemon's entry, the working directory.
const [module, entry, cwd] = process.argv.slice(2);
const { RpcClient } = await import(module);

const seen = {};
const lifecycle = [];
const client = new RpcClient({
  command: ["node", entry],
  cwd,
  provider: "offline",
  model: "echo",
  customTools: [
    {
      name: "double",
      label: "Double",
      description: "Doubles a number",
      parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
      execute: async (args, context) => {
        context.sendUpdate("working");
        return `twice is ${args.n * 2}`;
      },
    },
  ],
});
try {
  await client.start();
  client.onSessionEvent((event) => lifecycle.push(event.type));
  seen.prompt = (await client.promptAndWait("hello there")).map((event) => event.type);
  seen.text = await client.getLastAssistantText();
  await client.promptAndWait('call double {"n":21}');
  seen.hostTool = await client.getLastAssistantText();

  const idle = client.waitForIdle();
  await client.prompt("delay 20\none two three four five six seven eight");
  await client.steer("steered");
  await client.followUp("followed");
  await idle;
  const aborted = client.waitForIdle();
  await client.prompt(`delay 50\n${"word ".repeat(200)}`);
  await client.abort();
  await aborted;
  seen.users = (await client.getMessages())
    .filter((message) => message.role === "user")
    .map((message) => message.content[0]?.text);
  seen.page = (await client.getMessagesPage({ limit: 2 })).messages.length;
  seen.bash = await client.bash("echo out; exit 3");
  seen.state = await client.getState();
  await client.setSteeringMode("all");
  seen.levels = await client.setSubagentSubscription("events").catch((error) => `failed: ${error.message}`);
  seen.models = (await client.getAvailableModels()).filter((model) => model.provider === "offline").map((model) => model.id);
  seen.commands = (await client.getAvailableCommands()).length;
  seen.providers = (await client.getLoginProviders()).map((provider) => provider.id);
  seen.stats = await client.getSessionStats();
  seen.branches = (await client.getBranchMessages()).length;
  await client.setAutoCompaction(false);
  // Larger than a frame of v1: the pages and chunks of v2 carry it.
  const big = "x".repeat(1_500_000);
  await client.promptAndWait(big);
  seen.big = Math.max(...(await client.getMessages()).map((message) => message.content?.[0]?.text?.length ?? 0));
  seen.newSession = await client.newSession();
  seen.empty = await client.getMessages();
  seen.lifecycle = [...new Set(lifecycle)];
} catch (error) {
  seen.error = `${error.stack}`;
} finally {
  await client.stop();
}
process.stdout.write(JSON.stringify(seen));
process.exit(0);
