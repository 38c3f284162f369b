// Subagents on the built daemon: the model service answers by which conversation asks, told apart by its first user text.
import type { FakeReply, FakeToolCall, RecordedRequest } from "../support/fake-provider.ts";
import type { DaemonProcess } from "../support/process.ts";
import { type Service, textOf, type useProcesses, wait } from "./_support.ts";

export interface Turn {
  /** First user text of the conversation. */
  readonly told: string;
  /** Its answers so far. */
  readonly turn: number;
  readonly request: RecordedRequest;
}

interface Body {
  messages: { role: string; content: unknown; tool_call_id?: string }[];
}

export const bodyOf = (request: RecordedRequest) => request.body as Body;

export function turnOf(request: RecordedRequest): Turn {
  const { messages } = bodyOf(request);
  const told = textOf(messages.find(({ role }) => role === "user"));
  return { told, turn: messages.filter(({ role }) => role === "assistant").length, request };
}

export const spawns = (...tasks: Record<string, unknown>[]): FakeReply => callsOf({ name: "task", arguments: { tasks } });
export const callsOf = (...toolCalls: FakeToolCall[]): FakeReply => ({ toolCalls });
export const bash = (command: string): FakeReply => callsOf({ name: "bash", arguments: { command } });

/** A daemon whose conversations are played by `play`; it sends all frames about subagents. */
export async function startPlay(
  use: ReturnType<typeof useProcesses>,
  play: (turn: Turn) => FakeReply | Promise<FakeReply>,
  options: { files?: Record<string, string>; env?: NodeJS.ProcessEnv } = {},
): Promise<{ daemon: DaemonProcess; service: Service }> {
  const service = await use.service();
  service.otherwise((request) => play(turnOf(request)));
  const daemon = use.start({
    model: service.daemon.model,
    env: { ...service.daemon.env, ...options.env },
    ...(options.files === undefined ? {} : { files: options.files }),
  });
  await wait(daemon, "available_commands_update");
  const subscribed = await daemon.request("set_subagent_subscription", { level: "events" });
  if (subscribed["success"] !== true) throw new Error(String(subscribed["error"]));
  return { daemon, service };
}

/** Ids of subagents by the status their life had last. */
export function lives(daemon: DaemonProcess): Map<string, string> {
  const found = new Map<string, string>();
  for (const frame of daemon.frames) {
    if (frame.type === "subagent_lifecycle") found.set(String(frame["id"]), String(frame["status"]));
  }
  return found;
}

export interface TaskMessage {
  text: string;
  isError: boolean;
  details: { results: { id: string; exitCode: number; output: string; error?: string; aborted?: boolean }[] };
}

/** The stored results of the attached conversation's `task` calls. */
export function taskResults(daemon: DaemonProcess): TaskMessage[] {
  return daemon.frames
    .filter((frame) => frame.type === "message_end")
    .map((frame) => frame["message"] as Record<string, unknown>)
    .filter((message) => message["role"] === "toolResult" && message["toolName"] === "task")
    .map((message) => ({
      text: textOf(message),
      isError: message["isError"] === true,
      details: message["details"] as TaskMessage["details"],
    }));
}
