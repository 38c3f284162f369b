import {
  defineExtension,
  defineHook,
  defineSlashCommand,
  ProjectCode,
  sessionSwitched,
  Trust,
  watchPaths,
} from "mortise/extension";
import { Guardian } from "./_guardian.ts";

/** Later than the settings need to read their file: what waits there for a yes is asked of them. */
const SETTLE_MS = 250;
const FOLLOW_AFTER_MS = 100;
/** Longer than writing a file takes. */
const AGAIN_MS = 60;
const START_LIMIT_MS = 15_000;

export default defineExtension({
  name: "trust",
  setup(scope) {
    const { ctx } = scope;
    let timer: NodeJS.Timeout | undefined;
    let following: NodeJS.Timeout | undefined;
    const checkIn = (ms: number) => {
      clearTimeout(timer);
      timer = setTimeout(() => guardian.check(), ms);
      timer.unref();
    };
    const checkSoon = () => checkIn(SETTLE_MS);
    const guardian = new Guardian(ctx, scope.hot, () => checkIn(AGAIN_MS));
    scope.own(() => {
      clearTimeout(timer);
      clearTimeout(following);
    }, "look at the project's code");

    const followIn = (ms: number) => {
      clearTimeout(following);
      following = setTimeout(follow, ms);
      following.unref();
    };
    const follow = () => {
      const code = ctx.tryUse(ProjectCode);
      if (code === undefined) return;
      const watch = watchPaths(
        code.watched,
        () => {
          watch.update(code.watched);
          checkSoon();
        },
        { debounceMs: 60 },
      );
      scope.own(() => watch.close(), "watch of the project's code");
      const unsubscribe = code.onWritten(checkSoon);
      scope.own(unsubscribe, "writes of the agent");
      guardian.check();
    };
    scope.onLive?.((reason) => {
      if (reason === "reload") return follow();
      // Switched on later: then nobody tells of a start.
      followIn(START_LIMIT_MS);
    });
    scope.add(
      defineHook(sessionSwitched, ({ reason, conversation }) => {
        // What waits for the start comes first.
        if (reason === "startup") followIn(FOLLOW_AFTER_MS);
        guardian.tellElsewhere(conversation.cwd);
      }),
    );
    scope.add(
      defineSlashCommand({
        name: "trust",
        description: "Decide whether the code of this project may be used",
        argumentHint: "[off]",
        source: "builtin",
        // It waits for a person.
        concurrency: "concurrent",
        async run(slash, args) {
          const code = slash.use(ProjectCode);
          const { cwd } = slash.conversation;
          if (args === "off") {
            code.revoke();
            slash.output("The project is not trusted any more; its extensions are off");
          } else if (args !== "") {
            slash.output("Usage: /trust [off]");
          } else if (await guardian.ask()) {
            slash.output("The project is trusted");
          } else {
            const trusted = slash.tryUse(Trust)?.isTrusted(cwd) === true;
            slash.output(trusted ? "The project is trusted; nothing waits for a yes" : "The project is not trusted");
          }
        },
      }),
    );
  },
});
