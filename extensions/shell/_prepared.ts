// What a shell is that was started before its command is known.
import type { Readable, Writable } from "node:stream";
import type { Terminal } from "./_pty.ts";

/** A shell that takes a command. */
export interface Prepared {
  readonly pid: number;
  /** stdout and stderr in one. */
  readonly output: Readable;
  readonly script: Writable;
  readonly terminal: Terminal | undefined;
  readonly marker: string;
  readonly request: LaunchRequest;
  /** The exit code; 128 and more for a signal. */
  readonly exit: Promise<number>;
  /** Makes the shell and its pipes keep the process alive, or not. */
  hold(keep: boolean): void;
}

/** A shell for a later command. */
export interface Waiting {
  /** Environment, directory and kind it stands for. */
  readonly key: string;
  readonly request: LaunchRequest;
  readonly over: boolean;
  /** Undefined while it is not ready. */
  use(): Prepared | undefined;
  /** Resolves when it is ready, or with undefined when it never will be. */
  settled(): Promise<Prepared | undefined>;
  discard(): void;
}

export interface LaunchRequest {
  cwd: string;
  env: Readonly<Record<string, string>>;
  pty: boolean;
  /** Program and arguments in front of the shell's. */
  wrap?: readonly string[] | undefined;
}

/** Ends a shell that has not got its command. */
export function discard(prepared: Prepared): void {
  killQuietly(prepared.pid);
  prepared.hold(false);
  letGo(prepared.script, prepared.output, prepared.terminal);
}

export function refer(handle: object, keep: boolean): void {
  const method: unknown = Reflect.get(handle, keep ? "ref" : "unref");
  if (typeof method === "function") Reflect.apply(method, handle, []);
}

export function letGo(script: Writable, output: Readable | undefined, terminal: Terminal | undefined): void {
  script.destroy();
  terminal?.release();
  output?.destroy();
}

export function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}
