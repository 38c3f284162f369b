import { defineUiMethod, z } from "mortise/extension";

const setEditorText = defineUiMethod({
  name: "set_editor_text",
  mode: "notice",
  summary: "Replaces the text of the host's prompt editor.",
  params: z.object({ text: z.string() }),
  source: "both",
  example: { text: "/model " },
});

declare module "mortise/extension" {
  interface UiMethods {
    set_editor_text: typeof setEditorText;
  }
}

export default setEditorText;
