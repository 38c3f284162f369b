// @ts-nocheck: written for pi, whose types are not installed here
// Names the session, keeps a note in it and reads both back.
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";

export default function (pi: ExtensionAPI) {
  pi.registerFlag("prefix", { type: "string", default: "Work:", description: "In front of every name" });

  pi.registerCommand("name", {
    description: "Names the session, or tells its name",
    handler: async (args, ctx) => {
      if (args !== "") {
        pi.setSessionName(`${pi.getFlag("prefix")} ${args}`);
        pi.appendEntry("session-name", { named: args });
      }
      const notes = ctx.sessionManager
        .getEntries()
        .filter((entry) => entry.type === "custom" && entry.customType === "session-name");
      ctx.ui.notify(
        `${pi.getSessionName() ?? "no name"}; ${notes.length} notes; branch of ${ctx.sessionManager.getBranch().length}`,
        "info",
      );
    },
  });
}
