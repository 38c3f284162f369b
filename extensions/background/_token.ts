import { createToken } from "mortise/extension";
import type { BackgroundTable } from "./_table.ts";

/** The table behind `BackgroundConversations`, with what only this folder needs of it. */
export const Background = createToken<BackgroundTable>("background conversations table");
