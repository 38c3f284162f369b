// The parts of `process` that reach the whole daemon, made an extension's own: its environment changes end with it, and it can
// neither raise nor take away what the daemon listens for.
import type { Scope } from "../kernel/scope.ts";

const nodeProcess = globalThis.process;

/** Events whose listeners decide over the life of the process. */
const FATAL_EVENTS: ReadonlySet<unknown> = new Set([
  "exit",
  "beforeExit",
  "uncaughtException",
  "unhandledRejection",
  "disconnect",
]);

/** What was there before any extension, and what each generation made of it, the last change at the end. */
interface Variable {
  readonly base: string | undefined;
  readonly layers: Map<Scope, string | undefined>;
}

const variables = new Map<string, Variable>();

function apply(key: string, variable: Variable): void {
  const values = [...variable.layers.values()];
  const value = values.length > 0 ? values.at(-1) : variable.base;
  if (value === undefined) delete nodeProcess.env[key];
  else nodeProcess.env[key] = value;
  if (values.length === 0) variables.delete(key);
}

/**
 * The real environment, whose changes are undone with the scope: children of the extension see them, commands of the daemon,
 * which run with the environment of the start, do not (agent-semantics §12.66). Generations overlap at a reload, so each has a
 * layer of its own.
 */
export function ownEnvironment(scope: Scope): NodeJS.ProcessEnv {
  const change = (key: string | symbol, value: string | undefined): boolean => {
    if (typeof key !== "string") return false;
    const variable = variables.get(key) ?? { base: nodeProcess.env[key], layers: new Map<Scope, string | undefined>() };
    variables.set(key, variable);
    if (!variable.layers.delete(scope)) {
      scope.track(() => {
        variable.layers.delete(scope);
        apply(key, variable);
      }, `environment ${key}`);
    }
    variable.layers.set(scope, value);
    apply(key, variable);
    return true;
  };
  return new Proxy(nodeProcess.env, {
    set: (_, key, value) => change(key, String(value)),
    defineProperty: (_, key, descriptor) => change(key, String(descriptor.value)),
    deleteProperty: (_, key) => change(key, undefined),
  });
}

/** Members of `process` that would end or deafen the daemon; `refuse` throws and reports. */
export function guardedMembers(refuse: (what: string) => () => never): Record<string, unknown> {
  const emit = (event: string | symbol, ...args: unknown[]): boolean => {
    if (FATAL_EVENTS.has(event) || (typeof event === "string" && event.startsWith("SIG"))) {
      refuse(`process.emit("${String(event)}")`)();
    }
    return (nodeProcess as NodeJS.EventEmitter).emit(event, ...args);
  };
  return {
    emit,
    chdir: refuse("process.chdir"),
    setUncaughtExceptionCaptureCallback: refuse("process.setUncaughtExceptionCaptureCallback"),
    _getActiveHandles: () => [],
    _getActiveRequests: () => [],
  };
}

/** Names of `globalThis` that all code of the daemon is built on: what an extension writes there stays its own. */
export const INTRINSICS: ReadonlySet<string> = new Set([
  ...[
    "Object",
    "Array",
    "Function",
    "Promise",
    "JSON",
    "Map",
    "Set",
    "WeakMap",
    "WeakSet",
    "WeakRef",
    "Symbol",
    "Proxy",
    "Reflect",
  ],
  ...[
    "Error",
    "TypeError",
    "RangeError",
    "SyntaxError",
    "AggregateError",
    "Date",
    "Math",
    "RegExp",
    "String",
    "Number",
    "Boolean",
  ],
  ...["BigInt", "ArrayBuffer", "SharedArrayBuffer", "Uint8Array", "DataView", "Atomics", "Intl", "FinalizationRegistry"],
  ...["parseInt", "parseFloat", "isNaN", "isFinite", "encodeURIComponent", "decodeURIComponent", "queueMicrotask"],
  ...["structuredClone", "Buffer", "AbortController", "AbortSignal", "Event", "EventTarget", "TextEncoder", "TextDecoder"],
  ...["URL", "URLSearchParams", "MessageChannel", "performance"],
]);
