// The globals one generation sees. Timers, listeners on the process and console lines belong to its scope, so that an extension
// written for another host dies cleanly at a reload; nothing it prints reaches stdout, and it cannot end the daemon.
import { Console } from "node:console";
import { Readable, Writable } from "node:stream";
import * as timersPromises from "node:timers/promises";
import { promisify } from "node:util";
import type { Scope } from "../kernel/scope.ts";
import type { LoaderHost } from "./host.ts";
import { guardedMembers, INTRINSICS, ownEnvironment } from "./own-process.ts";

// Not imported: the named exports of "node:process" would be filled at start, which costs what building the list of all flags costs.
const nodeProcess = globalThis.process;

type AnyFunction = (...args: never[]) => unknown;
type Callback = (...args: unknown[]) => unknown;

/** Names the wrapper hands in, in the order of `OwnedGlobals.values`. */
export const GLOBAL_NAMES = [
  "globalThis",
  "global",
  "process",
  "console",
  "setTimeout",
  "clearTimeout",
  "setInterval",
  "clearInterval",
  "setImmediate",
  "clearImmediate",
  "queueMicrotask",
] as const;

export interface OwnedGlobals {
  readonly values: readonly unknown[];
  /** Replacement of one of Node's own modules, as a namespace, by name without `node:`; undefined for the others. */
  module(name: string): Record<string, unknown> | undefined;
}

export function createOwnedGlobals(scope: Scope, host: LoaderHost): OwnedGlobals {
  const timers = ownTimers(scope, host);
  const print = ownConsole(scope, host);
  const process = ownProcess(scope, host);
  const own: Record<string, unknown> = {
    ...timers.functions,
    queueMicrotask: ownMicrotasks(scope, host),
    console: print,
    process,
  };
  const world = overlay(globalThis, own, (key) => !(key in own || INTRINSICS.has(key)));
  own.globalThis = world;
  own.global = world;
  const made = new Map<string, Record<string, unknown>>();
  const makers: Record<string, () => object> = {
    process: () => process,
    console: () => print,
    timers: () => ({ ...timers.functions, promises: timers.promises }),
    "timers/promises": () => timers.promises,
  };
  const module = (name: string) => {
    const make = Object.hasOwn(makers, name) ? makers[name] : undefined;
    const namespace = made.get(name) ?? (make && namespaceOf(make()));
    if (namespace !== undefined) made.set(name, namespace);
    return namespace;
  };
  return { values: GLOBAL_NAMES.map((name) => own[name]), module };
}

/** An object that reads through to `target` and keeps what is written, and `own`, to itself. */
function overlay<T extends object>(
  target: T,
  own: Record<string, unknown>,
  writable: (key: string) => boolean = (key) => !(key in own),
): T {
  return new Proxy(target, {
    get: (_, key) => (typeof key === "string" && Object.hasOwn(own, key) ? own[key] : Reflect.get(target, key)),
    set: (_, key, value) => {
      if (typeof key === "string" && !writable(key)) {
        own[key] = value;
        return true;
      }
      return Reflect.set(target, key, value);
    },
  });
}

function namespaceOf(value: object): Record<string, unknown> {
  const names = new Set<string>();
  for (let at: object | null = value; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const name of Object.getOwnPropertyNames(at)) names.add(name);
  }
  names.delete("constructor");
  const namespace: Record<string, unknown> = {};
  // Getters, because reading all of `process` eagerly would build its stdin.
  for (const name of names) {
    Object.defineProperty(namespace, name, { enumerable: true, get: () => Reflect.get(value, name) });
  }
  Object.defineProperty(namespace, "default", { enumerable: true, value });
  return namespace;
}

interface TimerFunctions {
  functions: Record<string, AnyFunction>;
  promises: ReturnType<typeof ownTimersPromises>;
}

/** Timers the scope clears; a callback that throws is reported for its owner and the timer goes on. */
function ownTimers(scope: Scope, host: LoaderHost): TimerFunctions {
  const forget = new WeakMap<object, () => void>();
  const guarded = (callback: Callback, after: () => void) =>
    function run(this: unknown, ...args: unknown[]): void {
      host.runAs(scope, () => {
        try {
          after();
          callback.apply(this, args);
        } catch (error) {
          host.reportError({ owner: scope.owner.id, event: "timer", error, phase: "timer", generation: scope.generation });
        }
      });
    };
  const own = (timer: object, clear: () => void): void => {
    forget.set(timer, scope.track(clear, "timer"));
  };
  const release = (timer: object): void => {
    forget.get(timer)?.();
    forget.delete(timer);
  };
  const setTimeoutOwned = (callback: Callback, delay?: number, ...args: unknown[]): NodeJS.Timeout => {
    assertCallback(callback);
    const timer: NodeJS.Timeout = setTimeout(
      guarded(callback, () => release(timer)),
      delay,
      ...args,
    );
    own(timer, () => clearTimeout(timer));
    // `refresh` re-arms a timer that has fired, so it has to be owned again.
    timer.refresh = () => {
      release(timer);
      Object.getPrototypeOf(timer).refresh.call(timer);
      own(timer, () => clearTimeout(timer));
      return timer;
    };
    return timer;
  };
  const setIntervalOwned = (callback: Callback, delay?: number, ...args: unknown[]): NodeJS.Timeout => {
    assertCallback(callback);
    const timer = setInterval(
      guarded(callback, () => {}),
      delay,
      ...args,
    );
    own(timer, () => clearInterval(timer));
    return timer;
  };
  const setImmediateOwned = (callback: Callback, ...args: unknown[]): NodeJS.Immediate => {
    assertCallback(callback);
    const immediate: NodeJS.Immediate = setImmediate(
      guarded(callback, () => release(immediate)),
      ...args,
    );
    own(immediate, () => clearImmediate(immediate));
    return immediate;
  };
  const clear = (timer: unknown): void => {
    if (typeof timer === "object" && timer !== null) release(timer);
    // Numbers and strings name timers too; Node ignores what is none.
    clearTimeout(timer as NodeJS.Timeout);
    clearImmediate(timer as NodeJS.Immediate);
  };
  const promises = ownTimersPromises(scope);
  Object.defineProperty(setTimeoutOwned, promisify.custom, { value: promises.setTimeout });
  Object.defineProperty(setImmediateOwned, promisify.custom, { value: promises.setImmediate });
  return {
    promises,
    functions: {
      setTimeout: setTimeoutOwned,
      clearTimeout: clear,
      setInterval: setIntervalOwned,
      clearInterval: clear,
      setImmediate: setImmediateOwned,
      clearImmediate: clear,
    },
  };
}

/** Node loses who queued a microtask that throws. */
function ownMicrotasks(scope: Scope, host: LoaderHost): (callback: Callback) => void {
  return (callback) => {
    assertCallback(callback);
    queueMicrotask(() => {
      try {
        callback();
      } catch (error) {
        host.reportError({ owner: scope.owner.id, event: "async", error, phase: "async", generation: scope.generation });
      }
    });
  };
}

function assertCallback(callback: unknown): void {
  if (typeof callback === "function") return;
  throw new TypeError(`Expected a function as timer callback, found ${callback === null ? "null" : typeof callback}`);
}

interface WaitOptions {
  signal?: AbortSignal | undefined;
  ref?: boolean | undefined;
}

/** Waits end with an AbortError when the scope is disposed. */
function ownTimersPromises(scope: Scope) {
  const owned = <T>(options: WaitOptions | undefined, wait: (options: WaitOptions) => Promise<T>): Promise<T> => {
    const controller = new AbortController();
    const abort = () => controller.abort(options?.signal?.reason);
    if (options?.signal?.aborted) abort();
    else options?.signal?.addEventListener("abort", abort, { once: true });
    const forget = scope.track(() => controller.abort(scope.signal.reason), "timer");
    return wait({ ...options, signal: controller.signal }).finally(() => {
      forget();
      options?.signal?.removeEventListener("abort", abort);
    });
  };
  const wait = (delay?: number, value?: unknown, options?: WaitOptions) =>
    owned(options, (with_) => timersPromises.setTimeout(delay, value, with_));
  return {
    setTimeout: wait,
    setImmediate: (value?: unknown, options?: WaitOptions) =>
      owned(options, (with_) => timersPromises.setImmediate(value, with_)),
    setInterval: async function* (delay?: number, value?: unknown, options?: WaitOptions) {
      while (true) yield await wait(delay, value, options);
    },
    scheduler: {
      wait: (delay: number, options?: WaitOptions) => wait(delay, undefined, options),
      yield: () => wait(0),
    },
  };
}

/** A console whose lines go to the daemon's log, attributed. */
function ownConsole(scope: Scope, host: LoaderHost): Console {
  const line = (level: "info" | "warn") => (text: string) => {
    host.log[level](text.replace(/\n$/, ""), { extension: scope.owner.id });
    return true;
  };
  // Console asks no more of a stream than `write` when it does not handle stream errors.
  const stream = (level: "info" | "warn") => ({ write: line(level) }) as unknown as NodeJS.WritableStream;
  return new Console({ stdout: stream("info"), stderr: stream("warn"), ignoreErrors: false });
}

/** The process without its end, its stdin and its stdout; listeners belong to the scope. */
function ownProcess(scope: Scope, host: LoaderHost): NodeJS.Process {
  const refuse = (what: string) => (): never => {
    const error = new Error(`${what} is not available to extensions: it acts on the whole daemon. To end it use ctx.shutdown()`);
    host.reportError({ owner: scope.owner.id, event: what, error, phase: "async", generation: scope.generation });
    throw error;
  };
  const kill = (pid: number, signal?: string | number): true => {
    const ours = [0, nodeProcess.pid, -nodeProcess.pid, nodeProcess.ppid, -nodeProcess.ppid];
    if (ours.includes(Number(pid))) refuse("process.kill")();
    return nodeProcess.kill(pid, signal);
  };
  const own: Record<string, unknown> = {
    exit: refuse("process.exit"),
    reallyExit: refuse("process.reallyExit"),
    abort: refuse("process.abort"),
    kill,
    ...guardedMembers(refuse),
    ...ownListeners(scope),
  };
  lazily(own, "env", () => ownEnvironment(scope));
  lazily(own, "stdout", () => redirected(scope, host));
  lazily(own, "stdin", () => Readable.from([]));
  // Everything written (exitCode, title, …) stays with the extension.
  const proxy = overlay(nodeProcess, own, () => false);
  return proxy;
}

function lazily(target: Record<string, unknown>, name: string, make: () => unknown): void {
  let value: unknown;
  Object.defineProperty(target, name, {
    enumerable: true,
    configurable: true,
    get: () => {
      value ??= make();
      return value;
    },
    set: (next: unknown) => {
      value = next;
    },
  });
}

function redirected(scope: Scope, host: LoaderHost): Writable {
  return new Writable({
    decodeStrings: false,
    write: (chunk: unknown, _encoding, done) => {
      host.log.info(String(chunk).replace(/\n$/, ""), { extension: scope.owner.id, stream: "stdout" });
      done();
    },
  });
}

/** `process.on` and its relatives, undone with the scope. */
function ownListeners(scope: Scope): Record<string, AnyFunction> {
  const undos = new Map<string | symbol, Map<Callback, Array<() => void>>>();
  const forget = (event: string | symbol, listener: Callback) => undos.get(event)?.get(listener)?.pop()?.();
  const adding = (method: "on" | "once" | "prependListener" | "prependOnceListener") =>
    function add(this: unknown, event: string, listener: Callback) {
      (nodeProcess as NodeJS.EventEmitter)[method](event, listener);
      const undo = scope.track(() => void nodeProcess.off(event, listener), `process listener ${event}`);
      const ofEvent = undos.get(event) ?? new Map<Callback, Array<() => void>>();
      undos.set(event, ofEvent);
      ofEvent.set(listener, [...(ofEvent.get(listener) ?? []), undo]);
      return this;
    };
  const off = function remove(this: unknown, event: string, listener: Callback) {
    // The daemon's own listeners are not an extension's to remove.
    if ((undos.get(event)?.get(listener)?.length ?? 0) === 0) return this;
    forget(event, listener);
    nodeProcess.off(event, listener);
    return this;
  };
  const removeAll = function removeAllListeners(this: unknown, event?: string) {
    for (const [name, listeners] of undos) {
      if (event !== undefined && name !== event) continue;
      for (const listener of listeners.keys()) {
        nodeProcess.off(name, listener);
        forget(name, listener);
      }
    }
    return this;
  };
  return {
    on: adding("on"),
    addListener: adding("on"),
    once: adding("once"),
    prependListener: adding("prependListener"),
    prependOnceListener: adding("prependOnceListener"),
    off,
    removeListener: off,
    removeAllListeners: removeAll,
    listeners: (event: string) => [...(undos.get(event)?.keys() ?? [])],
    rawListeners: (event: string) => [...(undos.get(event)?.keys() ?? [])],
  };
}
