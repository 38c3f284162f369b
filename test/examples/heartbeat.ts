// Set-up code, a timer, a frame of its own and a field of `get_state`. Everything that is started here belongs to this version of
// the extension and ends with it: the timer needs no clearing.
import { defineExtension, defineFrame, defineStateField, z } from "mortise/extension";

const heartbeat = defineFrame({
  name: "heartbeat",
  summary: "The daemon is alive.",
  scope: "process",
  fields: z.object({ beats: z.number() }),
  example: { beats: 3 },
});

export default defineExtension({
  name: "heartbeat",
  contributes: [heartbeat],
  setup(scope) {
    let beats = 0;
    scope.add(defineStateField({ name: "heartbeats", schema: z.number(), read: () => beats }));
    // Before the swap nothing of a version is live and it must not act; this runs right after it.
    scope.onLive?.(() => {
      setInterval(() => scope.ctx.send(heartbeat, { beats: ++beats }), 1000);
    });
    // For what the daemon cannot know of, such as a connection of a library.
    scope.own(() => scope.ctx.log.info("The heartbeat stops", { beats }));
  },
});
