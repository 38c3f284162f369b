// Login by a key that a person copies from a page.
import { CommandError, defineLoginFlow, type LoginFlowDefinition } from "mortise/extension";

export function apiKeyFlow(from: {
  provider: string;
  displayName: string;
  url: string;
  placeholder: string;
}): LoginFlowDefinition {
  return defineLoginFlow({
    name: from.provider,
    displayName: from.displayName,
    async run(ctx) {
      ctx.openUrl({ url: from.url, instructions: `Create or copy an API key of ${from.displayName}`, credential: "api-key" });
      const key = (
        await ctx.prompt({ title: `Paste the API key of ${from.displayName}:`, placeholder: from.placeholder })
      ).trim();
      if (key === "") throw new CommandError("No API key was entered", "cancelled");
      if (/\s/.test(key)) throw new CommandError("An API key has no spaces or line breaks: copy it again", "invalid_params");
      await ctx.verifyKey(key);
      return { type: "api_key", key };
    },
  });
}
