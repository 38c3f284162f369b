// The two ways to reach a daemon: a process started here, or streams somebody else connected.
import { type ChildProcess, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { ExitStatus, SpawnOptions } from "./types.ts";

export interface Channel {
  /** What the daemon writes. */
  readonly input: Readable;
  /** What the daemon reads. */
  readonly output: Writable;
  /** Settles when the other side is gone. */
  readonly exited: Promise<ExitStatus>;
  /** A sentence for errors: how the daemon ended and the end of its stderr. */
  describeExit(): string;
  /** Ends the other side the hard way. */
  kill(signal: NodeJS.Signals): void;
}

const STDERR_TAIL = 4_096;
/** A pipe of a process that is gone counts as read to its end after this silence; a grandchild may hold it open. */
const SILENCE_MS = 300;

export function spawnChannel(options: SpawnOptions): Channel {
  const [command, args] = program(options);
  const child = spawn(command, args, { cwd: options.cwd, env: options.env ?? process.env, stdio: ["pipe", "pipe", "pipe"] });
  let tail = "";
  let ending = "Daemon is gone";
  child.stderr.setEncoding("utf8");
  child.stderr.on("data", (text: string) => {
    tail = (tail + text).slice(-STDERR_TAIL);
    options.onStderr?.(text);
  });
  const exited = new Promise<ExitStatus>((resolve) => {
    child.once("error", (error) => {
      if (child.pid !== undefined) return;
      ending = `Daemon cannot be started: ${error.message}`;
      resolve({ code: undefined, signal: undefined });
    });
    child.once("exit", (code, signal) => {
      ending = signal === null ? `Daemon exited with code ${code}` : `Daemon was ended by ${signal}`;
      whenDrained(child, () => resolve({ code, signal }));
    });
  });
  return {
    input: child.stdout,
    output: child.stdin,
    exited,
    describeExit: () => (tail.trim() === "" ? ending : `${ending}; its last words: ${tail.trim().slice(-1_000)}`),
    kill: (signal) => void killIfAlive(child, signal),
  };
}

export function attachedChannel(input: Readable, output: Writable): Channel {
  const exited = new Promise<ExitStatus>((resolve) => {
    const over = () => resolve({ code: undefined, signal: undefined });
    input.once("end", over);
    input.once("close", over);
    input.once("error", over);
  });
  return {
    input,
    output,
    exited,
    describeExit: () => "Daemon closed its output",
    kill: () => {
      input.destroy();
      output.destroy();
    },
  };
}

/** Calls back when what the process wrote before its exit has been read. */
function whenDrained(child: ChildProcess, done: () => void): void {
  const streams = [child.stdout, child.stderr].filter((stream) => stream !== null && !stream.closed);
  let open = streams.length;
  const finish = () => {
    clearTimeout(timer);
    done();
  };
  const timer = setTimeout(finish, SILENCE_MS);
  for (const stream of streams) {
    stream?.on("data", () => timer.refresh());
    stream?.once("close", () => {
      open -= 1;
      if (open === 0) finish();
    });
  }
  if (open === 0) finish();
}

function program(options: SpawnOptions): [command: string, args: string[]] {
  const args = [...(options.args ?? [])];
  if (options.command !== undefined) return [options.command, args];
  const daemon = fileURLToPath(new URL("./main.js", import.meta.url));
  const mode = options.mode ?? (options.ui === undefined ? "rpc" : "rpc-ui");
  return [process.execPath, [daemon, "--mode", mode, ...args]];
}

function killIfAlive(child: ChildProcess, signal: NodeJS.Signals): boolean {
  return child.exitCode === null && child.signalCode === null && child.kill(signal);
}
