import { Conversations, defineHook, dialogWithheld, sessionBeforeSwitch } from "mortise/extension";
import { Background } from "./_token.ts";

/** A file that a conversation being stopped still writes is opened when that has let go of it. */
const released = defineHook(sessionBeforeSwitch, async ({ target }, ctx) => {
  if (target !== undefined) await ctx.use(Background).whenReleased(target);
});

/** Nobody sees the dialog of a background conversation: it takes its default, and the host is told. */
const told = defineHook(dialogWithheld, async ({ conversation, method, params }, ctx) => {
  // The conversation is entered into the table in the same turn in which the host turns away from it.
  await Promise.resolve();
  const root = ctx.use(Conversations).rootOf(conversation);
  if (!ctx.use(Background).has(root)) return;
  const title = typeof params["title"] === "string" && params["title"] !== "" ? ` "${params["title"]}"` : "";
  const name = root.log.name ?? root.log.id;
  const { attached } = ctx.use(Conversations);
  await ctx.derive({ locals: { conversation: attached } }).ui.call("notify", {
    message: `The background conversation ${name} opened a dialog (${method}${title}); it took the default answer`,
    notifyType: "warning",
  });
});

export default [released, told];
