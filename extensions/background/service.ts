import { BackgroundConversations, defineService } from "mortise/extension";
import { BackgroundTable } from "./_table.ts";
import { Background } from "./_token.ts";

export default [
  defineService(Background, { create: (ctx) => new BackgroundTable(ctx) }),
  defineService(BackgroundConversations, { create: (ctx) => ctx.use(Background) }),
];
