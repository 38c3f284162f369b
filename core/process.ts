// The daemon as a process: claims stdio, wires the pipes, answers signals, decides the exit code. The only place that ends the
// process. DESIGN §2 "Exit codes" and §9 "End of input".
import { appendFileSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type { Frame } from "../protocol/frame.ts";
import { Daemon } from "./daemon.ts";
import { errorMessage, errorStack } from "./kernel/errors.ts";
import { createLogger } from "./kernel/log.ts";
import { readInput } from "./kernel/transport/input.ts";
import { Outbound } from "./kernel/transport/outbound.ts";
import { claimStdio } from "./kernel/transport/stdio-guard.ts";
import { builtins } from "./loader/builtins.generated.ts";
import type { Options } from "./options.ts";

const SIGNAL_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
/** A shutdown that takes longer is cut off: hooks and disposal are bounded one by one, this bounds them together. */
const SHUTDOWN_LIMIT_MS = 15_000;

/** Where the user's files are: `MORTISE_HOME`, else `~/.mortise`. */
export function mortiseHome(env: NodeJS.ProcessEnv): string {
  const home = env["MORTISE_HOME"];
  return home === undefined || home === "" ? join(env["HOME"] ?? homedir(), ".mortise") : resolve(home);
}

/** The same after a second signal. A third one ends the process at once. */
const IMPATIENT_LIMIT_MS = 4_000;

/** Runs the daemon until its input ends, a signal comes or an extension asks. Resolves when the process may end. */
export async function runProcess(options: Options): Promise<void> {
  const stdio = claimStdio();
  // Every frame goes through it; an extension that replaces a function of it would speak for the daemon.
  Object.freeze(JSON);
  let lost: (() => void) | undefined;
  const outbound = new Outbound(stdio.stdout, {
    maxFrameBytes: options.maxFrameBytes,
    unsentBytes: stdio.unsentBytes,
    onClosed: () => lost?.(),
  });
  let redact = (text: string) => text;
  const log = createLogger({
    level: options.logLevel,
    write: (line) => process.stderr.write(line),
    archive: logFile(join(mortiseHome(process.env), "logs")),
    redact: (text) => redact(text),
    pretty: process.stderr.isTTY === true,
  });
  let ending: Promise<void> | undefined;
  const end = (code: number, input: "ended" | "open"): Promise<void> => {
    ending ??= shutDown(code, input);
    return ending;
  };
  const shutDown = async (code: number, input: "ended" | "open") => {
    const limit = setTimeout(() => process.exit(code), SHUTDOWN_LIMIT_MS).unref();
    try {
      await daemon.close(input).catch((error: unknown) => log.error(`Shutdown failed: ${errorMessage(error)}`));
      clearTimeout(limit);
      for (const file of daemon.conversations.incomplete) {
        const message = `What could not be written of session "${file}" is lost`;
        process.stderr.write(`mortise: ${message}\n`);
        outbound.send({ type: "notice", level: "error", message, source: "session-persistence" });
      }
      await outbound.end();
      await log.flush();
    } finally {
      // An end in order that lost something is none (agent-semantics §12 item 48).
      process.exit(code === 0 && daemon.conversations.incomplete.length > 0 ? 1 : code);
    }
  };
  const daemon = new Daemon({
    options,
    home: mortiseHome(process.env),
    // As it is now: what extensions change later is theirs.
    env: { ...process.env },
    log,
    builtins,
    watch: true,
    packageExtensions: true,
    sink: {
      send: (frame: Frame) => outbound.send(frame),
      sendText: (json) => outbound.sendSerialized(json, "response"),
      congested: () => outbound.congested,
      onDrain: (listener) => outbound.onDrain(listener),
      version: () => outbound.protocolVersion,
      negotiate: () => outbound.negotiateV2(),
    },
    onShutdownRequest: () => void end(0, "open"),
  });
  redact = (text) => daemon.redact(text);
  lost = () => void end(1, "ended");
  guardProcess(daemon, log, end);
  readInput(stdio.stdin, {
    onLine: (text) => daemon.kernel.dispatcher.line(text),
    onError: (error) => daemon.kernel.dispatcher.parseFailure(error.message),
    onEnd: () => void end(0, "ended"),
  });
  try {
    await daemon.start();
  } catch (error) {
    const message = errorMessage(error);
    process.stderr.write(`mortise: ${message}\n`);
    daemon.kernel.send({ type: "notice", level: "error", message, source: "startup" });
    log.debug("Start-up failed", { stack: errorStack(error) });
    await end(1, "open");
  }
}

/** Appends to one file a day, made with its first line. A folder that cannot be written is no reason to stop: stderr has it all. */
function logFile(folder: string): (line: string) => void {
  let broken = false;
  return (line) => {
    if (broken) return;
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      appendFileSync(join(folder, `${new Date().toISOString().slice(0, 10)}.log`), line, { mode: 0o600 });
    } catch {
      broken = true;
    }
  };
}

function guardProcess(daemon: Daemon, log: Daemon["log"], end: (code: number, input: "ended" | "open") => Promise<void>): void {
  for (const [signal, code] of Object.entries(SIGNAL_CODES)) {
    let seen = 0;
    process.on(signal, () => {
      seen++;
      // A terminal sends some of them twice, and commands that are left behind outlive us: a short wait first, then none.
      if (seen === 2) setTimeout(() => process.exit(code), IMPATIENT_LIMIT_MS).unref();
      if (seen > 2) process.exit(code);
      void end(code, "open");
    });
  }
  const contain = (error: unknown) => {
    if (daemon.kernel.contain(error)) return;
    // A bug of our own: the daemon goes on, because one failed callback must not take the host's session with it.
    log.error(`Unexpected error: ${errorMessage(error)}`, { stack: errorStack(error) });
  };
  process.on("uncaughtException", contain);
  process.on("unhandledRejection", contain);
}
