// Markdown files that are slash commands: `prompts/*.md` and `commands/*.md` of the user and of the project. They are text for
// the model and run nothing, so a project's need no trust.
import {
  CommandError,
  contentFolders,
  contributedFolders,
  defineExtension,
  defineSlashCommand,
  errorMessage,
  followFolders,
  Launch,
  type SlashDefinition,
  warnOnce,
} from "mortise/extension";
import { fillTemplate } from "./_arguments.ts";
import { scanTemplates, type Template, templateBody } from "./_scan.ts";

export default defineExtension({
  name: "templates",
  async setup(scope) {
    const launch = scope.ctx.use(Launch);
    const own = ["commands", "prompts"].flatMap((name) => contentFolders(launch, name)).map(({ path }) => path);
    const folders = () => [...own, ...contributedFolders(scope.ctx, "prompts")];
    const warn = warnOnce(scope.ctx.log);
    let contributed = "";
    const scan = async () => {
      const templates = await scanTemplates(folders(), warn);
      // An edit of the text alone changes no contribution: the file is read when the command runs.
      const text = JSON.stringify(templates);
      if (text === contributed || scope.signal.aborted) return;
      contributed = text;
      scope.replace("templates", templates.map(toSlashCommand));
    };
    const following = followFolders({
      paths: folders,
      scan,
      onError: (error) => warn(`Cannot read prompt files: ${errorMessage(error)}`),
    });
    scope.own(() => following.close(), "prompt folders");
    const stopFollowing = scope.ctx.registry.onChange((diff) => {
      if (diff.touches("content folder")) following.rescan();
    });
    scope.own(stopFollowing, "prompts of extensions");
    await following.first;
  },
});

function toSlashCommand({ name, description, argumentHint, file }: Template): SlashDefinition {
  return defineSlashCommand({
    name,
    description,
    argumentHint,
    source: "file",
    concurrency: "serial",
    async run(_ctx, args) {
      let body: string;
      try {
        body = await templateBody(file);
      } catch (error) {
        throw new CommandError(`Cannot read prompt file "${file}": ${errorMessage(error)}`, "not_found", { cause: error });
      }
      const prompt = fillTemplate(body, args);
      if (prompt.trim() === "") throw new CommandError(`Prompt file "${file}" is empty: write the prompt into it`);
      return { prompt };
    },
  });
}
