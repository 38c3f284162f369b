import { CommandError, defineSlashCommand } from "mortise/extension";

/** By hand, when the automatic retries are off, used up or not for this kind of failure. */
export default defineSlashCommand({
  name: "retry",
  description: "Ask the model again after a turn that failed or was aborted",
  source: "builtin",
  async run(ctx, args) {
    if (args !== "") return ctx.output("Usage: /retry");
    try {
      await ctx.conversation.continue({ invocation: ctx.invocation });
    } catch (error) {
      if (!CommandError.is(error)) throw error;
      ctx.output(error.code === "busy" ? "A run is going: there is nothing to retry" : error.message);
    }
  },
});
