import { defineUiMethod, z } from "mortise/extension";

const cancel = defineUiMethod({
  name: "cancel",
  mode: "notice",
  summary: "Tells the host to dismiss an open dialog.",
  params: z.object({ targetId: z.string().describe("Id of the dialog") }),
  source: "both",
  example: { targetId: "ui_7" },
});

declare module "mortise/extension" {
  interface UiMethods {
    cancel: typeof cancel;
  }
}

export default cancel;
