import { defineService, Subagents } from "mortise/extension";
import { MergeQueue, Merges } from "./_isolation.ts";
import { Spawner } from "./_spawner.ts";

export default [
  defineService(Subagents, { create: (ctx) => new Spawner(ctx) }),
  defineService(Merges, { create: () => new MergeQueue() }),
];
