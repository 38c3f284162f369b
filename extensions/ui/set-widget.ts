import { defineUiMethod, z } from "mortise/extension";

const setWidget = defineUiMethod({
  name: "setWidget",
  mode: "notice",
  summary: "Sets or clears a block of lines near the editor.",
  params: z.object({
    widgetKey: z.string(),
    widgetLines: z.array(z.string()).optional().describe("Absent clears the widget"),
    widgetPlacement: z.enum(["aboveEditor", "belowEditor"]).optional(),
  }),
  source: "both",
  example: { widgetKey: "plan", widgetLines: ["1. read", "2. write"], widgetPlacement: "aboveEditor" },
});

declare module "mortise/extension" {
  interface UiMethods {
    setWidget: typeof setWidget;
  }
}

export default setWidget;
