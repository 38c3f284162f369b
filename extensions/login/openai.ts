import { apiKeyFlow } from "./_api-key.ts";

export default apiKeyFlow({
  provider: "openai",
  displayName: "OpenAI",
  url: "https://platform.openai.com/api-keys",
  placeholder: "sk-…",
});
