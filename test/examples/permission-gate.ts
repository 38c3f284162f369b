// Asks the person before the model runs a shell command that looks dangerous.
//
// A gate can only block: `undefined` means "nothing against it", never "allowed", so other gates still decide. If this code threw
// or hung, the call would be blocked as well.
import { defineHook, toolDecide } from "mortise/extension";

const DANGEROUS = [/\bsudo\b/, /\brm\s+-\w*r/, /\bgit\s+push\b.*--force/];

export default defineHook(toolDecide, async (call, ctx) => {
  if (call.toolName !== "bash") return undefined;
  const command = String(call.args["command"]);
  if (!DANGEROUS.some((pattern) => pattern.test(command))) return undefined;

  // Where nobody can answer, the dialog gives its fallback (`false`) at once: no answer means no. The time that the dialog is open
  // does not count against the hook's limit, and an abort takes the dialog off the screen.
  const allowed = await ctx.ui.confirm({ title: "Run this command?", message: command }, { signal: call.signal });
  if (!allowed) return { block: true, reason: "The person did not allow this command" };
});
