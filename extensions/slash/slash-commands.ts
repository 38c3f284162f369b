import {
  type Context,
  defineExtension,
  defineService,
  type SlashCommands as Service,
  SlashCommands,
  type SlashEntry,
} from "mortise/extension";
import { SlashTable } from "./_table.ts";
import availableCommandsUpdate from "./available-commands-update.ts";

export default [
  defineService(SlashCommands, { create: (ctx) => new Commands(ctx) }),
  defineExtension({
    name: "slash commands",
    setup(scope) {
      // What was sent before is forgotten with the version that sent it: a new one tells the whole list and follows it from there.
      scope.onLive?.((reason) => {
        if (reason === "reload") scope.ctx.use(SlashCommands).announce();
      });
    },
  }),
];

class Commands implements Service {
  readonly #ctx: Context;
  #table: SlashTable | undefined;
  /** The last listing that was sent, as text; undefined before the first `announce`. */
  #sent: string | undefined;

  constructor(ctx: Context) {
    this.#ctx = ctx;
    const unsubscribe = ctx.registry.onChange((diff) => {
      const concerned = [...diff.added, ...diff.removed].some((entry) => entry.kind === "slash command");
      if (!concerned && !diff.touches("slash command")) return;
      this.#table = undefined;
      if (this.#sent !== undefined) this.announce();
    });
    ctx.scope.own(unsubscribe, "slash commands");
  }

  match(text: string) {
    return this.#current().match(text);
  }

  listing(): readonly SlashEntry[] {
    return this.#current().listing();
  }

  announce(force = false): void {
    const commands = this.listing();
    const text = JSON.stringify(commands);
    if (!force && text === this.#sent) return;
    this.#sent = text;
    this.#ctx.send(availableCommandsUpdate, { commands: [...commands] });
  }

  #current(): SlashTable {
    this.#table ??= new SlashTable(this.#ctx.registry);
    return this.#table;
  }
}
