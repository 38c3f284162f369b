// Depends on the service next door. `requires` says: whenever another version of `words` takes over, activate me again, so that what
// I computed from it is computed anew. A mere `ctx.use(Words)` looks the service up at each call and needs no such thing.
import { createToken, defineService, defineTool, z } from "mortise/extension";
import { Words } from "./_words.ts";

const WordIndex = createToken<ReadonlyMap<string, string>>("word index");

const index = defineService(WordIndex, {
  requires: [Words],
  create: (ctx) =>
    new Map(
      ctx
        .use(Words)
        .all()
        .map((word) => [word.slice(0, 1), word]),
    ),
});

const tool = defineTool({
  name: "word_for",
  description: "Gives a word for a letter.",
  params: z.object({ letter: z.string().length(1) }),
  run: (ctx, { letter }) => ctx.use(WordIndex).get(letter) ?? `No word starts with ${letter}`,
});

export default [index, tool];
