import { defineUiMethod, z } from "mortise/extension";

const notify = defineUiMethod({
  name: "notify",
  mode: "notice",
  summary: "Shows a message.",
  params: z.object({ message: z.string(), notifyType: z.enum(["info", "warning", "error"]).optional() }),
  source: "both",
  example: { message: "Saved", notifyType: "info" },
});

declare module "mortise/extension" {
  interface UiMethods {
    notify: typeof notify;
  }
}

export default notify;
