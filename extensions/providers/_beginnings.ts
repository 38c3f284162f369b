// What the requests of a conversation have in common stays as bytes from one to the next: a turn costs what is new, not what is there.
import { type Model, type ModelMessage, type ProviderRequest, Slices } from "mortise/extension";
import type { Renaming } from "./_content.ts";

/** Messages that are one thing to a service, so that nothing may come between them. */
export interface Group {
  /** In order and without a gap: every message of a conversation is in some group. */
  readonly messages: readonly ModelMessage[];
  /** `Renamings.mark()` behind its last message. */
  readonly mark: Mark;
}

type Mark = readonly [names: number, ids: number];

/** What names and ids are called in a request, in the order in which they were met. */
export class Renamings {
  readonly names: Renaming;
  readonly ids: Renaming;

  constructor(names: Renaming, ids: Renaming) {
    this.names = names;
    this.ids = ids;
  }
  mark(): Mark {
    return [this.names.size, this.ids.size];
  }
  backTo([names, ids]: Mark): void {
    this.names.forgetFrom(names);
    this.ids.forgetFrom(ids);
  }
}

/** How one service writes a conversation. */
export interface Language<G extends Group> {
  /** What it depends on beside the model and the messages. */
  readonly key: string;
  /** The first names, e.g. those of the tools. */
  start(): Renamings;
  /** In slices of time. */
  group(messages: readonly ModelMessage[], renamings: Renamings): Promise<G[]>;
  /** The messages of a group as JSON, separated by commas. */
  write(group: G): string;
  /** How many of the groups stay as they are whatever comes behind the last one; negative when it takes more of them to tell. */
  settled(groups: readonly G[]): number;
}

export interface Told<G extends Group> {
  /** JSON of the messages before `groups`. */
  readonly parts: readonly Uint8Array[];
  /** What may look different in the next request. */
  readonly groups: readonly G[];
  readonly renamings: Renamings;
}

/** What is settled is added to the last piece until that has so many bytes. */
const CHUNK_BYTES = 32 * 1024;
/** Larger groups hold pictures: a second copy would cost more memory than it saves time. */
const MAX_KEPT_CHARS = 64 * 1024;
/** Conversations that begin with the same message, e.g. copies. */
const MAX_COPIES = 4;

/** Groups that are settled, up to the message `next`, which came behind them. */
interface Chunk {
  readonly from: number;
  readonly end: number;
  readonly next: ModelMessage | undefined;
  readonly mark: Mark;
  /** Undefined when they are too large to be kept. */
  readonly bytes: Uint8Array | undefined;
}

const COMMA = Buffer.from(",");

function isBlank({ bytes }: Chunk): boolean {
  return bytes?.length === 0;
}

class Beginning {
  /** Those of the chunks. */
  readonly messages: ModelMessage[] = [];
  readonly chunks: Chunk[] = [];
  readonly model: Model;
  readonly key: string;
  readonly renamings: Renamings;
  readonly #start: Mark;
  isBusy = false;

  constructor(model: Model, key: string, renamings: Renamings) {
    this.model = model;
    this.key = key;
    this.renamings = renamings;
    this.#start = renamings.mark();
  }

  get end(): number {
    return this.chunks.at(-1)?.end ?? 0;
  }

  /** Leaves the chunks that these messages begin with. */
  agreeWith(messages: readonly ModelMessage[]): void {
    let same = 0;
    while (same < this.messages.length && this.messages[same] === messages[same]) same++;
    while (this.end > same || (this.end > 0 && messages[this.end] !== this.chunks.at(-1)?.next)) this.chunks.pop();
    this.#cut();
  }

  /** Takes what follows the last chunk, into that one where both are small. */
  add(chunk: Chunk, messages: readonly ModelMessage[]): void {
    for (const message of messages.slice(chunk.from, chunk.end)) this.messages.push(message);
    const last = this.chunks.at(-1);
    if (last?.bytes === undefined || chunk.bytes === undefined || last.bytes.length >= CHUNK_BYTES) {
      this.chunks.push(chunk);
      return;
    }
    const bytes = Buffer.concat([last.bytes, ...(isBlank(last) || isBlank(chunk) ? [] : [COMMA]), chunk.bytes]);
    this.chunks[this.chunks.length - 1] = { ...chunk, from: last.from, bytes };
  }

  /** Forgets the last chunk; false when there is none. */
  shrink(): boolean {
    const isShorter = this.chunks.pop() !== undefined;
    if (isShorter) this.#cut();
    return isShorter;
  }

  #cut(): void {
    this.messages.length = this.end;
    this.renamings.backTo(this.chunks.at(-1)?.mark ?? this.#start);
  }
}

export class Beginnings<G extends Group> {
  /** By first message, then by conversation. Messages are never changed once they are in context. */
  readonly #known = new WeakMap<ModelMessage, Map<string, Beginning>>();
  /** The first message of what is kept of a conversation: after a compaction it is another one, and the old bytes go. */
  readonly #firsts = new Map<string, WeakRef<ModelMessage>>();

  /** The messages of a request in the language of a service. */
  async tell(request: ProviderRequest, language: Language<G>): Promise<Told<G>> {
    const beginning = this.#find(request, language);
    beginning.isBusy = true;
    try {
      beginning.agreeWith(request.messages);
      let groups = await language.group(request.messages.slice(beginning.end), beginning.renamings);
      while (language.settled(groups) < 0 && beginning.shrink()) {
        groups = await language.group(request.messages.slice(beginning.end), beginning.renamings);
      }
      const from = beginning.end;
      await keep(beginning, groups, request.messages, language);
      if (beginning.end > 0) this.#keepOnly(request);
      let passed = from;
      const open = groups.filter((group) => {
        passed += group.messages.length;
        return passed > beginning.end;
      });
      const { names, ids } = beginning.renamings;
      return { parts: await partsOf(beginning, language), groups: open, renamings: new Renamings(names.copy(), ids) };
    } finally {
      beginning.isBusy = false;
    }
  }

  #keepOnly({ messages: [first], sessionId = "" }: ProviderRequest): void {
    const before = this.#firsts.get(sessionId)?.deref();
    if (first === undefined || before === first) return;
    if (before !== undefined) this.#known.get(before)?.delete(sessionId);
    for (const [id, message] of this.#firsts) if (message.deref() === undefined) this.#firsts.delete(id);
    this.#firsts.set(sessionId, new WeakRef(first));
  }

  #find({ messages, model, sessionId = "" }: ProviderRequest, language: Language<G>): Beginning {
    const make = () => new Beginning(model, language.key, language.start());
    const first = messages[0];
    if (first === undefined) return make();
    const copies = this.#known.get(first) ?? new Map<string, Beginning>();
    this.#known.set(first, copies);
    const known = copies.get(sessionId);
    // Another request of the conversation is being made right now; this one is made from nothing.
    if (known?.isBusy) return make();
    if (known?.model === model && known.key === language.key) return known;
    const made = make();
    copies.delete(sessionId);
    copies.set(sessionId, made);
    const [oldest] = copies.keys();
    if (copies.size > MAX_COPIES && oldest !== undefined) copies.delete(oldest);
    return made;
  }
}

/** Takes the settled groups into chunks. */
async function keep<G extends Group>(
  beginning: Beginning,
  groups: readonly G[],
  messages: readonly ModelMessage[],
  language: Language<G>,
): Promise<void> {
  const slices = new Slices();
  const settled = groups.slice(0, Math.max(language.settled(groups), 0));
  let end = beginning.end;
  let texts: string[] = [];
  let chars = 0;
  const close = (mark: Mark, isKept: boolean) => {
    const bytes = isKept ? Buffer.from(texts.join(",")) : undefined;
    beginning.add({ from: beginning.end, end, next: messages[end], mark, bytes }, messages);
    texts = [];
    chars = 0;
  };
  let before: G | undefined;
  for (const group of settled) {
    if (slices.due) await slices.rest();
    const text = language.write(group);
    const isLarge = text.length > MAX_KEPT_CHARS;
    if (isLarge && before !== undefined && end > beginning.end) close(before.mark, true);
    end += group.messages.length;
    if (text !== "") texts.push(text);
    chars += text.length;
    if (isLarge || chars >= CHUNK_BYTES) close(group.mark, !isLarge);
    before = group;
  }
  if (before !== undefined && end > beginning.end) close(before.mark, true);
}

async function partsOf<G extends Group>(
  { chunks, messages, renamings }: Beginning,
  language: Language<G>,
): Promise<Uint8Array[]> {
  const parts: Uint8Array[] = [];
  for (const { from, end, bytes } of chunks) {
    // Every name and id in it is known by now.
    const groups = bytes === undefined ? await language.group(messages.slice(from, end), renamings) : [];
    const part = bytes ?? Buffer.from(groups.map((group) => language.write(group)).join(","));
    if (part.length > 0) parts.push(part);
  }
  return parts;
}

/** A request body with its messages, JSON already, between what stands before and behind them. */
export function bodyOf(before: object, messages: readonly (string | Uint8Array)[], behind: object): Uint8Array {
  const list = messages.flatMap((part, index) => [
    ...(index === 0 ? [] : [COMMA]),
    typeof part === "string" ? Buffer.from(part) : part,
  ]);
  const head = Buffer.from(`${JSON.stringify(before).slice(0, -1)},"messages":[`);
  return Buffer.concat([head, ...list, Buffer.from(`],${JSON.stringify(behind).slice(1)}`)]);
}
