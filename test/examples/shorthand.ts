// Changes what the person typed before it becomes a message, or deals with it so that no model is asked.
import { defineHook, input } from "mortise/extension";

const SHORT: Record<string, string> = {
  lgtm: "This looks good to me. Commit it.",
  wtf: "Explain what went wrong, then how to mend it.",
};

export default defineHook(input, async (value, ctx) => {
  if (value.text === "ping") {
    await ctx.ui.notify({ message: "pong" });
    return { ...value, handled: true };
  }
  const text = SHORT[value.text.trim().toLowerCase()];
  // Handlers of a chain each get what the one before returned; undefined changes nothing.
  return text === undefined ? undefined : { ...value, text };
});
