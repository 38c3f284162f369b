// Skills of the user and of the project: told to the model by name, read on demand, run by people with `/skill:name`.
import {
  contentFolders,
  contributedFolders,
  defineExtension,
  defineService,
  errorMessage,
  followFolders,
  followService,
  Launch,
  Settings,
  type Skill,
  Skills,
  warnOnce,
} from "mortise/extension";
import { toSlashCommand } from "./_command.ts";
import { Enabled, SkillCommands } from "./_settings.ts";
import { SkillStore } from "./_store.ts";

export default defineExtension({
  name: "skills",
  contributes: [Enabled],
  async setup(scope) {
    const { ctx } = scope;
    const warn = warnOnce(ctx.log);
    const own = contentFolders(ctx.use(Launch), "skills");
    const contributed = () => contributedFolders(ctx, "skills").map((path) => ({ path, origin: "extension" as const }));
    const store = new SkillStore(() => [...own, ...contributed()], warn);
    const contribute = () => {
      const enabled = ctx.setting(Enabled) && ctx.setting(SkillCommands);
      scope.replace("skills", enabled ? store.list().map(toSlashCommand) : []);
    };
    const following = followFolders({
      paths: () => store.watched,
      async scan() {
        if (await store.scan()) contribute();
      },
      onError: (error) => warn(`Cannot read skills: ${errorMessage(error)}`),
    });
    scope.own(() => following.close(), "skill folders");
    const stopFollowing = ctx.registry.onChange((diff) => {
      if (diff.touches("content folder")) following.rescan();
    });
    scope.own(stopFollowing, "skills of extensions");
    const none: readonly Skill[] = [];
    scope.add(
      defineService(Skills, {
        create: () => ({
          list: () => (ctx.setting(Enabled) ? store.list() : none),
          find: (name) => (ctx.setting(Enabled) ? store.find(name) : undefined),
        }),
      }),
    );
    await following.first;
    // Settings answer only when they are live: those that came in time change what goes live with the same swap.
    followService(scope, Settings, (settings) => {
      if (!(ctx.setting(Enabled) && ctx.setting(SkillCommands))) contribute();
      return settings.onChange((paths) => {
        if (paths.includes(Enabled.name) || paths.includes(SkillCommands.name)) contribute();
      });
    });
  },
});
