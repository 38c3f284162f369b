import { defineUiMethod, z } from "mortise/extension";

const confirm = defineUiMethod({
  name: "confirm",
  mode: "dialog",
  summary: "Asks a yes-or-no question.",
  params: z.object({ title: z.string(), message: z.string() }),
  read: (answer) => (typeof answer.confirmed === "boolean" ? { value: answer.confirmed } : undefined),
  fallback: false,
  source: "both",
  example: { title: "Confirm", message: "Continue?", timeout: 30000 },
});

declare module "mortise/extension" {
  interface UiMethods {
    confirm: typeof confirm;
  }
}

export default confirm;
