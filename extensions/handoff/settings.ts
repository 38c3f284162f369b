import { defineSetting, z } from "mortise/extension";

export const saveDocument = defineSetting({
  name: "handoff.save",
  summary: "Whether the account that a handoff writes is also kept as handoff-<time>.md beside the session it comes from",
  schema: z.boolean(),
  default: false,
  aliases: ["compaction.handoffSaveToDisk"],
});

export default saveDocument;
