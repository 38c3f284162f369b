import { defineHook, providerRequest } from "mortise/extension";
import { Assignment } from "./_assignment.ts";

/** An agent that forgot its answer three times can do nothing but hand it in, where the service can force a call. */
export default defineHook(providerRequest, (value) => {
  const { conversation, request } = value;
  if (!conversation.isSubagent || request.toolChoice !== undefined) return undefined;
  const { isLastCall, answer } = conversation.slot(Assignment).get();
  if (!isLastCall || answer !== undefined) return undefined;
  return { ...value, request: { ...request, toolChoice: { tool: "yield" } } };
});
