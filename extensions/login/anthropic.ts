import { apiKeyFlow } from "./_api-key.ts";

export default apiKeyFlow({
  provider: "anthropic",
  displayName: "Anthropic",
  url: "https://platform.claude.com/settings/keys",
  placeholder: "sk-ant-…",
});
