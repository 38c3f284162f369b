// @ts-nocheck: written for pi, whose types are not installed here
// Asks before a shell command that deletes, or gains rights. Without a host that shows dialogs such commands are refused.
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";

const RISKY = [/\brm\s+(-\w*r|--recursive)/, /\bsudo\b/, /\bchmod\b.*777/];

export default function (pi: ExtensionAPI) {
  pi.on("tool_call", async (event, ctx) => {
    if (event.toolName !== "bash") return undefined;
    const command = String(event.input.command);
    if (!RISKY.some((pattern) => pattern.test(command))) return undefined;
    if (!ctx.hasUI) return { block: true, reason: "Nobody is there to confirm this command" };
    const choice = await ctx.ui.select(`Allow this command?\n\n  ${command}`, ["Yes", "No"]);
    return choice === "Yes" ? undefined : { block: true, reason: "Refused by the user" };
  });
}
