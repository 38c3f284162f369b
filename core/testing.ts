// "mortise/testing": a whole daemon in this process, over arrays instead of pipes. Real kernel, real loader, real files in a
// throw-away home; only stdin and stdout are left out.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, parse } from "node:path";
import type { Frame, RequestId } from "../protocol/frame.ts";
import { ToolResult } from "../protocol/message.ts";
import { Daemon } from "./daemon.ts";
import type { Logger } from "./kernel/context.ts";
import { errorMessage } from "./kernel/errors.ts";
import { builtins as allBuiltins } from "./loader/builtins.generated.ts";
import type { BuiltinUnit } from "./loader/host.ts";
import type { Options } from "./options.ts";

/** How the person in front of the host answers dialogs: a value, or a function of the request. Undefined leaves it open. */
export type DialogAnswer = Record<string, unknown> | ((request: Frame) => Record<string, unknown> | undefined);

export interface StartOptions {
  /** As on the command line; `mode` is `rpc` and `model` is `offline/echo` unless said otherwise. */
  options?: Partial<Options>;
  env?: NodeJS.ProcessEnv;
  /** Files to write before the start, relative to the home (`extensions/hello.ts`) or, with a leading `cwd/`, to the working directory. */
  files?: Record<string, string>;
  /** Units beside the built-ins: each a list of default exports. */
  extensions?: Record<string, readonly unknown[]>;
  /** Instead of the committed catalogue. */
  builtins?: readonly BuiltinUnit[];
  /** Follow changes of files; on by default. */
  watch?: boolean;
  /** By UI method; methods without an answer stay open until a test answers. */
  answers?: Record<string, DialogAnswer>;
  /** Keep and reuse a home, for tests that start a daemon twice. */
  home?: string;
  cwd?: string;
  log?: Logger;
}

/** A frame that fits; a string is its `type`. */
export type FramePredicate = string | ((frame: Frame) => boolean);

/** How one tool call went. */
export interface ToolOutcome {
  /** The text blocks of the result, one per line. */
  readonly text: string;
  readonly isError: boolean;
  readonly details: unknown;
  /** The text of every progress report, in order. */
  readonly updates: readonly string[];
}

export interface TestDaemon {
  readonly daemon: Daemon;
  /** Every frame so far, as the host would have parsed it. */
  readonly frames: Frame[];
  readonly home: string;
  readonly cwd: string;
  /** Sends a frame, or a line as it is. */
  send(frame: Record<string, unknown> | string): void;
  /** Sends a command with a fresh id and gives its response. */
  request(type: string, params?: Record<string, unknown>): Promise<Frame>;
  /** Like `request`, but gives `data` and throws the error of a failure. */
  ask(type: string, params?: Record<string, unknown>): Promise<Record<string, unknown>>;
  /**
   * The next frame that fits and was not given before by this call's predicate position: looks from `after` (a frame or an
   * index) on, else from the first frame no `next` call has passed.
   */
  next(fits: FramePredicate, options?: { after?: number; timeoutMs?: number }): Promise<Frame>;
  /** Prompts and gives the frames up to and including the `agent_end`, or the frame that says no agent ran. */
  prompt(message: string, params?: Record<string, unknown>): Promise<Frame[]>;
  /**
   * Has the model call a tool and gives what came of it, hooks included. Needs the model `offline/echo`, which `startDaemon`
   * chooses.
   */
  callTool(name: string, args?: Record<string, unknown>): Promise<ToolOutcome>;
  /** Runs a slash command, `/name and its words`, and gives the text it put out. */
  slash(line: string): Promise<string>;
  /**
   * Loads one extension anew, by name or id, or all of them. Resolves when the new versions answer.
   *
   * @throws {Error} when one does not load, with its reason; the version before goes on answering.
   */
  reload(unit?: string): Promise<void>;
  /** Writes a file of the home (or `cwd/…`) and gives its path. */
  write(path: string, text: string): string;
  /** Closes stdin and waits for the end; throws when something is left behind. */
  stop(): Promise<void>;
}

const quiet: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Starts a daemon and waits until commands run. Call `stop` when done: it removes the home. */
export async function startDaemon(start: StartOptions = {}): Promise<TestDaemon> {
  const made = start.home === undefined;
  const home = start.home ?? realpathSync(mkdtempSync(join(tmpdir(), "mortise-test-")));
  const cwd = start.cwd ?? join(home, "work");
  mkdirSync(cwd, { recursive: true });
  const write = (path: string, text: string): string => {
    const absolute = path.startsWith("cwd/") ? join(cwd, path.slice(4)) : join(home, path);
    mkdirSync(dirname(absolute), { recursive: true });
    writeFileSync(absolute, text);
    return absolute;
  };
  for (const [path, text] of Object.entries(start.files ?? {})) write(path, text);
  const pipe = new FramePipe(start.answers ?? {});
  const daemon = new Daemon({
    options: { ...DEFAULTS, cwd, ...start.options },
    home,
    env: start.env ?? { ...process.env, MORTISE_HOME: home },
    log: start.log ?? quiet,
    builtins: [...(start.builtins ?? allBuiltins), ...unitsOf(start.extensions ?? {})],
    watch: start.watch ?? true,
    validateResults: true,
    packageExtensions: false,
    sink: pipe,
    onShutdownRequest: () => void daemon.close("open"),
  });
  pipe.line = (text) => daemon.kernel.dispatcher.line(text);
  const cleanUp = () => {
    // What an extension still writes on its own must not fail the test after everything it checks.
    if (made) rmSync(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 });
  };
  try {
    await daemon.start();
  } catch (error) {
    await daemon.close("open");
    cleanUp();
    throw error;
  }
  return new InMemoryDaemon(daemon, pipe, { home, cwd, write, cleanUp });
}

const DEFAULTS: Options = {
  mode: "rpc",
  cwd: "/",
  model: "offline/echo",
  continue: false,
  noSession: false,
  config: [],
  extension: [],
  noExtensions: false,
  trust: false,
  noUi: false,
  dev: false,
  printExtensions: false,
  logLevel: "warn",
};

function unitsOf(extensions: Record<string, readonly unknown[]>): BuiltinUnit[] {
  return Object.entries(extensions).map(([name, exported]) => ({ id: `test:${name}`, name, definitions: () => [...exported] }));
}

/** The two pipes: frames out into an array, answers to dialogs back in. */
class FramePipe {
  readonly frames: Frame[] = [];
  readonly #answers: Record<string, DialogAnswer>;
  readonly #waiting = new Set<() => void>();
  #version: 1 | 2 = 1;
  line: (text: string) => void = () => {};

  constructor(answers: Record<string, DialogAnswer>) {
    this.#answers = answers;
  }
  send(frame: Frame): void {
    this.sendText(JSON.stringify(frame));
  }
  sendText(json: string): void {
    const frame = JSON.parse(json) as Frame;
    this.frames.push(frame);
    if (frame.type === "extension_ui_request") this.#answer(frame);
    for (const wake of [...this.#waiting]) wake();
  }
  congested(): boolean {
    return false;
  }
  onDrain(): () => void {
    return () => {};
  }
  version(): 1 | 2 {
    return this.#version;
  }
  negotiate(): void {
    this.#version = 2;
  }
  onFrame(wake: () => void): () => void {
    this.#waiting.add(wake);
    return () => this.#waiting.delete(wake);
  }
  #answer(frame: Frame): void {
    const answer = this.#answers[String(frame["method"])];
    const value = typeof answer === "function" ? answer(frame) : answer;
    if (value === undefined) return;
    // The host answers later, never inside the daemon's own call.
    setImmediate(() => this.line(JSON.stringify({ type: "extension_ui_response", id: frame["id"], ...value })));
  }
}

interface Places {
  home: string;
  cwd: string;
  write(path: string, text: string): string;
  cleanUp(): void;
}

class InMemoryDaemon implements TestDaemon {
  readonly daemon: Daemon;
  readonly #pipe: FramePipe;
  readonly #places: Places;
  #ids = 0;
  #seen = 0;

  constructor(daemon: Daemon, pipe: FramePipe, places: Places) {
    this.daemon = daemon;
    this.#pipe = pipe;
    this.#places = places;
  }
  get frames(): Frame[] {
    return this.#pipe.frames;
  }
  get home(): string {
    return this.#places.home;
  }
  get cwd(): string {
    return this.#places.cwd;
  }
  write(path: string, text: string): string {
    return this.#places.write(path, text);
  }
  send(frame: Record<string, unknown> | string): void {
    this.#pipe.line(typeof frame === "string" ? frame : JSON.stringify(frame));
  }

  async request(type: string, params: Record<string, unknown> = {}): Promise<Frame> {
    const id: RequestId = `t${++this.#ids}`;
    const after = this.frames.length;
    this.send({ id, type, ...params });
    return this.#find(
      (frame) => frame.type === "response" && frame["id"] === id,
      after,
      DEFAULT_TIMEOUT_MS,
      `response to ${type}`,
    );
  }

  async ask(type: string, params: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    const response = await this.request(type, params);
    if (response["success"] !== true) throw new Error(`${type} failed: ${String(response["error"])}`);
    return (response["data"] ?? {}) as Record<string, unknown>;
  }

  async next(fits: FramePredicate, options: { after?: number; timeoutMs?: number } = {}): Promise<Frame> {
    const from = options.after ?? this.#seen;
    const frame = await this.#find(predicate(fits), from, options.timeoutMs ?? DEFAULT_TIMEOUT_MS, describe(fits));
    if (options.after === undefined) this.#seen = this.frames.indexOf(frame) + 1;
    return frame;
  }

  async prompt(message: string, params: Record<string, unknown> = {}): Promise<Frame[]> {
    const after = this.frames.length;
    const response = await this.request("prompt", { message, ...params });
    if (response["success"] !== true) throw new Error(`prompt failed: ${String(response["error"])}`);
    const id = response["id"];
    const data = response["data"] as { agentInvoked?: boolean } | undefined;
    const isEnd = (frame: Frame) =>
      frame.type === "agent_end" ||
      (frame.type === "prompt_result" && frame["id"] === id) ||
      (frame.type === "response" && frame["id"] === id && frame["success"] === false);
    const end = data?.agentInvoked === false ? response : await this.#find(isEnd, after, DEFAULT_TIMEOUT_MS, "agent_end");
    return this.frames.slice(after, this.frames.indexOf(end) + 1);
  }

  async callTool(name: string, args: Record<string, unknown> = {}): Promise<ToolOutcome> {
    const frames = await this.prompt(`call ${name} ${JSON.stringify(args)}`);
    const end = frames.find((frame) => frame.type === "tool_execution_end" && frame["toolName"] === name);
    if (end === undefined) throw new Error(`The model did not call "${name}": is it loaded, and is the model offline/echo?`);
    const updates = frames.filter((frame) => frame.type === "tool_execution_update").map((frame) => frame["partialResult"]);
    const { content, details } = ToolResult.parse(end["result"]);
    return {
      text: textOf(content),
      isError: end["isError"] === true,
      details,
      updates: updates.map((update) => textOf(ToolResult.parse(update).content)),
    };
  }

  async slash(line: string): Promise<string> {
    const frames = await this.prompt(line);
    return frames
      .filter((frame) => frame.type === "command_output")
      .map((frame) => String(frame["text"]))
      .join("\n");
  }

  async reload(unit?: string): Promise<void> {
    const { loader } = this.daemon;
    const known = loader.units();
    const found = known.filter(({ id, path }) => unit === undefined || id === unit || unitName(path) === unit);
    if (unit !== undefined && found.length !== 1) {
      const names = known.filter(({ origin }) => origin !== "builtin").map(({ path }) => unitName(path));
      throw new Error(`${found.length === 0 ? "No" : "More than one"} extension is called "${unit}": ${names.join(", ")}`);
    }
    const reports = await loader.reload(unit === undefined ? undefined : found[0]?.id);
    const failed = reports.filter(({ outcome }) => outcome === "failed");
    if (failed.length === 0) return;
    throw new Error(failed.map(({ id, error }) => `"${id}" was not reloaded: ${errorMessage(error)}`).join("\n"));
  }

  async stop(): Promise<void> {
    await this.daemon.close("ended");
    this.#places.cleanUp();
    const left = leftBehind(this.daemon);
    if (left.length > 0) throw new Error(`The daemon left behind: ${left.join("; ")}`);
  }

  #find(fits: (frame: Frame) => boolean, from: number, timeoutMs: number, what: string): Promise<Frame> {
    let index = from;
    return new Promise((resolve, reject) => {
      const finish = (settle: () => void) => {
        clearTimeout(timer);
        unsubscribe();
        settle();
      };
      const look = () => {
        for (; index < this.frames.length; index++) {
          const frame = this.frames[index];
          if (frame !== undefined && fits(frame)) return finish(() => resolve(frame));
        }
      };
      const timer = setTimeout(() => {
        const tail = this.frames.slice(-8).map((frame) => JSON.stringify(frame).slice(0, 300));
        finish(() => reject(new Error(`No frame came within ${timeoutMs} ms: ${what}. The last ones:\n${tail.join("\n")}`)));
      }, timeoutMs);
      const unsubscribe = this.#pipe.onFrame(look);
      look();
    });
  }
}

const DEFAULT_TIMEOUT_MS = 15_000;

function predicate(fits: FramePredicate): (frame: Frame) => boolean {
  return typeof fits === "string" ? (frame) => frame.type === fits : fits;
}

function describe(fits: FramePredicate): string {
  return typeof fits === "string" ? fits : fits.toString().slice(0, 200);
}

/** The name people use: the file or folder without its ending. */
function unitName(path: string): string {
  return parse(path).name;
}

function textOf(content: readonly { type: string; text?: string }[]): string {
  return content.flatMap((block) => (block.text === undefined ? [] : [block.text])).join("\n");
}

/** What a stopped daemon must not hold any more. */
function leftBehind(daemon: Daemon): string[] {
  const left: string[] = [];
  if (daemon.kernel.requests.size > 0) left.push(`${daemon.kernel.requests.size} open host requests`);
  const live = daemon.conversations.list().length;
  if (live > 0) left.push(`${live} conversations`);
  for (const unit of daemon.loader.units())
    if (unit.contributes.length > 0 && unit.state === "active") left.push(`contributions of ${unit.id}`);
  return left;
}

export type { Daemon } from "./daemon.ts";
export { checkLeaks, type LeakOptions, type LeakReport } from "./testing/leaks.ts";
export {
  calls,
  done,
  fail,
  Gate,
  type Reply,
  type ReplyStep,
  type Script,
  type ScriptedProvider,
  says,
  scriptedModel,
  scriptedProvider,
  usage,
} from "./testing/scripted-provider.ts";
