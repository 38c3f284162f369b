// The daemon's side of isolation: an extension that runs in a process of its own stands here as proxies with the names, data and
// places of its contributions. A generation owns its process; a reload starts another beside it and swaps as always.
import { AsyncLocalStorage } from "node:async_hooks";
import { readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import type { Frame } from "../protocol/frame.ts";
import type { ConversationHandle } from "./agent/conversation-types.ts";
import type { ToolContext } from "./agent/tool.ts";
import type { Context, Logger } from "./kernel/context.ts";
import { type AnyDefinition, define, defineExtension, type SetupScope } from "./kernel/definition.ts";
import type { ExtensionPhase } from "./kernel/errors.ts";
import type { Kernel } from "./kernel/kernel.ts";
import type { Owner } from "./kernel/scope.ts";
import type { UnitSource } from "./loader/discover.ts";
import { fingerprint, readNow } from "./loader/files.ts";
import type { Isolate } from "./loader/generation.ts";
import { Loaded, LookedAt, Registration } from "./loader/isolate/frame.ts";
import type { Reference } from "./loader/isolate/pack.ts";
import type { Peer } from "./loader/isolate/peer.ts";
import { IsolatedProcess } from "./loader/isolate/process.ts";
import { Settings } from "./services/settings.ts";

export interface IsolationOptions {
  readonly kernel: Kernel;
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** Resolves when the settings are read. With --dev they come together with all other units, so the first load does not see them. */
  settingsReady(): Promise<void>;
  /** The conversation of an id, for what an extension does to it. */
  conversation(id: string): ConversationHandle | undefined;
}

/** How long a call waits for a process that is being started again. */
const READY_MS = 10_000;
const MEMORY_MB = 512;
const STALL_MS = 10_000;

const FrameSchema: z.ZodType<Frame> = z.looseObject({ type: z.string() });
const Names = z.array(z.string());
const Phase: z.ZodType<ExtensionPhase> = z.enum([
  "load",
  "setup",
  "validate",
  "hook",
  "command",
  "tool",
  "timer",
  "async",
  "dispose",
]);
const Manifest = z.object({ mortise: z.looseObject({ isolate: z.boolean() }) });

/** Decides which units are isolated, and makes what stands for them. */
export function createIsolation(options: IsolationOptions): Isolate {
  return async (source, owner) => {
    if (owner.origin === "builtin") return undefined;
    await options.settingsReady();
    if (!isWanted(source, owner, options)) return undefined;
    const lookedAt = lookAt(source.entries);
    const extension = defineExtension({
      name: owner.id,
      setup: (scope) => new IsolatedExtension(options, source, scope, lookedAt).start(),
    });
    const none = new Set<string>();
    const evaluation = { ...lookedAt, links: none, specifiers: none, timings: { resolve: 0, transpile: 0 }, idleMs: 0 };
    return { extension, evaluation };
  };
}

/** By the setting `isolate` (names, `*` for any text) or by `mortise.isolate` of its package.json. */
function isWanted(source: UnitSource, owner: Owner, { kernel }: IsolationOptions): boolean {
  const patterns = Names.safeParse(kernel.services.tryUse(Settings)?.getPath("isolate")).data ?? [];
  const names = [owner.id, basename(source.path), basename(source.path).replace(/\.\w+$/, "")];
  if (patterns.some((pattern) => names.some((name) => matches(pattern, name)))) return true;
  if (source.kind !== "folder") return false;
  try {
    return Manifest.safeParse(JSON.parse(readFileSync(join(source.id, "package.json"), "utf8"))).data?.mortise.isolate === true;
  } catch {
    // No manifest, or none that can be read: the loader says so.
    return false;
  }
}

function matches(pattern: string, name: string): boolean {
  const parts = pattern.split("*").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`).test(name);
}

/** What is known of the files behind it: at first as they are before the process starts, then as it says it found them. */
interface FilesSeen {
  readonly files: Map<string, { fingerprint: string; hash: string }>;
  readonly missing: Set<string>;
}

function lookAt(paths: Iterable<string>): FilesSeen {
  const seen: FilesSeen = { files: new Map(), missing: new Set() };
  for (const path of paths) {
    try {
      const { fingerprint, hash } = readNow(path);
      seen.files.set(path, { fingerprint, hash });
    } catch {
      const state = fingerprint(path);
      if (state === null) seen.missing.add(path);
      else seen.files.set(path, { fingerprint: state, hash: "" });
    }
  }
  return seen;
}

/** A call that the child works on. */
interface OpenCall {
  readonly ctx: Context;
  /** Runs something as part of the call, so that dialogs pause its time limit and are its conversation's. */
  readonly run: <T>(fn: () => T) => T;
}

class IsolatedExtension {
  readonly #options: IsolationOptions;
  readonly #source: UnitSource;
  readonly #scope: SetupScope;
  readonly #seen: FilesSeen;
  readonly #process: IsolatedProcess;
  readonly #calls = new Map<number, OpenCall>();
  readonly #dialogs = new Map<string, AbortController>();
  readonly #live: Promise<void>;

  constructor(options: IsolationOptions, source: UnitSource, scope: SetupScope, seen: FilesSeen) {
    this.#options = options;
    this.#source = source;
    this.#scope = scope;
    this.#seen = seen;
    this.#live = new Promise((resolve) => scope.onLive?.(() => resolve()));
    const settings = scope.ctx.tryUse(Settings);
    const number = (path: string, fallback: number) => z.number().positive().safeParse(settings?.getPath(path)).data ?? fallback;
    this.#process = new IsolatedProcess({
      name: basename(source.path),
      command: childCommand(number("isolation.memoryMb", MEMORY_MB)),
      env: childEnv(options.env),
      cwd: options.cwd,
      stallMs: number("isolation.stallMs", STALL_MS),
      answer: (method, params, { signal }) => this.#answer(method, params, signal),
      told: (method, params) => this.#told(method, params),
      load: (peer) => this.#load(peer),
      printed: (line) => scope.ctx.log.info(line, { extension: scope.owner }),
      died: (error, restartInMs) => {
        this.#report("process", error, "async");
        scope.ctx.log.warn(`It is started again in ${restartInMs} ms`, { extension: scope.owner });
      },
      failed: (error) => this.#report("process", error, "load"),
    });
  }

  async start(): Promise<void> {
    const settings = this.#scope.ctx.tryUse(Settings);
    const stop = settings?.onChange(() => {
      void this.#process.ready().then(
        (peer) => peer.tell("settings", settings.all()),
        () => {},
      );
    });
    if (stop !== undefined) this.#scope.own(stop, "settings of the isolated process");
    this.#scope.own(() => this.#process.stop(), "isolated process");
    await this.#process.start();
  }

  async #load(peer: Peer): Promise<void> {
    const { kernel, home } = this.#options;
    const settings = this.#scope.ctx.tryUse(Settings)?.all() ?? {};
    const { mode, hasUI } = kernel;
    const loaded = Loaded.parse(await peer.call("load", { path: this.#source.id, home, mode, hasUI, settings }));
    this.#lookedAt(loaded);
    this.#replace(loaded.registrations);
  }

  #lookedAt(looked: LookedAt): void {
    const { files, missing } = this.#seen;
    files.clear();
    missing.clear();
    for (const [path, file] of Object.entries(looked.files)) files.set(path, file);
    for (const path of looked.missing) missing.add(path);
  }

  #replace(registrations: readonly Registration[]): void {
    this.#scope.replace(
      "isolated",
      registrations.map((registration) => this.#proxy(registration)),
    );
  }

  #report(event: string, error: unknown, phase: ExtensionPhase): void {
    const { scope } = this.#scope.ctx;
    if (scope.state === "disposed") return;
    this.#options.kernel.reportError({ owner: this.#scope.owner, event, error, phase, generation: scope.generation });
  }

  // ── From the daemon to the extension ─────────────────────────────────────────────────────────────────────────────────────

  #proxy(registration: Registration): AnyDefinition {
    const { kind, name, fields } = registration;
    const run = (ctx: Context, input: Record<string, unknown>) => this.#call(registration, ctx, input);
    const base = { kind, name, ...fields };
    switch (kind) {
      case "tool":
        return made({ ...base, run: (ctx: ToolContext, args: unknown) => run(ctx, toolInput(ctx, args)) });
      case "hook":
        return made({ ...base, run: (value: unknown, ctx: Context) => run(ctx, { value, conversation: conversationOf(value) }) });
      case "slash command":
        return made({ ...base, run: (ctx: Context, args: string) => run(ctx, { args, conversation: ctx.conversation }) });
      case "prompt section":
        return made({ ...base, render: (ctx: Context) => run(ctx, { conversation: ctx.conversation }) });
      case "uri scheme": {
        const read = (url: string, ctx: Context) => run(ctx, { url, conversation: ctx.conversation });
        const write = (url: string, content: string, ctx: Context) => run(ctx, { url, content, conversation: ctx.conversation });
        return made({ ...base, read, ...(fields["writable"] === true ? { write } : {}) });
      }
      case "setting":
        // The child checks the value when it reads it.
        return made({ ...base, schema: z.unknown() });
      default:
        throw new Error(`A ${kind} cannot be contributed from isolation`);
    }
  }

  async #call(registration: Registration, ctx: Context, input: Record<string, unknown>): Promise<unknown> {
    const peer = await within(
      this.#process.ready(),
      READY_MS,
      `"${this.#scope.owner}" is not there at the moment: its process is being started again`,
    );
    const id = peer.nextId();
    const sent: object[] = [];
    const undo: Array<() => void> = [];
    const refer = (value: object): Reference | undefined => {
      const kind = value instanceof AbortSignal ? "signal" : isConversation(value) ? "conversation" : undefined;
      if (kind === undefined) return undefined;
      const known = sent.indexOf(value);
      const index = known >= 0 ? known : sent.push(value) - 1;
      if (value instanceof AbortSignal) {
        const tell = () => peer.tell("aborted", { call: id, index });
        value.addEventListener("abort", tell, { once: true });
        undo.push(() => value.removeEventListener("abort", tell));
        return { kind: "signal", index, data: { aborted: value.aborted } };
      }
      return { kind: "conversation", index, data: snapshotOf(value as ConversationHandle) };
    };
    this.#calls.set(id, { ctx, run: AsyncLocalStorage.snapshot() });
    try {
      const { kind, name, nth } = registration;
      const revive = ({ index }: Reference) => sent[index];
      return await peer.call("run", { kind, name, nth, input }, { id, signal: ctx.signal, refer, revive });
    } finally {
      this.#calls.delete(id);
      for (const each of undo) each();
    }
  }

  // ── From the extension to the daemon ─────────────────────────────────────────────────────────────────────────────────────

  async #answer(method: string, params: Record<string, unknown>, signal: AbortSignal): Promise<unknown> {
    const call = this.#calls.get(Number(params["call"]));
    switch (method) {
      case "ui":
        return this.#ui(FrameSchema.parse(params["frame"]), call, signal);
      case "next":
        return (call?.ctx as ToolContext | undefined)?.next?.(params["args"] as Record<string, unknown>);
      case "runTool":
        return (call?.ctx as ToolContext | undefined)?.runTool(String(params["name"]), params["args"] as Record<string, unknown>);
      case "conversation":
        return this.#conversation(String(params["id"]), String(params["method"]), params["args"] as unknown[]);
      default:
        throw new Error(`An isolated extension cannot ask for "${method}"`);
    }
  }

  async #ui(frame: Frame, call: OpenCall | undefined, signal: AbortSignal): Promise<unknown> {
    await this.#live;
    const { type: _type, id, method, timeout, ...fields } = frame;
    if (method === "cancel") return this.#dialogs.get(String(fields["targetId"]))?.abort();
    const controller = new AbortController();
    this.#dialogs.set(String(id), controller);
    const show = () =>
      (call?.ctx ?? this.#scope.ctx).ui.call(String(method), fields, {
        timeout: typeof timeout === "number" ? timeout : undefined,
        signal: AbortSignal.any([controller.signal, signal]),
      });
    try {
      return await (call === undefined ? show() : call.run(show));
    } finally {
      this.#dialogs.delete(String(id));
    }
  }

  async #conversation(id: string, method: string, args: unknown[]): Promise<unknown> {
    const conversation = this.#options.conversation(id);
    if (conversation === undefined) throw new Error(`The conversation ${id} is closed`);
    const callable = (conversation as unknown as Record<string, (...args: unknown[]) => unknown>)[method];
    await callable?.apply(conversation, args);
    return undefined;
  }

  #told(method: string, params: Record<string, unknown>): void {
    const { ctx } = this.#scope;
    const call = this.#calls.get(Number(params["call"]));
    switch (method) {
      case "endRun":
        (call?.ctx as ToolContext | undefined)?.endRun();
        return;
      case "update":
        (call?.ctx as ToolContext | undefined)?.update(params["partial"] as Parameters<ToolContext["update"]>[0]);
        return;
      case "output":
        (call?.ctx as { output?(text: string): void } | undefined)?.output?.(String(params["text"]));
        return;
      case "frame":
        void this.#live.then(() => ctx.sendRaw(FrameSchema.parse(params["frame"])));
        return;
      case "log": {
        const level = z.enum(["debug", "info", "warn", "error"]).catch("info").parse(params["level"]) satisfies keyof Logger;
        ctx.log[level](String(params["message"]), { ...(params["fields"] as object | undefined), extension: this.#scope.owner });
        return;
      }
      case "report":
        this.#reported(params);
        return;
      case "lookedAt":
        this.#lookedAt(LookedAt.parse(params));
        return;
      case "registered":
        void this.#live.then(() => this.#replace(z.array(Registration).parse(params["registrations"])));
        return;
      case "shutdown":
        ctx.shutdown();
    }
  }

  #reported(params: Record<string, unknown>): void {
    const error = new Error(String(params["error"]));
    if (typeof params["stack"] === "string") error.stack = params["stack"];
    const phase = Phase.catch("async").parse(params["phase"]);
    this.#report(String(params["event"]), error, phase);
  }
}

/** The kinds are checked by the child, which has the definitions. */
function made(definition: { kind: string; name: string } & Record<string, unknown>): AnyDefinition {
  return define(definition) as unknown as AnyDefinition;
}

function toolInput(ctx: ToolContext, args: unknown): Record<string, unknown> {
  const { toolCallId, cwd, conversation } = ctx;
  return { args, toolCallId, cwd, conversation, hasNext: ctx.next !== undefined };
}

function conversationOf(value: unknown): unknown {
  return typeof value === "object" && value !== null && "conversation" in value ? value.conversation : undefined;
}

function isConversation(value: object): boolean {
  return "submit" in value && "slot" in value && "log" in value;
}

/** What the extension may read of a conversation. */
function snapshotOf(conversation: ConversationHandle): Record<string, unknown> {
  const { id, cwd, isAttached, isSubagent, isStreaming, isCompacting, selection } = conversation;
  return { id, cwd, isAttached, isSubagent, isStreaming, isCompacting, selection: { ...selection } };
}

function within<T>(promise: Promise<T>, ms: number, message: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(message)), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** The entry of the child: beside the bundle, or the source itself when the daemon runs from its sources. */
function childCommand(memoryMb: number): [string, ...string[]] {
  const here = fileURLToPath(import.meta.url);
  const limit = `--max-old-space-size=${memoryMb}`;
  if (here.endsWith(".ts")) {
    return [process.execPath, limit, "--import", import.meta.resolve("tsx"), join(dirname(here), "isolate-child.ts")];
  }
  const folder = dirname(here);
  return [process.execPath, limit, join(folder.endsWith("chunks") ? dirname(folder) : folder, "isolate-child.js")];
}

function childEnv(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const here = fileURLToPath(import.meta.url);
  if (!here.endsWith(".ts")) return env;
  return { ...env, TSX_TSCONFIG_PATH: join(dirname(here), "..", "tsconfig.json") };
}
