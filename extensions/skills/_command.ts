// `/skill:name args`: the instructions of a skill become a message of the conversation.
import { readFile } from "node:fs/promises";
import {
  CommandError,
  type CustomMessage,
  defineSlashCommand,
  errorMessage,
  type ImageContent,
  parseFrontmatter,
  type Skill,
  type SlashDefinition,
} from "mortise/extension";

export function toSlashCommand(skill: Skill): SlashDefinition {
  return defineSlashCommand({
    name: `skill:${skill.name}`,
    description: skill.description,
    source: "skill",
    concurrency: "serial",
    async run(ctx, args) {
      const text = await instructionsOf(skill);
      const submission = ctx.conversation.submitCustom(
        {
          customType: "skill-prompt",
          content: withImages(skillPrompt(skill, text, args), ctx.images),
          display: true,
          attribution: "user",
          details: {
            name: skill.name,
            path: skill.file,
            ...(args === "" ? {} : { args }),
            lineCount: text === "" ? 0 : text.split("\n").length,
          },
        },
        { triggerTurn: true, delivery: ctx.delivery ?? "steer" },
      );
      // Answered before the dispatch: a slow hook or provider does not hold the acknowledgement (agent-semantics §12 item 11).
      if (ctx.invocation !== undefined) ctx.invocation.agentInvoked = true;
      submission.catch((error: unknown) => ctx.failLate(error));
    },
  });
}

/** @throws {CommandError} when the file cannot be read. */
async function instructionsOf(skill: Skill): Promise<string> {
  try {
    return (await parseFrontmatter(await readFile(skill.file, "utf8"))).body.trimEnd();
  } catch (error) {
    throw new CommandError(`Cannot read skill "${skill.name}" from "${skill.file}": ${errorMessage(error)}`, "not_found", {
      cause: error,
    });
  }
}

function withImages(text: string, images: readonly ImageContent[] = []): CustomMessage["content"] {
  return images.length === 0 ? text : [{ type: "text", text }, ...images];
}

function skillPrompt(skill: Skill, instructions: string, args: string): string {
  const head = `Follow the skill "${skill.name}". Relative paths in it start at ${skill.directory}.`;
  const request = args === "" ? "" : `\n\nWhat it is for this time: ${args}`;
  return `${head}\n\n<skill name="${skill.name}">\n${instructions}\n</skill>${request}`;
}
