// @ts-nocheck: written for pi, whose types are not installed here
// Short forms in prompts: "?quick …" asks for a brief answer, "ping" is answered without the model.
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";

export default function (pi: ExtensionAPI) {
  pi.on("input", (event, ctx) => {
    if (event.source === "extension") return { action: "continue" };
    if (event.text.startsWith("?quick ")) return { action: "transform", text: `Answer briefly: ${event.text.slice(7)}` };
    if (event.text.trim() === "ping") {
      ctx.ui.notify("pong", "info");
      return { action: "handled" };
    }
    return { action: "continue" };
  });
}
