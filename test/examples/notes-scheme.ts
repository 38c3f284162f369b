// note://NAME: small texts that belong to the conversation. The model reads and writes them with its ordinary file tools.
//
// The notes live in a slot: typed state per conversation. A persistent slot is written into the session file, so it is back when
// the session is opened again and follows its branches. Never keep such state in a module variable: a reload drops it.
import { type Context, defineSlot, defineUriScheme, ToolError, z } from "mortise/extension";

const Notes = defineSlot({
  name: "notes",
  schema: z.record(z.string(), z.string()),
  initial: (): Record<string, string> => ({}),
  persist: true,
});

const scheme = defineUriScheme({
  name: "note",
  description: "Notes of this conversation, e.g. note://plan",
  async read(url, ctx) {
    const name = nameIn(url);
    const content = notes(ctx).get()[name];
    if (content === undefined) throw new ToolError(`There is no note "${name}": write ${url} first`);
    return { content, contentType: "text/plain", immutable: false };
  },
  async write(url, content, ctx) {
    const name = nameIn(url);
    notes(ctx).update((all) => ({ ...all, [name]: content }));
  },
});

export default [Notes, scheme];

const notes = (ctx: Context) => ctx.conversation.slot(Notes);

function nameIn(url: string): string {
  const name = url.slice("note://".length);
  if (!/^[\w.-]+$/.test(name)) throw new ToolError(`"${url}" is no note: expected note://NAME with letters, digits, . and -`);
  return name;
}
