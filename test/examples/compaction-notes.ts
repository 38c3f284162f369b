// Makes the summary of a compaction itself, without asking the model: the list of what the person asked for. Another answer would be
// `{ cancel: true }`; no answer leaves the built-in summary alone.
import { defineHook, messageOf, sessionBeforeCompact, sessionCompacted } from "mortise/extension";

const own = defineHook(sessionBeforeCompact, (plan) => {
  // Only when it is asked for by hand, with these words: "/compact notes".
  if (plan.customInstructions !== "notes") return undefined;
  const asked = plan.entries.flatMap((entry) => {
    const message = messageOf(entry);
    return message?.role === "user" ? [`- ${textOf(message.content)}`] : [];
  });
  const earlier = plan.previousSummary === undefined ? [] : [plan.previousSummary];
  return { result: { summary: [...earlier, "The person asked for:", ...asked].join("\n"), details: plan.details } };
});

const told = defineHook(sessionCompacted, async ({ result, fromExtension }, ctx) => {
  const by = fromExtension ? "an extension" : "the model";
  await ctx.ui.notify({ message: `Compacted by ${by}: ${result.tokensBefore} tokens before` });
});

export default [own, told];

function textOf(content: string | readonly { type: string; text?: string }[]): string {
  return typeof content === "string" ? content : content.map((block) => block.text ?? "").join(" ");
}
