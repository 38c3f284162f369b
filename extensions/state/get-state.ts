import { type Context, defineCommand, Serialized, z } from "mortise/extension";

/** Assembles the fields that extensions contribute. */
export default defineCommand({
  name: "get_state",
  group: "State",
  summary: "Everything a host shows about the attached conversation.",
  concurrency: "serial",
  source: "both",
  params: z.object({}),
  result: z.looseObject({
    thinkingLevel: z.string().optional(),
    isStreaming: z.boolean().optional(),
    sessionId: z.string().optional(),
  }),
  example: { params: {}, result: { isStreaming: false, sessionId: "0193…", messageCount: 0 } },
  run(ctx) {
    const json = stateJson(ctx);
    return (json instanceof Promise ? json.then((text) => new Serialized(text)) : new Serialized(json)) as never;
  },
});

/** JSON of objects that were serialised before; fields promise not to change them. */
const known = new WeakMap<object, string>();
/** What promises came to that a field gave before: the same promise is not waited for again. */
const settled = new WeakMap<Promise<unknown>, { value: unknown }>();

/** Synchronous once every field's value is known: a host that polls costs no turn of the event loop. */
function stateJson(ctx: Context): string | Promise<string> {
  const parts: string[] = [];
  const waiting: Promise<unknown>[] = [];
  for (const { definition, name } of ctx.registry.list("state field")) {
    const read: unknown = definition.read(ctx);
    const done = read instanceof Promise ? settled.get(read) : { value: read };
    if (done === undefined) waiting.push(remember(read as Promise<unknown>));
    else if (done.value !== undefined) parts.push(`${JSON.stringify(name)}:${jsonOf(done.value)}`);
  }
  if (waiting.length > 0) return Promise.all(waiting).then(() => stateJsonNow(ctx));
  return `{${parts.join(",")}}`;
}

async function stateJsonNow(ctx: Context): Promise<string> {
  const parts: string[] = [];
  for (const { definition, name } of ctx.registry.list("state field")) {
    const value: unknown = await definition.read(ctx);
    if (value !== undefined) parts.push(`${JSON.stringify(name)}:${jsonOf(value)}`);
  }
  return `{${parts.join(",")}}`;
}

async function remember(promise: Promise<unknown>): Promise<void> {
  settled.set(promise, { value: await promise });
}

function jsonOf(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  let json = known.get(value);
  if (json === undefined) {
    json = JSON.stringify(value);
    known.set(value, json);
  }
  return json;
}
