import { defineService } from "mortise/extension";
import { PromptFileCache, PromptFiles } from "./_files.ts";

export default defineService(PromptFiles, { create: () => new PromptFileCache() });
