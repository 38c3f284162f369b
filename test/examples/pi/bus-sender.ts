// @ts-nocheck: written for pi, whose types are not installed here
// One half of a pair that talks over the shared bus.
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";

export default function (pi: ExtensionAPI) {
  const { events } = pi;
  pi.registerCommand("announce", {
    description: "Sends a text over the bus",
    handler: async (args) => {
      events.emit("pair:announced", { text: args });
    },
  });
}
