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

/** How long a field may take; the command holds the lane meanwhile. */
const FIELD_LIMIT_MS = 2_000;

/** JSON of objects that were serialised before; fields promise not to change them. */
const known = new WeakMap<object, string>();
/** What promises came to that a field gave before: the same promise is not waited for again. */
const settled = new WeakMap<Promise<unknown>, { value: unknown }>();

const fieldsOf = (ctx: Context) => ctx.registry.list("state field");
type Field = ReturnType<typeof fieldsOf>[number];

/** Synchronous once every field's value is known: a host that polls costs no turn of the event loop. */
function stateJson(ctx: Context): string | Promise<string> {
  const parts: string[] = [];
  const waiting: Promise<Field | undefined>[] = [];
  for (const field of fieldsOf(ctx)) {
    const read = readField(ctx, field);
    const done = read instanceof Promise ? settled.get(read) : { value: read };
    if (done === undefined)
      waiting.push(remember(ctx, field, read as Promise<unknown>).then(({ ok }) => (ok ? undefined : field)));
    else addPart(parts, ctx, field, done.value);
  }
  if (waiting.length > 0) return Promise.all(waiting).then((broken) => stateJsonNow(ctx, new Set(broken)));
  return `{${parts.join(",")}}`;
}

/** All of them as they are now, but for those that failed just before. */
async function stateJsonNow(ctx: Context, broken: ReadonlySet<Field | undefined>): Promise<string> {
  const parts: string[] = [];
  const fields = fieldsOf(ctx).filter((field) => !broken.has(field));
  const read = fields.map(async (field) => {
    const value = readField(ctx, field);
    return { field, value: value instanceof Promise ? (await remember(ctx, field, value)).value : value };
  });
  for (const { field, value } of await Promise.all(read)) addPart(parts, ctx, field, value);
  return `{${parts.join(",")}}`;
}

/** A field that fails is left out and told of: the host needs the others. */
function failed(ctx: Context, { name, scope }: Field, error: unknown): undefined {
  ctx.reportError(scope.owner.id, `state field ${name}`, error);
}

function readField(ctx: Context, field: Field): unknown {
  try {
    return field.definition.read(ctx);
  } catch (error) {
    return failed(ctx, field, error);
  }
}

async function remember(ctx: Context, field: Field, promise: Promise<unknown>): Promise<{ ok: boolean; value?: unknown }> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`It took longer than ${FIELD_LIMIT_MS} ms`)), FIELD_LIMIT_MS);
  });
  try {
    const value = await Promise.race([promise, limit]);
    settled.set(promise, { value });
    return { ok: true, value };
  } catch (error) {
    settled.set(promise, { value: undefined });
    failed(ctx, field, error);
    return { ok: false };
  } finally {
    clearTimeout(timer);
  }
}

function addPart(parts: string[], ctx: Context, field: Field, value: unknown): void {
  if (value === undefined) return;
  try {
    parts.push(`${JSON.stringify(field.name)}:${jsonOf(value)}`);
  } catch (error) {
    failed(ctx, field, error);
  }
}

/** @throws {Error} for what JSON cannot hold. */
function jsonOf(value: unknown): string {
  const isObject = typeof value === "object" && value !== null;
  const before = isObject ? known.get(value) : undefined;
  if (before !== undefined) return before;
  const json: string | undefined = JSON.stringify(value);
  if (json === undefined) throw new Error(`Its value is a ${typeof value}, which JSON cannot hold`);
  if (isObject) known.set(value, json);
  return json;
}
