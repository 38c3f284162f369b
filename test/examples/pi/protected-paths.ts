// @ts-nocheck: written for pi, whose types are not installed here
// Refuses writes below certain paths, and rewrites one harmless path.
import { type ExtensionAPI, isToolCallEventType } from "@earendil-works/pi-coding-agent";

const PROTECTED = [".env", ".git/", "node_modules/"];

export default function (pi: ExtensionAPI) {
  pi.on("tool_call", (event, ctx) => {
    if (!isToolCallEventType("write", event) && !isToolCallEventType("edit", event)) return;
    const path = event.input.path;
    if (PROTECTED.some((part) => path.includes(part))) {
      ctx.ui.notify(`Blocked a write to ${path}`, "warning");
      return { block: true, reason: `Path "${path}" is protected` };
    }
    if (path.startsWith("tmp:")) event.input.path = `scratch-${path.slice(4)}`;
  });
}
