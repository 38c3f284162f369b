// When the person in front of the host is asked about the project's code: at start and whenever such code turns up. The question
// holds nothing: code starts off, and is added after a yes (DESIGN §3 "project code").
import { type Context, errorMessage, notice, ProjectCode, Settings, type TrustCase, z } from "mortise/extension";

const LISTED = 10;

const Memory = z.object({ told: z.array(z.string()), declined: z.boolean() });

/** What a later version of this extension must not bring up again. */
interface Hot {
  data: unknown;
}

export class Guardian {
  readonly #ctx: Context;
  readonly #hot: Hot;
  /** Cases that were told or asked; the same one is not brought up twice. */
  readonly #told: Set<string>;
  readonly #asked = new Set<string>();
  readonly #lookAgain: () => void;
  /** The case of the last look. */
  #seen: string | undefined;
  #declined: boolean;
  #asking: Promise<boolean> | undefined;
  #withdraw: AbortController | undefined;

  /** `lookAgain` calls `check` in a moment. */
  constructor(ctx: Context, hot: Hot, lookAgain: () => void) {
    this.#ctx = ctx;
    this.#hot = hot;
    this.#lookAgain = lookAgain;
    const before = Memory.safeParse(hot.data).data;
    this.#told = new Set(before?.told);
    this.#declined = before?.declined ?? false;
  }

  #remember(): void {
    this.#hot.data = { told: [...this.#told], declined: this.#declined };
  }

  /** Looks at what is there and tells or asks about it, once. */
  check(): void {
    const found = this.#pending();
    // Nothing is left to ask about: a question that is open is taken back.
    if (found === undefined) return this.#withdraw?.abort();
    // News must look the same twice: what is just being written would be told and asked about in each of its stages.
    if (found.key !== this.#seen && !this.#told.has(found.key)) {
      this.#seen = found.key;
      return this.#lookAgain();
    }
    this.#tell(found);
    const isOff = this.#ctx.mode !== "rpc-ui" || !this.#ctx.hasUI;
    // A no to the project holds until the daemon ends; what the agent writes later is another matter each time.
    if (isOff || this.#asking !== undefined || this.#asked.has(found.key)) return;
    if (this.#declined && found.reason !== "written") return;
    void this.ask(found);
  }

  /** Tells, once for a directory, what of a session's own directory is not used because the daemon was started in another. */
  tellElsewhere(dir: string): void {
    const files = this.#ctx.tryUse(ProjectCode)?.elsewhere(dir) ?? [];
    if (files.length === 0 || !this.#isNews(`elsewhere ${dir}`)) return;
    const message = `Not used, because the daemon was started in another directory: ${listed(files)} of ${dir}`;
    this.#ctx.send(notice, { level: "warning", message: `${message}. Start it there to use them`, source: "trust" });
  }

  /** Asks now, also after a no. Never rejects; false when there was no yes. */
  async ask(found = this.#pending()): Promise<boolean> {
    if (found === undefined) return false;
    this.#asking ??= this.#ask(found).finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #ask(found: TrustCase): Promise<boolean> {
    this.#asked.add(found.key);
    this.#withdraw = new AbortController();
    const signal = AbortSignal.any([this.#ctx.scope.signal, this.#withdraw.signal]);
    const answer = await this.#ctx
      .use(ProjectCode)
      .ask(this.#hasSettings(), signal)
      .catch((error: unknown) => {
        // stdin was closed: nobody is there to say yes.
        this.#ctx.log.debug(`The question about the project's code ended: ${errorMessage(error)}`);
        return "no" as const;
      });
    if (signal.aborted) return false;
    if (found.reason !== "written") this.#declined = answer === "no";
    this.#remember();
    // Files that came or changed while the question was read.
    setImmediate(() => this.check());
    return answer === "yes";
  }

  #pending(): TrustCase | undefined {
    if (this.#ctx.scope.signal.aborted) return undefined;
    return this.#ctx.tryUse(ProjectCode)?.pending(this.#hasSettings());
  }

  #hasSettings(): boolean {
    return (this.#ctx.tryUse(Settings)?.withheld?.().length ?? 0) > 0;
  }

  /** True the first time a key is told. */
  #isNews(key: string): boolean {
    if (this.#told.has(key)) return false;
    this.#told.add(key);
    this.#remember();
    return true;
  }

  #tell({ reason, files, key }: TrustCase): void {
    if (!this.#isNews(key)) return;
    const names = listed(files);
    const message =
      reason === "written"
        ? `Not used yet, because the agent wrote it and nobody said yes to it: ${names}`
        : `Not used, because the project is ${reason === "new" ? "not trusted" : "no longer as it was trusted"}: ${names}`;
    const later = reason === "written" ? "It is used from the next start with --trust on" : "Start with --trust to use it";
    const way = this.#ctx.mode === "rpc-ui" && this.#ctx.hasUI ? "Answer the question, or type /trust" : later;
    this.#ctx.send(notice, { level: "warning", message: `${message}. ${way}`, source: "trust" });
  }
}

function listed(files: readonly string[]): string {
  const more = files.length > LISTED ? ` and ${files.length - LISTED} more` : "";
  return `${files.slice(0, LISTED).join(", ")}${more}`;
}
