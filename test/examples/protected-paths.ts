// Keeps the model's file tools away from paths that a setting names.
//
// It sits at the seal, the last gate: the arguments are frozen there, so nothing can change the path after it was looked at.
import { relative, resolve } from "node:path";
import { defineHook, defineSetting, toolSeal, z } from "mortise/extension";

const ProtectedPaths = defineSetting({
  name: "protectedPaths",
  schema: z.array(z.string()),
  default: [".env", ".git"],
  summary: "Files and folders under the working directory that the model's tools may not write",
  // A project may only loosen a guard when the person trusts the project.
  trustedOnly: true,
});

const gate = defineHook(toolSeal, (call, ctx) => {
  const { path } = call.args;
  if (!["write", "edit"].includes(call.toolName) || typeof path !== "string") return undefined;
  const wanted = relative(call.conversation.cwd, resolve(call.conversation.cwd, path));
  const hit = ctx.setting(ProtectedPaths).find((each) => wanted === each || wanted.startsWith(`${each}/`));
  if (hit !== undefined) return { block: true, reason: `"${hit}" is protected; ask the person to change it` };
});

export default [ProtectedPaths, gate];
