// Entry of the process of one isolated extension: a kernel and a loader with that one unit. What it contributes is told to the daemon,
// which calls it over the line on file descriptor 3; dialogs, frames and log lines go back the same way.
import { Socket } from "node:net";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import type { Frame } from "../protocol/frame.ts";
import type { SettingDefinition } from "./agent/settings.ts";
import type { ToolContext, ToolDefinition } from "./agent/tool.ts";
import { prepareArguments } from "./agent/tool-arguments.ts";
import { registrationsOf } from "./isolate-kinds.ts";
import { currentCall, runCall } from "./kernel/attribution.ts";
import type { Context, Logger } from "./kernel/context.ts";
import type { AnyDefinition } from "./kernel/definition.ts";
import { errorMessage, ToolError } from "./kernel/errors.ts";
import { Kernel } from "./kernel/kernel.ts";
import type { Entry } from "./kernel/registry.ts";
import type { Scope } from "./kernel/scope.ts";
import { builtins } from "./loader/builtins.generated.ts";
import { fingerprint, readNow } from "./loader/files.ts";
import type { ErrorReport } from "./loader/host.ts";
import { LoadParams, type LookedAt, type Registration } from "./loader/isolate/frame.ts";
import { type Reference, unpack } from "./loader/isolate/pack.ts";
import { type IncomingCall, Peer } from "./loader/isolate/peer.ts";
import { Loader } from "./loader/loader.ts";

/** Methods of a conversation that the daemon carries out. */
const CONVERSATION_METHODS = ["submit", "submitCustom", "continue", "abort", "whenIdle", "emitRaw"];
/** How often it is looked whether the daemon is still there, in milliseconds. */
const PARENT_CHECK_MS = 1000;

const startedAt = Date.now();
/** Objects that stand for one of the daemon's. */
const handles = new WeakMap<object, Reference>();

class Child {
  readonly #peer: Peer;
  #kernel: Kernel | undefined;
  #loader: Loader | undefined;
  #scope: Scope | undefined;
  #settings: Record<string, unknown> = {};
  readonly #signals = new Map<string, AbortController>();

  constructor(stream: Socket) {
    this.#peer = new Peer({
      stream,
      answer: (method, params, call) => (method === "load" ? this.#load(LoadParams.parse(params)) : this.#run(params, call)),
      told: (method, params) => this.#told(method, params),
      refer: (value) => handles.get(value),
    });
    // From here on it answers, unless its code does not let it.
    this.#peer.tell("pong");
  }

  #told(method: string, params: Record<string, unknown>): void {
    if (method === "ping") this.#peer.tell("pong");
    else if (method === "settings") this.#settings = params;
    else if (method === "aborted") this.#signals.get(`${params["call"]} ${params["index"]}`)?.abort();
    else if (method === "end") void this.end();
  }

  async end(): Promise<void> {
    try {
      await this.#loader?.announceShutdown();
      await this.#loader?.stop();
    } finally {
      process.exit(0);
    }
  }

  contain(error: unknown): void {
    if (this.#kernel?.contain(error) === true) return;
    this.#peer.tell("report", { event: "async", error, phase: "async" });
  }

  async #load(params: LoadParams): Promise<unknown> {
    this.#settings = params.settings;
    const log = this.#log();
    const kernel = new Kernel({
      mode: params.mode,
      hasUI: params.hasUI,
      log,
      sink: { send: (frame) => this.#frame(frame), sendText: () => {} },
      onShutdownRequest: () => this.#peer.tell("shutdown"),
    });
    this.#kernel = kernel;
    this.#extendContexts(kernel);
    let failure: unknown;
    const loader = new Loader(
      {
        registry: kernel.registry,
        log,
        createContext: (scope) => kernel.createContext(scope),
        runAs: (scope, fn) => kernel.runAs(scope, fn),
        reportError: (report) => {
          // That it did not load is the answer to the daemon, which tells of it once.
          if (this.#scope === undefined && isOfLoading(report)) failure ??= report.error;
          else kernel.reportError(report);
        },
      },
      {
        builtins: builtins.filter((unit) => unit.id === "builtin:ui"),
        roots: [{ path: params.path, origin: "user", kind: "unit" }],
        virtualModules: async () => ({
          "mortise/extension": () => import("./extension.ts"),
          "mortise/protocol": () => import("../protocol/protocol.ts"),
          mortise: () => import("../protocol/index.ts"),
          zod: () => import("zod"),
          "zod/v4": () => import("zod"),
        }),
        adaptFactory: () => {
          throw new Error(
            "An extension written for pi, oh-my-pi or veyyon cannot be isolated: take it out of the setting `isolate`",
          );
        },
        cacheDir: join(params.home, "cache"),
        watch: false,
      },
    );
    this.#loader = loader;
    loader.onActivated((activation) => {
      if (activation.scope.owner.origin !== "builtin") this.#scope = activation.scope;
    });
    await loader.start();
    await loader.settled();
    const unit = loader.units().find(({ origin }) => origin !== "builtin");
    const lookedAt = lookedAtBy(loader, unit?.id);
    if (unit?.state !== "active") {
      this.#peer.tell("lookedAt", lookedAt);
      throw failure ?? new Error(unit?.error ?? `There is no extension at ${params.path}`);
    }
    const registrations = registrationsOf(this.#entries());
    kernel.registry.onChange(() => this.#tellRegistrations());
    return { registrations, ...lookedAt };
  }

  /** What the unit contributes now, without the UI methods that stand for the daemon's. */
  #entries(): Entry[] {
    return this.#scope === undefined ? [] : (this.#kernel?.registry.ownedBy(this.#scope) ?? []);
  }

  #tellRegistrations(): void {
    try {
      this.#peer.tell("registered", { registrations: registrationsOf(this.#entries()) });
    } catch (error) {
      this.#peer.tell("report", { event: "add", error, phase: "validate" });
    }
  }

  #log(): Logger {
    const line = (level: keyof Logger) => (message: string, fields?: Record<string, unknown>) =>
      this.#peer.tell("log", { level, message, fields });
    return { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
  }

  #extendContexts(kernel: Kernel): void {
    kernel.contextExtensions["conversation"] = {
      get(this: Context) {
        const conversation = this.locals.conversation ?? currentCall()?.locals.conversation;
        if (conversation !== undefined) return conversation;
        throw new Error("An isolated extension has a conversation only while it answers a call");
      },
    };
    kernel.contextExtensions["setting"] = { value: <T>(setting: SettingDefinition<T>): T => this.#setting(setting) };
  }

  #setting<T>(setting: SettingDefinition<T>): T {
    let value: unknown = this.#settings;
    for (const part of setting.name.split(".")) value = isRecord(value) ? value[part] : undefined;
    const fallback = setting.hostDefault ?? setting.default;
    if (value === undefined) return fallback;
    const parsed = setting.schema.safeParse(value);
    return parsed.success ? parsed.data : fallback;
  }

  /** A frame of the kernel here: a dialog for the daemon's host, an error of the unit, or a frame that it sends. */
  #frame(frame: Frame): void {
    const call = callOf();
    if (frame.type === "extension_error") this.#peer.tell("report", frame);
    else if (frame.type === "extension_ui_request") void this.#ask(frame, call);
    else if (frame.type !== "response") this.#peer.tell("frame", { frame });
  }

  async #ask(frame: Frame, call: number | undefined): Promise<void> {
    const { id, method } = frame;
    let answer: Record<string, unknown> = { cancelled: true };
    try {
      const value = await this.#peer.call("ui", { call, frame });
      if (method === "confirm") answer = { confirmed: value };
      else if (value !== undefined) answer = { value };
    } catch (error) {
      this.#log().warn(`A dialog could not be shown: ${errorMessage(error)}`);
    }
    this.#kernel?.dispatcher.line(JSON.stringify({ type: "extension_ui_response", id, ...answer }));
  }

  async #run(params: Record<string, unknown>, call: IncomingCall): Promise<unknown> {
    const kernel = this.#kernel;
    const { kind, name, nth } = params as unknown as Registration;
    const found = this.#entries().filter((entry) => entry.kind === kind && entry.name === name)[nth];
    if (kernel === undefined || found === undefined) throw new Error(`The ${kind} "${name}" is no longer there`);
    const indexes = new Set<number>();
    const revive = (reference: Reference) => this.#revive(reference, call.id, indexes);
    const input = unpack(params["input"], revive) as Record<string, unknown>;
    const conversation = input["conversation"] as Context["conversation"] | undefined;
    const locals = { call: call.id, ...(conversation === undefined ? {} : { conversation }) };
    const ctx = kernel.createContext(found.scope, { signal: call.signal, locals });
    const release = found.scope.lease();
    try {
      return await runCall({ scope: found.scope, locals }, () => this.#answer(found.definition, ctx, input, call));
    } finally {
      release();
      for (const index of indexes) this.#signals.delete(`${call.id} ${index}`);
    }
  }

  #answer(definition: AnyDefinition, ctx: Context, input: Record<string, unknown>, call: IncomingCall): unknown {
    switch (definition.kind) {
      case "tool":
        return this.#tool(definition, ctx, input, call);
      case "hook":
        return definition.run(input["value"] as never, ctx);
      case "slash command": {
        const output = (text: string) => this.#peer.tell("output", { call: call.id, text });
        return definition.run(Object.assign(ctx, { output }), String(input["args"]));
      }
      case "prompt section":
        return definition.render(ctx);
      case "uri scheme":
        if (input["content"] === undefined) return definition.read(String(input["url"]), ctx);
        return definition.write?.(String(input["url"]), String(input["content"]), ctx);
      default:
        throw new Error(`A ${definition.kind} cannot be called`);
    }
  }

  async #tool(tool: ToolDefinition, ctx: Context, input: Record<string, unknown>, call: IncomingCall): Promise<unknown> {
    const prepared = await prepareArguments(tool, input["args"] as Record<string, unknown>);
    if (!prepared.ok) throw new ToolError(prepared.text);
    const ask = (method: string, params: Record<string, unknown>) => this.#peer.call(method, { call: call.id, ...params });
    const members = {
      toolCallId: String(input["toolCallId"]),
      cwd: String(input["cwd"]),
      update: (partial: unknown) => this.#peer.tell("update", { call: call.id, partial }),
      endRun: () => this.#peer.tell("endRun", { call: call.id }),
      runTool: (name: string, args: unknown) => ask("runTool", { name, args }),
      next: input["hasNext"] === true ? (args: unknown) => ask("next", { args }) : undefined,
    };
    return tool.run(Object.assign(ctx, members) as unknown as ToolContext, prepared.args);
  }

  #revive(reference: Reference, call: number, indexes: Set<number>): object {
    const handle = reference.kind === "signal" ? this.#signal(reference, call, indexes) : this.#conversation(reference);
    handles.set(handle, { kind: reference.kind, index: reference.index });
    return handle;
  }

  #signal({ index, data }: Reference, call: number, indexes: Set<number>): AbortSignal {
    const controller = new AbortController();
    if (data?.["aborted"] === true) controller.abort();
    this.#signals.set(`${call} ${index}`, controller);
    indexes.add(index);
    return controller.signal;
  }

  /** What can be read is as it was when the call began. */
  #conversation({ data = {} }: Reference): object {
    const methods = Object.fromEntries(
      CONVERSATION_METHODS.map((method) => [
        method,
        (...args: unknown[]) => this.#peer.call("conversation", { id: data["id"], method, args }),
      ]),
    );
    const emit = (frame: { name: string }, fields: object) => methods["emitRaw"]?.({ type: frame.name, ...fields });
    return new Proxy({ ...data, ...methods, emit } as Record<string, unknown>, {
      get: (target, key) => {
        if (typeof key !== "string" || key === "then" || key in target) return Reflect.get(target, key);
        throw new Error(`ctx.conversation.${key} is not available in an isolated extension`);
      },
    });
  }
}

/** The call of the daemon that the code at hand works for. */
function callOf(): number | undefined {
  const locals: Record<string, unknown> = { ...currentCall()?.locals };
  return typeof locals["call"] === "number" ? locals["call"] : undefined;
}

function lookedAtBy(loader: Loader, unitId: string | undefined): LookedAt {
  const paths = unitId === undefined ? [] : loader.watchedPaths(unitId);
  const missing = paths.filter((path) => fingerprint(path) === null);
  const read = paths.filter((path) => !missing.includes(path));
  return { files: Object.fromEntries(read.map((path) => [path, seen(path)])), missing };
}

function isOfLoading({ phase }: ErrorReport): boolean {
  return phase === "load" || phase === "setup" || phase === "validate";
}

/** A file as it was read. One that was written since this process began may have been read before that: it counts as changed. */
function seen(path: string): { fingerprint: string; hash: string } {
  try {
    const file = readNow(path);
    const mtimeNs = BigInt(file.fingerprint.split(":")[3] ?? "0");
    if (mtimeNs / 1_000_000n >= BigInt(startedAt)) return { fingerprint: "written meanwhile", hash: "" };
    return { fingerprint: file.fingerprint, hash: file.hash };
  } catch {
    return { fingerprint: fingerprint(path) ?? "gone", hash: "" };
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** An endless loop would outlive a daemon that was killed: a thread of its own looks after that. */
function endWithParent(): void {
  const code = `setInterval(() => { if (process.ppid !== ${process.ppid}) process.kill(process.pid, "SIGKILL"); }, ${PARENT_CHECK_MS});`;
  new Worker(code, { eval: true, execArgv: [] }).unref();
}

const stream = new Socket({ fd: 3 });
const child = new Child(stream);
stream.on("close", () => process.exit(0));
process.on("uncaughtException", (error) => child.contain(error));
process.on("unhandledRejection", (error) => child.contain(error));
// The daemon ends this process; a Ctrl-C in a terminal reaches both.
process.on("SIGINT", () => {});
endWithParent();
