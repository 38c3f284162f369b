import { contextBuilding, defineHook } from "mortise/extension";
import { withBlanks } from "./_blanking.ts";

export default defineHook(contextBuilding, (value) => {
  const messages = withBlanks(value.conversation, value.messages);
  return messages && { ...value, messages };
});
