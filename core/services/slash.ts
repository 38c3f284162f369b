// Slash commands: text that starts with `/` in a prompt.
import { z } from "zod";
import type { ImageContent } from "../../protocol/content.ts";
import type { Context } from "../kernel/context.ts";
import { type Definition, define, type MaybePromise } from "../kernel/definition.ts";
import { createToken } from "../kernel/services.ts";

/** What a slash command's `run` may answer: nothing (local only), or text that goes on to the model. */
export type SlashOutcome = void | { prompt: string };

export interface SlashContext extends Context {
  /** Sends a `command_output` frame. */
  output(text: string): void;
  /** What came with the prompt besides its text. */
  readonly images?: readonly ImageContent[] | undefined;
  /** How the host wants to have queued what comes of it while a run is going; undefined when it did not say. */
  readonly delivery?: "steer" | "followUp" | undefined;
}

export interface SlashDefinition extends Definition<"slash command"> {
  /** Shown in listings; one sentence. */
  readonly description: string;
  readonly aliases?: readonly string[] | undefined;
  readonly argumentHint?: string | undefined;
  readonly subcommands?: readonly { name: string; description?: string; usage?: string }[] | undefined;
  readonly source?: "builtin" | "skill" | "extension" | "custom" | "mcp_prompt" | "file" | undefined;
  /** `serial` ones run in the lane and answer once; extensions' are concurrent unless they say otherwise (DESIGN §9). */
  readonly concurrency?: "serial" | "concurrent" | undefined;
  /** An extension may take a built-in's name only with this. */
  readonly override?: boolean | undefined;
  /** `args` is the text after the name, trimmed. */
  run(ctx: SlashContext, args: string): MaybePromise<SlashOutcome>;
}

export function defineSlashCommand(command: Omit<SlashDefinition, "kind">): SlashDefinition {
  return define({ kind: "slash command", ...command });
}

declare module "../kernel/definition.ts" {
  interface Kinds {
    "slash command": SlashDefinition;
  }
}

/** One line of the listing; names carry no leading slash (protocol-facts §1.13). */
export const SlashEntry = z
  .object({
    name: z.string(),
    aliases: z.array(z.string()).optional(),
    description: z.string().optional(),
    input: z.object({ hint: z.string().optional() }).optional(),
    subcommands: z
      .array(z.object({ name: z.string(), description: z.string().optional(), usage: z.string().optional() }))
      .optional(),
    source: z.enum(["builtin", "skill", "extension", "custom", "mcp_prompt", "file"]),
  })
  .meta({ id: "SlashEntry" });
export type SlashEntry = z.infer<typeof SlashEntry>;

export interface SlashMatch {
  readonly definition: SlashDefinition;
  /** Id of the extension that answers. */
  readonly owner: string;
  /** As typed: a name or an alias. */
  readonly name: string;
  readonly args: string;
}

export interface SlashCommands {
  /** Parses `/name args` and `/name:args`; undefined when no command answers the name. */
  match(text: string): SlashMatch | undefined;
  /** The listing of `get_available_commands`. Do not change it. */
  listing(): readonly SlashEntry[];
  /**
   * Sends `available_commands_update` when the listing differs from the last one sent, or always with `force`. After the first
   * call it happens by itself with every swap that changes the listing.
   */
  announce(force?: boolean): void;
}

export const SlashCommands = createToken<SlashCommands>("slash commands");
