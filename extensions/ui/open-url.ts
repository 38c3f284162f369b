import { defineUiMethod, z } from "mortise/extension";

const openUrl = defineUiMethod({
  name: "open_url",
  mode: "notice",
  summary: "Shows or opens a URL during a login.",
  params: z.object({
    url: z.string(),
    launchUrl: z.string().optional().describe("Short loopback redirect, better to copy"),
    instructions: z.string().optional(),
    credential: z
      .enum(["oauth", "api-key"])
      .optional()
      .describe("oauth: the host opens the URL; api-key: it shows where a key is obtained"),
  }),
  essential: true,
  source: "both",
  example: { url: "https://example.org/keys", credential: "api-key" },
});

declare module "mortise/extension" {
  interface UiMethods {
    open_url: typeof openUrl;
  }
}

export default openUrl;
