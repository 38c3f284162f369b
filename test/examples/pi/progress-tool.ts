// @ts-nocheck: written for pi, whose types are not installed here
// A tool that streams its progress and carries details.

import { defineTool, type ExtensionAPI } from "@mariozechner/pi-coding-agent";
import { Type } from "@sinclair/typebox";

const countdown = defineTool({
  name: "countdown",
  label: "Countdown",
  description: "Counts down from a number",
  promptSnippet: "Count down from a number",
  promptGuidelines: ["Use countdown only when asked to count"],
  parameters: Type.Object({
    from: Type.Integer({ minimum: 1, maximum: 100, description: "Where to start" }),
    label: Type.Optional(Type.String()),
  }),
  async execute(toolCallId, params, signal, onUpdate, ctx) {
    for (let left = params.from; left > 0; left--) {
      if (signal?.aborted) throw new Error("Stopped");
      onUpdate?.({ content: [{ type: "text", text: `${left}…` }], details: { left } });
      await new Promise((resolve) => setImmediate(resolve));
    }
    return {
      content: [{ type: "text", text: `${params.label ?? "Liftoff"} in ${ctx.cwd}` }],
      details: { from: params.from, toolCallId },
    };
  },
});

export default function (pi: ExtensionAPI) {
  pi.registerTool(countdown);
}
