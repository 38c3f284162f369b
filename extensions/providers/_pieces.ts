// Parts of a request body as JSON, made once per message: a turn costs what is new and not what is there.
import { type Model, type ModelMessage, Slices } from "mortise/extension";
import type { Renaming } from "./_content.ts";

/** Larger ones hold pictures: a second copy would cost more memory than it saves time. */
const MAX_KEPT_CHARS = 64 * 1024;

interface Piece {
  readonly model: Model;
  readonly key: string;
  readonly json: string;
}

/** By message: messages are never changed once they are in context, and the same object comes with every request. */
export class Pieces {
  readonly #known = new WeakMap<ModelMessage, Piece>();

  /** The JSON that `make` gives, made again when the model or `key` is another: what else it depends on. */
  of(message: ModelMessage, model: Model, key: string, make: () => string): string {
    const known = this.#known.get(message);
    if (known !== undefined && known.model === model && known.key === key) return known.json;
    const json = make();
    if (json.length <= MAX_KEPT_CHARS) this.#known.set(message, { model, key, json });
    return json;
  }
}

/** What the ids and names of a message are called in this request. Takes them into the renamings, in their order. */
export function renamed(message: ModelMessage, names: Renaming, ids: Renaming): string {
  if (message.role === "toolResult") return ids.to(message.toolCallId);
  if (message.role === "user") return "";
  let key = "";
  for (const block of message.content) {
    if (block.type === "toolCall") key += `${ids.to(block.id)} ${names.to(block.name)} `;
  }
  return key;
}

const MESSAGES_AT_ONCE = 200;

/**
 * A request body with its messages, each as JSON already, between what stands before and behind them. Bytes, because a text of
 * megabytes would be turned into some in one go.
 */
export async function bodyOf(before: object, messages: readonly string[], behind: object): Promise<Uint8Array> {
  const slices = new Slices();
  const parts = [Buffer.from(`${JSON.stringify(before).slice(0, -1)},"messages":[`)];
  for (let from = 0; from < messages.length; from += MESSAGES_AT_ONCE) {
    const text = messages.slice(from, from + MESSAGES_AT_ONCE).join(",");
    parts.push(Buffer.from(from === 0 ? text : `,${text}`));
    if (slices.due) await slices.rest();
  }
  parts.push(Buffer.from(`],${JSON.stringify(behind).slice(1)}`));
  return Buffer.concat(parts);
}
