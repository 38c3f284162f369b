// @ts-nocheck: written for pi, whose types are not installed here
// The other half: what arrives becomes a message of the conversation.
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";

export default function (pi: ExtensionAPI) {
  pi.events.on("pair:announced", (data) => {
    const { text } = data as { text: string };
    if (text === "fail") throw new Error("The listener failed");
    pi.sendMessage({ customType: "announcement", content: `Heard: ${text}`, display: true });
  });
}
