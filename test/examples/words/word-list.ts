// Provides a service: one implementation per daemon that other extensions find by its token.
import { defineService } from "mortise/extension";
import { Words } from "./_words.ts";

export default defineService(Words, {
  // Runs once per version, at the first use. What it starts belongs to this version and ends with it.
  create: () => {
    const list = ["anchor", "bellows", "mortise", "tenon"];
    return { all: () => list };
  },
});
