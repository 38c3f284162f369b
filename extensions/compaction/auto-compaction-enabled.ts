import { CompactionEnabled, defineStateField, z } from "mortise/extension";

export default defineStateField({
  name: "autoCompactionEnabled",
  schema: z.boolean(),
  read: (ctx) => ctx.setting(CompactionEnabled),
});
