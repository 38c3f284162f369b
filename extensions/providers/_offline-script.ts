// The replies of offline/script: the YAML file in MORTISE_OFFLINE_SCRIPT, and how far each conversation has got in it.
//
//   replies:
//     - text: Looking
//       toolCalls: [{ name: read, arguments: { path: a.txt } }]
//     - error: { kind: retryable, message: Overloaded, status: 529 }
//     - text: Done
import { readFile, stat } from "node:fs/promises";
import { isAbsolute, resolve } from "node:path";
import { createToken, errorMessage, ProviderError, z } from "mortise/extension";

const ScriptReply = z.strictObject({
  text: z.string().optional(),
  thinking: z.string().optional(),
  toolCalls: z
    .array(
      z.strictObject({
        id: z.string().min(1).optional(),
        name: z.string().min(1),
        arguments: z.record(z.string(), z.unknown()).default({}),
        incomplete: z.boolean().optional().describe("The arguments break off in the middle and the call never ends"),
      }),
    )
    .optional(),
  error: z
    .strictObject({
      kind: z.enum(["retryable", "overflow", "auth", "quota", "fatal", "aborted"]).default("fatal"),
      message: z.string().min(1),
      status: z.number().int().optional(),
      retryAfterMs: z.number().nonnegative().optional(),
    })
    .optional(),
  delayMs: z.number().nonnegative().optional().describe("Wait before every delta"),
  chunk: z.number().int().positive().optional().describe("Characters per delta; words when absent"),
  stop: z.enum(["stop", "length", "toolUse"]).optional(),
});
export type ScriptReply = z.infer<typeof ScriptReply>;

const ScriptFile = z.union([
  z.strictObject({ replies: z.array(ScriptReply) }),
  z.array(ScriptReply).transform((replies) => ({ replies })),
]);

export interface OfflineScripts {
  /** The next reply of this conversation. @throws {ProviderError} kind fatal: no file, a bad file, or no reply left. */
  next(sessionId: string, env: NodeJS.ProcessEnv, cwd: string): Promise<ScriptReply>;
}

export const OfflineScripts = createToken<OfflineScripts>("offline scripts");

export function createOfflineScripts(): OfflineScripts {
  const positions = new Map<string, number>();
  let cached: { key: string; replies: ScriptReply[] } | undefined;

  async function load(path: string): Promise<ScriptReply[]> {
    const { mtimeNs, size } = await stat(path, { bigint: true }).catch((error: unknown) => fail(path, error));
    const key = `${path}\0${mtimeNs}\0${size}`;
    if (cached?.key !== key) cached = { key, replies: await parse(path) };
    return cached.replies;
  }

  return {
    async next(sessionId, env, cwd) {
      const name = env["MORTISE_OFFLINE_SCRIPT"];
      if (!name) {
        throw new ProviderError(
          "The model offline/script plays a file of replies: set MORTISE_OFFLINE_SCRIPT to its path, or use offline/echo",
          "fatal",
        );
      }
      const path = isAbsolute(name) ? name : resolve(cwd, name);
      const replies = await load(path);
      const position = positions.get(sessionId) ?? 0;
      const reply = replies[position];
      if (reply === undefined) {
        throw new ProviderError(
          `The offline script "${path}" has ${replies.length} replies and this is request ${position + 1}: add one to its "replies"`,
          "fatal",
        );
      }
      positions.set(sessionId, position + 1);
      return reply;
    },
  };
}

async function parse(path: string): Promise<ScriptReply[]> {
  const { parse: parseYaml } = await import("yaml");
  let raw: unknown;
  try {
    raw = parseYaml(await readFile(path, "utf8"));
  } catch (error) {
    return fail(path, error);
  }
  const parsed = ScriptFile.safeParse(raw);
  if (!parsed.success) fail(path, z.prettifyError(parsed.error).replaceAll("\n", " "));
  return parsed.data.replies;
}

function fail(path: string, error: unknown): never {
  throw new ProviderError(`Cannot play the offline script "${path}": ${errorMessage(error)}`, "fatal");
}
