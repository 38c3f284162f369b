// Rules against one answer of the model, delta by delta.
import type { AnswerDelta } from "mortise/extension";
import type { InterruptMode, Rule } from "./_rule.ts";
import { StreamText, Unescaper } from "./_stream-text.ts";

/** A rule that matched. */
export interface Match {
  readonly rule: Rule;
  /** Cut the answer off; otherwise it is told later. */
  readonly interrupts: boolean;
  /** The call it matched in. */
  readonly toolCallId: string | undefined;
}

export interface WatchOptions {
  readonly rules: readonly Rule[];
  readonly interruptMode: InterruptMode;
  readonly cwd: string;
  /** A test took this long, in milliseconds. The rule is not asked again in this answer. */
  tooSlow(rule: Rule, ms: number): void;
}

/** A rule whose test takes longer is left out: it holds up the whole daemon. */
const SLOW_MS = 100;
const MAX_PATHS = 64;
/** Arguments of tools that name a file. */
const PATH_ARGUMENT = /"(?:path|file_path|filePath|file|notebook_path)"\s*:\s*"((?:[^"\\]|\\.)*)"/g;

interface Block {
  readonly delta: AnswerDelta;
  readonly text: StreamText;
  /** Of a tool call: as it came, and without escapes in `text`. */
  readonly raw: StreamText | undefined;
  readonly unescaper: Unescaper | undefined;
  readonly paths: Set<string>;
  /** Rules that could match here and have not. */
  open: Rule[];
  /** Rules that matched and wait for the file of the call to be named. */
  readonly waiting: Set<Rule>;
}

export class RuleWatch {
  readonly #options: WatchOptions;
  readonly #done = new Set<Rule>();
  readonly #blocks = new Map<number, Block>();

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  /** What matches with this delta. Each rule matches once in an answer. */
  take(delta: AnswerDelta): Match[] {
    let block = this.#blocks.get(delta.index);
    const before = block === undefined ? this.#endProse() : [];
    if (block === undefined) {
      block = this.#open(delta);
      this.#blocks.set(delta.index, block);
    }
    if (block.open.length + block.waiting.size === 0) return before;
    block.text.append(block.unescaper?.take(delta.delta) ?? delta.delta);
    if (block.raw !== undefined && block.paths.size < MAX_PATHS) {
      block.raw.append(delta.delta);
      for (const path of block.raw.groups(PATH_ARGUMENT)) block.paths.add(unquoted(path));
    }
    return [...before, ...this.#check(block, false)];
  }

  /** The answer is complete: what waited for more text may match now. */
  end(): Match[] {
    return [...this.#blocks.values()].flatMap((block) => this.#check(block, true));
  }

  /** Text is complete when the next block begins; calls may grow side by side. */
  #endProse(): Match[] {
    return [...this.#blocks.values()].flatMap((block) => (block.delta.kind === "tool" ? [] : this.#check(block, true)));
  }

  #open(delta: AnswerDelta): Block {
    const isTool = delta.kind === "tool";
    const open = this.#options.rules.filter((rule) => !this.#done.has(rule) && scopesFor(rule, delta).length > 0);
    return {
      delta,
      text: new StreamText(),
      raw: isTool ? new StreamText() : undefined,
      unescaper: isTool ? new Unescaper() : undefined,
      paths: new Set(),
      open,
      waiting: new Set(),
    };
  }

  #check(block: Block, isFinal: boolean): Match[] {
    const found: Match[] = [];
    for (const rule of block.open) {
      if (!this.#test(rule, block.text, isFinal)) continue;
      block.waiting.add(rule);
    }
    if (block.waiting.size > 0) block.open = block.open.filter((rule) => !block.waiting.has(rule));
    for (const rule of block.waiting) {
      if (this.#done.has(rule) || !this.#holds(rule, block)) continue;
      block.waiting.delete(rule);
      this.#done.add(rule);
      const mode = rule.payload.interruptMode ?? this.#options.interruptMode;
      const isTool = block.delta.kind === "tool";
      found.push({
        rule,
        interrupts: mode === "always" || mode === (isTool ? "tool-only" : "prose-only"),
        toolCallId: block.delta.kind === "tool" ? block.delta.toolCallId : undefined,
      });
    }
    return found;
  }

  #test(rule: Rule, text: StreamText, isFinal: boolean): boolean {
    if (this.#done.has(rule)) return false;
    const start = performance.now();
    const matched = rule.patterns.some((pattern) => text.matches(pattern, isFinal));
    const ms = performance.now() - start;
    if (ms > SLOW_MS) {
      this.#done.add(rule);
      this.#options.tooSlow(rule, ms);
      return false;
    }
    return matched;
  }

  #holds(rule: Rule, block: Block): boolean {
    const { cwd } = this.#options;
    return scopesFor(rule, block.delta).some(({ fits }) => !fits || [...block.paths].some((path) => fits(path, cwd)));
  }
}

function scopesFor(rule: Rule, delta: AnswerDelta) {
  return rule.scopes.filter(
    ({ kind, tool }) => kind === delta.kind && (tool === undefined || (delta.kind === "tool" && tool === delta.toolName)),
  );
}

function unquoted(text: string): string {
  return new Unescaper().take(text);
}
