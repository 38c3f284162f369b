// @ts-nocheck: written for pi, whose types are not installed here
// Shows in the status line how many turns there were.
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";

export default function (pi: ExtensionAPI) {
  let turns = 0;
  pi.on("session_start", (_event, ctx) => {
    ctx.ui.setStatus("turns", ctx.ui.theme.fg("dim", "Ready"));
  });
  pi.on("turn_start", (event, ctx) => {
    turns++;
    ctx.ui.setStatus("turns", `${ctx.ui.theme.fg("accent", "●")} Turn ${turns} (${event.turnIndex})`);
  });
  pi.on("agent_end", (event, ctx) => {
    ctx.ui.setStatus("turns", `Done: ${event.messages.length} messages`);
  });
}
