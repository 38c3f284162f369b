// `user_bash`: a handler may answer the host's `bash` command itself, or say how it is run.
import { type Context, overrideCommand } from "mortise/extension";
import { call } from "./_events.ts";
import type { Handler, Runtime } from "./_runtime.ts";
import { isObject } from "./_schema.ts";

interface Params {
  readonly command: string;
}

interface BashData {
  readonly output: string;
  readonly exitCode?: number;
  readonly cancelled: boolean;
  readonly truncated: boolean;
  readonly [field: string]: unknown;
}

/** The override of the wire command; without an answer the built-in runs. */
export function userBashOverride(runtime: Runtime, handler: Handler) {
  return overrideCommand<Params>("bash", {
    run: async (ctx, params, next) => {
      const { cwd } = ctx.conversation;
      const answer = await call(runtime, ctx, handler, {
        type: "user_bash",
        command: params.command,
        excludeFromContext: false,
        cwd,
      });
      const data = answer === undefined ? undefined : await answered(runtime, ctx, params.command, cwd, answer);
      if (data === undefined) return next();
      record(ctx, params.command, data);
      return data;
    },
  });
}

async function answered(
  runtime: Runtime,
  ctx: Context,
  command: string,
  cwd: string,
  answer: Record<string, unknown>,
): Promise<BashData | undefined> {
  if (isObject(answer["result"])) return toBashData(answer["result"]);
  const operations = answer["operations"];
  if (!isObject(operations) || typeof operations["exec"] !== "function") return undefined;
  const chunks: Buffer[] = [];
  const onData = (data: unknown): void => {
    chunks.push(Buffer.isBuffer(data) ? data : Buffer.from(String(data)));
  };
  const { exec } = operations;
  const done: unknown = await runtime.run(ctx, () => exec.call(operations, command, cwd, { onData, signal: ctx.signal }));
  const exitCode = isObject(done) ? done["exitCode"] : undefined;
  return toBashData({ output: Buffer.concat(chunks).toString("utf8"), exitCode, cancelled: ctx.signal.aborted });
}

/** The command's data, with the counts that the families' results lack. */
function toBashData(result: Record<string, unknown>): BashData {
  const output = typeof result["output"] === "string" ? result["output"] : "";
  const lines = output === "" ? 0 : output.split("\n").length;
  const bytes = Buffer.byteLength(output);
  return {
    totalLines: lines,
    totalBytes: bytes,
    outputLines: lines,
    outputBytes: bytes,
    output,
    ...(typeof result["exitCode"] === "number" ? { exitCode: result["exitCode"] } : {}),
    cancelled: result["cancelled"] === true,
    truncated: result["truncated"] === true,
    ...(typeof result["fullOutputPath"] === "string" ? { fullOutputPath: result["fullOutputPath"] } : {}),
  };
}

function record(ctx: Context, command: string, data: BashData): void {
  ctx.conversation.recordBash({
    role: "bashExecution",
    command,
    output: data.output,
    ...(data.exitCode === undefined ? {} : { exitCode: data.exitCode }),
    cancelled: data.cancelled,
    truncated: data.truncated,
    timestamp: Date.now(),
  });
}
