// What the agent layer needs of the daemon around it. The composition root fills it from the kernel; tests fill it by hand.
import type { Frame } from "../../protocol/frame.ts";
import type { Context, ContextChange } from "../kernel/context.ts";
import type { Registry } from "../kernel/registry.ts";
import type { Scope } from "../kernel/scope.ts";

/** Command-line options that conversations read. */
export interface LaunchOptions {
  /** `--system-prompt`: replaces the stable block. */
  readonly systemPrompt?: string | undefined;
  /** `--append-system-prompt`: blocks after all others. */
  readonly appendSystemPrompt?: readonly string[] | undefined;
  /** `--tools a,b`: the active tools of new conversations. */
  readonly tools?: readonly string[] | undefined;
}

export interface AgentEnvironment {
  readonly registry: Registry;
  readonly launch: LaunchOptions;
  /** A context for code of `scope`; without one for the daemon's own code. */
  context(scope: Scope | undefined, change: ContextChange): Context;
  /** Writes a frame to the host. Never blocks, never throws. */
  sendFrame(frame: Frame): void;
  /** False for event types the host asked not to get. */
  wants?(type: string): boolean;
  /** True while the host reads slower than frames are made. */
  congested(): boolean;
  /** Calls back once when the congestion is over; returns the cancellation. */
  onDrain(listener: () => void): () => void;
  reportError(owner: string, event: string, error: unknown): void;
  /** Unix milliseconds. */
  now(): number;
}
