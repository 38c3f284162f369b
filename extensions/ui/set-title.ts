import { defineUiMethod, z } from "mortise/extension";

/** Any of them turns title frames on (DESIGN §3). */
const SWITCHES = ["MORTISE_RPC_EMIT_TITLE", "VEYYON_RPC_EMIT_TITLE", "PI_RPC_EMIT_TITLE"];

const setTitle = defineUiMethod({
  name: "setTitle",
  mode: "notice",
  summary:
    "Sets the window title; sent only when MORTISE_RPC_EMIT_TITLE, VEYYON_RPC_EMIT_TITLE or PI_RPC_EMIT_TITLE asks for it.",
  params: z.object({ title: z.string() }),
  enabled: (env) => SWITCHES.some((name) => /^(1|true|yes|on)$/i.test(env[name]?.trim() ?? "")),
  source: "both",
  example: { title: "mortise: tests" },
});

declare module "mortise/extension" {
  interface UiMethods {
    setTitle: typeof setTitle;
  }
}

export default setTitle;
