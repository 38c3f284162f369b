// A conversation over a real kernel that is not started, with the scripted provider and an in-memory (or real) log.
import { Conversation } from "../../../core/agent/conversation.ts";
import type { AgentEnvironment, LaunchOptions } from "../../../core/agent/environment.ts";
import type { SettingDefinition } from "../../../core/extension.ts";
import type { AnyDefinition } from "../../../core/kernel/definition.ts";
import { Scope } from "../../../core/kernel/scope.ts";
import { SessionLog } from "../../../core/session/log.ts";
import type { Frame } from "../../../protocol/frame.ts";
import type { AgentMessage } from "../../../protocol/message.ts";
import { bareKernel } from "../../support/kernel.ts";
import { type ScriptedProvider, scriptedModel } from "../../support/scripted-provider.ts";

export interface HarnessOptions {
  provider: ScriptedProvider;
  definitions?: readonly AnyDefinition[];
  log?: SessionLog;
  launch?: LaunchOptions;
  noModel?: boolean;
  /** The clock, in Unix milliseconds. */
  now?: () => number;
}

export function harness(options: HarnessOptions) {
  const daemon = bareKernel();
  const { kernel } = daemon;
  Object.assign(kernel.contextExtensions, {
    conversation: {
      get(this: { locals: { conversation: unknown } }) {
        return this.locals.conversation;
      },
    },
    setting: { value: <T>(setting: SettingDefinition<T>): T => setting.default },
  });
  const frames: Frame[] = [];
  const errors: { owner: string; event: string; error: unknown }[] = [];
  const waiters = new Set<() => void>();
  const drains = new Set<() => void>();
  const state = { congested: false };
  const coreScope = new Scope({ owner: { id: "mortise", origin: "builtin", order: 0 }, generation: 0 });
  coreScope.state = "active";
  const env: AgentEnvironment = {
    registry: kernel.registry,
    launch: options.launch ?? {},
    context: (scope, change) => kernel.createContext(scope ?? coreScope, change),
    sendFrame: (frame) => {
      // As the transport does: what is sent cannot change afterwards.
      frames.push(JSON.parse(JSON.stringify(frame)) as Frame);
      for (const wake of [...waiters]) wake();
    },
    congested: () => state.congested,
    onDrain: (listener) => {
      drains.add(listener);
      return () => drains.delete(listener);
    },
    reportError: (owner, event, error) => void errors.push({ owner, event, error }),
    now: options.now ?? Date.now,
  };
  daemon.add("provider", "builtin", options.provider.definition);
  const scope = daemon.add("tools", "user", ...(options.definitions ?? []));
  const log = options.log ?? SessionLog.create({ cwd: process.cwd(), sessionsDir: undefined });
  const conversation = new Conversation({
    env,
    log,
    selection: { model: options.noModel === true ? undefined : scriptedModel, thinkingLevel: "off" },
  });
  conversation.setAttached(true);
  return {
    daemon,
    env,
    scope,
    frames,
    errors,
    conversation,
    log,
    provider: options.provider,
    drain() {
      state.congested = false;
      for (const listener of [...drains]) {
        drains.delete(listener);
        listener();
      }
    },
    congest() {
      state.congested = true;
    },
    types: () => frames.map((frame) => frame.type),
    /** Frame types with runs of message_update as one. */
    outline: () =>
      frames.map((frame) => frame.type).filter((type, index, all) => type !== "message_update" || all[index - 1] !== type),
    /** Resolves with the first frame that fits, past ones included. */
    async frame(fits: (frame: Frame) => boolean): Promise<Frame> {
      for (;;) {
        const found = frames.find(fits);
        if (found !== undefined) return found;
        await new Promise<void>((resolve) => {
          const wake = () => {
            waiters.delete(wake);
            resolve();
          };
          waiters.add(wake);
        });
      }
    },
    ends: (role: AgentMessage["role"]) =>
      frames
        .filter((frame) => frame.type === "message_end" && (frame["message"] as AgentMessage).role === role)
        .map((frame) => frame["message"] as AgentMessage),
  };
}

export const textOf = (message: AgentMessage | undefined): string => {
  if (message === undefined || !("content" in message)) return "";
  if (typeof message.content === "string") return message.content;
  return message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
};
