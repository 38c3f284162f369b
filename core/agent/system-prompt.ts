// The system prompt as a list of blocks: what is stable across turns and projects, the environment, then what was appended.
// Extensions contribute sections; the same sections give the same bytes, so that providers' caches hold.
import { runCall } from "../kernel/attribution.ts";
import type { Context } from "../kernel/context.ts";
import { type Definition, define, type MaybePromise } from "../kernel/definition.ts";
import type { Scope } from "../kernel/scope.ts";
import { cleanText } from "../session/repair.ts";
import type { AgentEnvironment, LaunchOptions } from "./environment.ts";

export interface PromptSectionDefinition extends Definition<"prompt section"> {
  /** Place within its block; lower comes first. */
  readonly order: number;
  /** `stable` text goes to the first block and must not depend on the project, the date or the machine. */
  readonly stable: boolean;
  /** When it renders text, that is the whole first block and other stable sections are left out, e.g. a SYSTEM.md. */
  readonly replaces?: boolean | undefined;
  /** A block of its own after the environment, e.g. an APPEND_SYSTEM.md. */
  readonly append?: boolean | undefined;
  /** The text without a heading of the prompt's own; undefined or blank leaves the section out. */
  render(ctx: Context): MaybePromise<string | undefined>;
}

/** Defines a part of the system prompt. `ctx.conversation` is the conversation it is made for. */
export function definePromptSection(section: Omit<PromptSectionDefinition, "kind">): PromptSectionDefinition {
  return define({ kind: "prompt section", ...section });
}

declare module "../kernel/definition.ts" {
  interface Kinds {
    "prompt section": PromptSectionDefinition;
  }
}

/** How long one section may take: a prompt waits for all of them. */
const RENDER_LIMIT_MS = 10_000;

/** The rendered prompt of one conversation. */
export class PromptCache {
  readonly #env: AgentEnvironment;
  readonly #context: () => Context;
  readonly #fixed: readonly string[] | undefined;
  #known: { version: number; blocks: Promise<string[]> } | undefined;

  /** @param options.fixed the whole prompt, when it does not come from sections. */
  constructor(options: { env: AgentEnvironment; context: () => Context; fixed?: readonly string[] | undefined }) {
    this.#env = options.env;
    this.#context = options.context;
    this.#fixed = options.fixed;
  }

  /** The same promise until `invalidate` or a change of the registry, so that whoever polls can tell. */
  blocks(): Promise<string[]> {
    if (this.#fixed !== undefined) return Promise.resolve([...this.#fixed]);
    const { version } = this.#env.registry;
    if (this.#known?.version !== version) {
      this.#known = { version, blocks: renderSystemPrompt(this.#context(), this.#env.launch) };
    }
    return this.#known.blocks;
  }

  /** The next reader renders the prompt again. */
  invalidate(): void {
    this.#known = undefined;
  }
}

/** Renders all sections now. One that throws, takes too long or gives no text is reported and left out. */
export async function renderSystemPrompt(ctx: Context, launch: LaunchOptions): Promise<string[]> {
  const sections = [...ctx.registry.list("prompt section")].sort(
    (a, b) => a.definition.order - b.definition.order || (a.name < b.name ? -1 : 1),
  );
  // Together: most of them look at files, and none needs another's text.
  const texts = await Promise.all(sections.map(({ definition, scope, name }) => renderSection(ctx, definition, scope, name)));
  const stable: string[] = [];
  const environment: string[] = [];
  const appended: string[] = [];
  let replacement = launch.systemPrompt;
  for (const [index, { definition }] of sections.entries()) {
    if ((definition.stable || definition.replaces === true) && replacement !== undefined) continue;
    const text = texts[index];
    if (text === undefined || text.trim() === "") continue;
    if (definition.replaces === true) {
      replacement = text.trim();
      continue;
    }
    (definition.append === true ? appended : definition.stable ? stable : environment).push(text.trim());
  }
  const blocks = [
    replacement ?? stable.join("\n\n"),
    environment.join("\n\n"),
    ...appended,
    ...(launch.appendSystemPrompt ?? []),
  ];
  // Half of a character anywhere in it, and services refuse the request.
  return blocks.filter((block) => block.trim() !== "").map(cleanText);
}

async function renderSection(
  ctx: Context,
  definition: PromptSectionDefinition,
  scope: Scope,
  name: string,
): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined;
  try {
    const sectionCtx = ctx.derive({ scope });
    const rendered = runCall({ scope, locals: ctx.locals }, () => definition.render(sectionCtx));
    const inTime = (waiting: Promise<unknown>) => {
      const limit = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error(`It took longer than ${RENDER_LIMIT_MS} ms`)), RENDER_LIMIT_MS);
      });
      return Promise.race([waiting, limit]);
    };
    const text: unknown = rendered instanceof Promise ? await inTime(rendered) : rendered;
    if (text === undefined || text === null || typeof text === "string") return text ?? undefined;
    throw new Error(`It must give a text, found ${typeof text}`);
  } catch (error) {
    ctx.reportError(scope.owner.id, `prompt section ${name}`, error);
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}
