// Skills of the user and of the project: told to the model by name, read on demand, run by people with `/skill:name`.
import { join } from "node:path";
import { defineExtension, defineService, errorMessage, Launch, Settings, type Skill, Skills } from "mortise/extension";
import { toSlashCommand } from "./_command.ts";
import { Enabled, SkillCommands } from "./_settings.ts";
import { SkillStore } from "./_store.ts";

export default defineExtension({
  name: "skills",
  contributes: [Enabled],
  async setup(scope) {
    const { ctx } = scope;
    const { home, cwd } = ctx.use(Launch);
    const told = new Set<string>();
    const warn = (message: string) => {
      if (told.has(message)) return;
      told.add(message);
      ctx.log.warn(message);
    };
    const store = new SkillStore(
      [
        { path: join(cwd, ".mortise", "skills"), origin: "project" },
        { path: join(home, "skills"), origin: "user" },
      ],
      warn,
    );
    const contribute = () => {
      const enabled = ctx.setting(Enabled) && ctx.setting(SkillCommands);
      scope.replace("skills", enabled ? store.list().map(toSlashCommand) : []);
    };
    await store.scan();
    const none: readonly Skill[] = [];
    scope.add(
      defineService(Skills, {
        create: () => ({
          list: () => (ctx.setting(Enabled) ? store.list() : none),
          find: (name) => (ctx.setting(Enabled) ? store.find(name) : undefined),
        }),
      }),
    );
    contribute();
    const close = store.watch(contribute, (error) => warn(`Cannot read skills: ${errorMessage(error)}`));
    scope.own(close, "skill folders");
    scope.onLive?.(() => {
      // Settings answer only now: they go live with the same swap.
      if (!(ctx.setting(Enabled) && ctx.setting(SkillCommands))) contribute();
      const stop = ctx.tryUse(Settings)?.onChange((paths) => {
        if (paths.includes(Enabled.name) || paths.includes(SkillCommands.name)) contribute();
      });
      if (stop !== undefined) scope.own(stop, "skill settings");
    });
  },
});
