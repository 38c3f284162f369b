import { defineUiMethod, z } from "mortise/extension";

const setStatus = defineUiMethod({
  name: "setStatus",
  mode: "notice",
  summary: "Sets or clears one entry of the status line.",
  params: z.object({ statusKey: z.string(), statusText: z.string().optional().describe("Absent clears the entry") }),
  source: "both",
  example: { statusKey: "tests", statusText: "12 passed" },
});

declare module "mortise/extension" {
  interface UiMethods {
    setStatus: typeof setStatus;
  }
}

export default setStatus;
