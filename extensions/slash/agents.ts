import { type AgentDefinition, defineSlashCommand, Subagents } from "mortise/extension";
import { columns, oneLine } from "./_format.ts";

export default defineSlashCommand({
  name: "agents",
  description: "List the kinds of subagents the model may start, or explain one",
  argumentHint: "[agent]",
  source: "builtin",
  async run(ctx, args) {
    const subagents = ctx.tryUse(Subagents);
    const { conversation } = ctx;
    const definitions = subagents === undefined ? [] : await subagents.definitions(conversation);
    if (definitions.length === 0)
      return ctx.output("There are no agents. Put one into agents/<name>.md, with a name and a description in its head");
    if (args === "")
      return ctx.output(
        columns(definitions.map(({ name, description, source }) => [name, `${oneLine(description, 80)} (${source})`])),
      );
    const found = definitions.find(({ name }) => name === args);
    ctx.output(found === undefined ? `No agent is called "${args}". There are: ${namesOf(definitions)}` : explain(found));
  },
});

function explain(agent: AgentDefinition): string {
  const { name, description, source, file, tools, spawns, models, thinkingLevel, output, blocking } = agent;
  const list = (names: "*" | readonly string[] | undefined, none: string) =>
    names === undefined ? none : names === "*" ? "all" : names.join(", ");
  return columns([
    ["Agent", name],
    ["Does", oneLine(description, 200)],
    ["From", file === undefined ? source : `${source}: ${file}`],
    ["Model", list(models, "that of the conversation")],
    ["Thinking", thinkingLevel ?? "that of the conversation"],
    ["Tools", list(tools, "those of the conversation")],
    ["May start", list(spawns, "none")],
    ["Answers", output === undefined ? "in words" : "as data that fits a schema"],
    ["Waited for", blocking === false ? "no: it goes on as a background job" : "yes"],
  ]);
}

function namesOf(definitions: readonly AgentDefinition[]): string {
  return definitions.map(({ name }) => name).join(", ");
}
