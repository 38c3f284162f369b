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
  async run(ctx) {
    return new Serialized(await stateJson(ctx)) as never;
  },
});

/** JSON of objects that were serialised before; fields promise not to change them. */
const known = new WeakMap<object, string>();

async function stateJson(ctx: Context): Promise<string> {
  const parts: string[] = [];
  for (const { definition, name } of ctx.registry.list("state field")) {
    const read: unknown = definition.read(ctx);
    const value = read instanceof Promise ? await read : read;
    if (value !== undefined) parts.push(`${JSON.stringify(name)}:${jsonOf(value)}`);
  }
  return `{${parts.join(",")}}`;
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
