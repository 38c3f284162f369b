// The entry of a package: `mortise` in package.json names it, alone, in a list, or under `extensions`. Other files are imported as usual, and a change
// of any of them reloads the extension.
import { defineSlashCommand } from "mortise/extension";
import { countWords } from "./count-words.ts";

export default defineSlashCommand({
  name: "words",
  description: "Counts the words of a text",
  argumentHint: "<text>",
  run: (ctx, args) => ctx.output(`${countWords(args)} words`),
});
