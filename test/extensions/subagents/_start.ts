// A daemon whose model is played by functions: each conversation is recognised by the first thing it was told.
import type { ModelMessage, ProviderRequest } from "../../../core/extension.ts";
import { type StartOptions, startDaemon, type TestDaemon } from "../../../core/testing.ts";
import type { Frame } from "../../../protocol/frame.ts";
import { afterTest } from "../../support/clean-up.ts";
import {
  calls,
  done,
  type Gate,
  type Reply,
  type ScriptedProvider,
  says,
  scriptedModel,
  scriptedProvider,
} from "../../support/scripted-provider.ts";

export interface Turn {
  /** The first user text of the conversation. */
  readonly told: string;
  /** Model calls of this conversation before this one. */
  readonly turn: number;
  readonly request: ProviderRequest;
}
export type Play = (turn: Turn) => Reply;

/** Stopped after the test, if it was not before. */
export async function start(play: Play, options: StartOptions & { tools?: unknown[] } = {}) {
  const { tools = [], ...rest } = options;
  const provider: ScriptedProvider = scriptedProvider((request) => {
    const told = textOf(request.messages.find(({ role }) => role === "user"));
    const turn = request.messages.filter(({ role }) => role === "assistant").length;
    return play({ told, turn, request });
  });
  const daemon = await startDaemon({ ...rest, extensions: { scripted: [[provider.definition, ...tools]] } });
  afterTest(() => daemon.stop());
  daemon.daemon.conversations.attached.select({ model: scriptedModel });
  return { daemon, provider };
}

export function textOf(message: ModelMessage | undefined): string {
  if (message === undefined) return "";
  if (typeof message.content === "string") return message.content;
  return message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

/** An answer that starts subagents. */
export const spawns = (id: string, ...tasks: Record<string, unknown>[]): Reply => calls({ id, name: "task", args: { tasks } });
export { calls, says };

/** An answer that has begun and ends with the gate. */
export const held = (gate: Gate, text = "working"): Reply => [
  { type: "text_start", index: 0 },
  { type: "text_delta", index: 0, delta: text },
  gate,
  done(),
];

/** The parent starts what `tasks` says and then says what it got. */
export const parent =
  (tasks: Record<string, unknown>[], children: Play): Play =>
  (turn) => {
    if (turn.told !== "Go") return children(turn);
    return turn.turn === 0 ? spawns("c1", ...tasks) : says("done");
  };

export interface TaskDetails {
  results: {
    id: string;
    index: number;
    agent: string;
    exitCode: number;
    output: string;
    error?: string;
    aborted?: boolean;
    abortReason?: string;
    patchPath?: string;
    branchName?: string;
    outputPath?: string;
    truncated: boolean;
    requests: number;
    tokens: number;
    extractedToolData?: Record<string, unknown>;
  }[];
  totalDurationMs: number;
  progress?: { id: string; status: string }[];
  async?: { state: string; jobId: string; type: string };
}

/** The stored results of `task` calls in the frames, oldest first. */
export function taskResults(frames: readonly Frame[]): { text: string; isError: boolean; details: TaskDetails }[] {
  return frames
    .filter((frame) => frame.type === "message_end")
    .map((frame) => frame["message"] as Record<string, unknown>)
    .filter((message) => message["role"] === "toolResult" && message["toolName"] === "task")
    .map((message) => ({
      text: (message["content"] as { text: string }[])[0]?.text ?? "",
      isError: message["isError"] === true,
      details: message["details"] as TaskDetails,
    }));
}

/** Resolves when no subagent's conversation is live any more. */
export function noneLeft({ daemon }: TestDaemon): Promise<void> {
  const { conversations } = daemon;
  const left = () => conversations.list().some(({ isSubagent }) => isSubagent);
  return new Promise((resolve) => {
    if (!left()) return resolve();
    const off = conversations.onChange(() => {
      if (left()) return;
      off();
      resolve();
    });
  });
}
