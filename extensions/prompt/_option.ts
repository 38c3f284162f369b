// Texts that come from the command line or from a file of the project or the user.
import { isAbsolute, join, resolve, sep } from "node:path";
import { type Context, Launch, Trust, z } from "mortise/extension";
import { PromptFiles } from "./_files.ts";

const Texts = z
  .union([z.string().transform((text) => [text]), z.array(z.string())])
  .optional()
  .catch(undefined);

/** What an option holds: each value is the name of a file, or the text itself. Undefined when the option was not given. */
export async function optionTexts(ctx: Context, option: string): Promise<string[] | undefined> {
  const { options, cwd } = ctx.use(Launch);
  const values = Texts.parse(options[option]);
  return values && Promise.all(values.map((value) => textOrFile(ctx, value, cwd)));
}

async function textOrFile(ctx: Context, value: string, cwd: string): Promise<string> {
  // No file name is that long, and none has line breaks.
  if (value.includes("\n") || value.length > 1000) return value;
  const path = isAbsolute(value) ? value : resolve(cwd, value);
  return (await ctx.use(PromptFiles).read(path))?.text ?? value;
}

/** The first of `<cwd>/.mortise/<name>` and `$MORTISE_HOME/<name>` that has text. */
export async function namedFile(ctx: Context, name: string): Promise<string | undefined> {
  const files = ctx.use(PromptFiles);
  const { cwd } = ctx.conversation;
  const project = await files.read(join(cwd, ".mortise", name));
  if (project !== undefined && isOfProject(ctx, project.realPath)) return project.text;
  return (await files.read(join(ctx.use(Launch).home, name)))?.text;
}

/** A link of a cloned repository may lead anywhere; only a trusted project may do that. */
function isOfProject(ctx: Context, realPath: string): boolean {
  const { cwd } = ctx.conversation;
  return realPath.startsWith(cwd + sep) || ctx.tryUse(Trust)?.isTrusted(cwd) === true;
}
