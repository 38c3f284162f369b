// The built daemon with the strict model service: what the model calls, what the host and the next request get.
import { expect } from "vitest";
import type { Frame } from "../../protocol/frame.ts";
import { PATIENCE_MS, request, textOf, useProcesses, wait } from "../cases/_support.ts";
import { type FakeReply, type FakeServer, startFakeAnthropic } from "../support/fake-anthropic.ts";
import type { DaemonProcess, ProcessOptions } from "../support/process.ts";

export type Call = readonly [name: string, args: Record<string, unknown>];

export interface CallResult {
  readonly name: string;
  readonly text: string;
  readonly isError: boolean;
  readonly details: Record<string, unknown>;
  readonly updates: readonly Frame[];
}

export interface Rig {
  readonly daemon: DaemonProcess;
  readonly fake: FakeServer;
  /** Every byte of stdout. */
  bytes(): Buffer;
  /** One answer with these calls, then a closing text; the results in the order of the calls. */
  turn(...calls: Call[]): Promise<CallResult[]>;
  /** Like `turn` for one call. */
  call(name: string, args: Record<string, unknown>): Promise<CallResult>;
  /** Sends a prompt whose answer makes these calls, and does not wait. Gives the number of frames before it. */
  begin(...calls: Call[]): number;
  /** The results of calls since a number of frames. */
  results(after: number): CallResult[];
  /** The text of tool results and everything else in the last request. */
  lastRequest(): string;
}

/** Call once in a test file. No request may have been refused when a test is over. */
export function useRigs() {
  const { start, later } = useProcesses();
  const open = async (options: ProcessOptions & { fake?: FakeServer } = {}): Promise<Rig> => {
    const fake = options.fake ?? (await startFakeAnthropic());
    if (options.fake === undefined) later(() => fake.close());
    later(() => expect(fake.requests.map((each) => each.refusal).filter((refusal) => refusal !== undefined)).toEqual([]));
    const daemon = start({
      model: "anthropic/claude-haiku-4-5",
      ...options,
      env: { ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: fake.url, ...options.env },
    });
    const chunks: Buffer[] = [];
    daemon.child.stdout?.on("data", (chunk: Buffer) => chunks.push(chunk));
    let serial = 0;
    const begin = (...calls: Call[]) => {
      const toolCalls = calls.map(([name, args]) => ({ id: `toolu_${process.pid}_${++serial}`, name, arguments: args }));
      fake.script({ toolCalls }, { text: "Done" });
      const after = daemon.frames.length;
      daemon.send({ type: "prompt", message: "go" });
      return after;
    };
    const rig: Rig = {
      daemon,
      fake,
      bytes: () => Buffer.concat(chunks),
      begin,
      results: (after) => resultsOf(daemon.frames.slice(after)),
      async turn(...calls) {
        const after = begin(...calls);
        const end = await wait(daemon, "agent_end", after);
        return resultsOf(daemon.frames.slice(after, daemon.frames.indexOf(end) + 1));
      },
      async call(name, args) {
        const [result] = await rig.turn([name, args]);
        if (result === undefined) throw new Error(`${name} gave no result`);
        return result;
      },
      lastRequest: () => JSON.stringify(fake.requests.at(-1)?.body),
    };
    return rig;
  };
  return { open, start, later };
}

function resultsOf(frames: readonly Frame[]): CallResult[] {
  const ids = frames.filter((frame) => frame.type === "tool_execution_start").map((frame) => frame["toolCallId"]);
  return ids.flatMap((id) => {
    const end = frames.find((frame) => frame.type === "tool_execution_end" && frame["toolCallId"] === id);
    if (end === undefined) return [];
    const result = end["result"] as { details?: Record<string, unknown> };
    return [
      {
        name: String(end["toolName"]),
        text: textOf(result),
        isError: end["isError"] === true,
        details: result.details ?? {},
        updates: frames.filter((frame) => frame.type === "tool_execution_update" && frame["toolCallId"] === id),
      },
    ];
  });
}

/** Prompts with a plain text answer. */
export async function say(rig: Rig, message: string, reply: FakeReply = { text: "Fine" }): Promise<Frame[]> {
  rig.fake.script(reply);
  const after = rig.daemon.frames.length;
  const response = await request(rig.daemon, "prompt", { message });
  expect(response).toMatchObject({ success: true });
  const end = await wait(rig.daemon, "agent_end", after);
  return rig.daemon.frames.slice(after, rig.daemon.frames.indexOf(end) + 1);
}

export const patience = { timeout: 2 * PATIENCE_MS };
