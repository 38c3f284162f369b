// Who is running: the generation and request behind the current asynchronous call. Used to name the owner of errors from
// timers and promises, and to find the conversation of a detached `pi.*` call.
import { AsyncLocalStorage } from "node:async_hooks";
import type { ContextLocals, Invocation } from "./context.ts";
import type { Scope } from "./scope.ts";

/** Stops and restarts a handler's time limit while its own dialog is open (DESIGN §5 "Hooks"). */
export interface Budget {
  pause(): void;
  resume(): void;
}

export interface Call {
  readonly scope: Scope;
  readonly invocation: Invocation | undefined;
  readonly locals: Readonly<Partial<ContextLocals>>;
  readonly budget: Budget | undefined;
}

const storage = new AsyncLocalStorage<Call>();

export function currentCall(): Call | undefined {
  return storage.getStore();
}

/** Runs `fn` as `call`; what is missing is inherited from the call around it. */
export function runCall<T>(call: { scope: Scope } & Partial<Call>, fn: () => T): T {
  const outer = storage.getStore();
  return storage.run(
    {
      scope: call.scope,
      invocation: call.invocation ?? outer?.invocation,
      locals: call.locals ?? outer?.locals ?? {},
      budget: call.budget ?? outer?.budget,
    },
    fn,
  );
}

/** Runs `fn` with no call around it, so that what it starts is nobody's. */
export function runDetached<T>(fn: () => T): T {
  return storage.exit(fn);
}
