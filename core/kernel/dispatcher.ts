// One inbound line → a host's answer, settled at once, or a command. Serial commands share one lane and run in arrival order;
// concurrent ones leave it after their synchronous part. Every command is answered exactly once.
import type { Frame, RequestId } from "../../protocol/frame.ts";
import { runCall } from "./attribution.ts";
import type { Context, Invocation, Logger } from "./context.ts";
import type { CommandDefinition, CommandOverride, MaybePromise } from "./definition.ts";
import { CommandError, errorMessage, ToolError } from "./errors.ts";
import type { HostRequestTable } from "./host-request-table.ts";
import type { HostRequestDefinition } from "./host-requests.ts";
import type { Entry, Registry } from "./registry.ts";
import type { Scope } from "./scope.ts";
import { Serialized } from "./serialized.ts";
import { describeIssues } from "./validation.ts";

export interface DispatcherOptions {
  registry: Registry;
  requests: HostRequestTable;
  log: Logger;
  send(frame: Frame): void;
  /** Sends a frame that is already JSON text. */
  sendText(json: string): void;
  contextFor(scope: Scope, invocation: Invocation): Context;
  reportError(owner: string, event: string, error: unknown): void;
  /** Masks secrets in what a failure says. */
  redact(text: string): string;
  /** Called after each answered command, for an extension's shutdown request. */
  onAnswered(): void;
  /** Checks results against the definition's schema; for tests. */
  validateResults: boolean;
}

interface Task {
  type: string;
  id: RequestId | undefined;
  frame: Record<string, unknown>;
}

interface ControlRoute {
  request: HostRequestDefinition;
  isProgress: boolean;
}

/** How long a serial command that an extension had a hand in may keep the others waiting. */
const HOLD_LIMIT_MS = 40_000;
/** How long an override may run before the built-in answers instead. */
const OVERRIDE_TIMEOUT_MS = 30_000;
/** A serial command older than this is named in the log; it stalls the lane. */
const SLOW_COMMAND_MS = 10_000;

export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #running = new Set<Promise<void>>();
  #queue: Task[] = [];
  #head = 0;
  #busy = false;
  #open = false;
  #routes: { version: number; byType: Map<string, ControlRoute> } = { version: -1, byType: new Map() };

  constructor(options: DispatcherOptions) {
    this.#options = options;
  }

  /** Starts running commands; those read before wait for it. */
  open(): void {
    this.#open = true;
    this.#pump();
  }

  /** Commands that wait or run. */
  get outstanding(): number {
    return this.#queue.length - this.#head + this.#running.size;
  }

  /** Work that goes on behind an acknowledged command; the end of input waits for it as for a command. */
  track(work: Promise<unknown>): void {
    const done: Promise<void> = work
      .then(
        () => {},
        () => {},
      )
      .finally(() => this.#running.delete(done));
    this.#running.add(done);
  }

  /** Resolves when everything read so far is answered, or after `limitMs` without one more answer. */
  async whenSettled(limitMs: number): Promise<void> {
    while (this.outstanding > 0) {
      const before = this.outstanding;
      await Promise.race([Promise.all(this.#running), new Promise<void>((resolve) => setTimeout(resolve, limitMs).unref())]);
      if (this.outstanding >= before) return;
    }
  }

  /** One line without its newline. Never throws. */
  line(text: string): void {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (error) {
      return this.parseFailure(errorMessage(error));
    }
    if (value === null) return this.parseFailure("expected a JSON object, found null");
    if (typeof value !== "object" || Array.isArray(value)) return this.#undispatchable(value);
    const frame = value as Record<string, unknown>;
    const type = frame["type"];
    if (typeof type !== "string") return this.#undispatchable(value);
    if (this.#control(type, frame)) return;
    this.#command(type, frame);
  }

  /** A line that is not JSON, too long or not UTF-8 (000_…, "Error Model": `command: "parse"`, no id). */
  parseFailure(reason: string): void {
    const error = `Failed to parse command: ${reason.length > 300 ? `${reason.slice(0, 300)}…` : reason}`;
    this.#options.send({ type: "response", command: "parse", success: false, error });
  }

  #undispatchable(value: unknown): void {
    const found = Array.isArray(value)
      ? "an array"
      : typeof value === "object"
        ? "an object without a string `type`"
        : `a ${typeof value}`;
    const error = `Unknown command: undefined (expected an object with a string \`type\`, found ${found})`;
    this.#options.send({ type: "response", success: false, error });
  }

  /** Settles answers of the host; false when the frame is none. */
  #control(type: string, frame: Record<string, unknown>): boolean {
    if (type === "extension_ui_response") {
      if (typeof frame["id"] === "string") this.#options.requests.answer(frame["id"], frame);
      return typeof frame["id"] === "string";
    }
    const route = this.#routesNow().get(type);
    if (route === undefined || typeof frame["id"] !== "string") return false;
    const schema = route.isProgress ? route.request.progress : route.request.answer;
    const parsed = schema?.safeParse(frame);
    if (parsed?.success !== true) {
      return !route.isProgress && this.#options.requests.reject(frame["id"], new ToolError(route.request.misfitMessage));
    }
    const fields = parsed.data as Record<string, unknown>;
    if (route.isProgress) this.#options.requests.progress(frame["id"], fields);
    else this.#options.requests.answer(frame["id"], fields);
    return true;
  }

  #routesNow(): Map<string, ControlRoute> {
    const { registry } = this.#options;
    if (this.#routes.version !== registry.version) {
      const byType = new Map<string, ControlRoute>();
      for (const { definition } of registry.list("host request")) {
        byType.set(definition.answerType, { request: definition, isProgress: false });
        if (definition.progressType !== undefined) byType.set(definition.progressType, { request: definition, isProgress: true });
      }
      this.#routes = { version: registry.version, byType };
    }
    return this.#routes.byType;
  }

  #command(type: string, frame: Record<string, unknown>): void {
    const id = frame["id"];
    if (id !== undefined && typeof id !== "string" && typeof id !== "number") {
      const found = id === null ? "null" : Array.isArray(id) ? "an array" : `a value of type ${typeof id}`;
      const error = `Invalid request id: expected a string or a number, found ${found}`;
      this.#options.send({ type: "response", command: type, success: false, error, code: "invalid_params" });
      return;
    }
    this.#queue.push({ type, id, frame });
    if (!this.#busy && this.#open) this.#pump();
  }

  #pump(): void {
    if (this.#busy || !this.#open) return;
    this.#busy = true;
    while (this.#head < this.#queue.length) {
      const task = this.#queue[this.#head++] as Task;
      const wait = this.#start(task);
      if (wait !== undefined) {
        void wait.then(() => {
          this.#busy = false;
          this.#pump();
        });
        return;
      }
    }
    this.#queue = [];
    this.#head = 0;
    this.#busy = false;
  }

  /** Runs a command; a promise means the lane waits for it. */
  #start(task: Task): Promise<void> | undefined {
    const entry = this.#options.registry.get("command", task.type);
    if (entry === undefined) {
      const name = task.type.length > 100 ? `${task.type.slice(0, 100)}…` : task.type;
      // 000_…, "Edge behavior": unknown commands are answered without the id.
      this.#options.send({ type: "response", command: name, success: false, error: `Unknown command: ${name}` });
      return undefined;
    }
    const { definition } = entry;
    const params = definition.params.safeParse(task.frame);
    if (!params.success) {
      const error = `Invalid parameters for "${task.type}": ${describeIssues(params.error)}`;
      this.#fail(task, new CommandError(error, "invalid_params"));
      return undefined;
    }
    return this.#run(task, entry, params.data);
  }

  #run(task: Task, entry: Entry<"command">, params: unknown): Promise<void> | undefined {
    const { definition, scope } = entry;
    const invocation: Invocation = { id: task.id, command: task.type, agentInvoked: false, pending: new Set() };
    const release = scope.lease();
    const succeed = (data: unknown) => {
      invocation.answered = true;
      this.#succeed(task, definition, data);
    };
    const fail = (error: unknown) => {
      invocation.answered = true;
      this.#fail(task, error);
    };
    let result: MaybePromise<unknown>;
    try {
      const ctx = this.#options.contextFor(scope, invocation);
      result = runCall({ scope, invocation, locals: {} }, () => this.#withOverrides(definition, ctx, params));
    } catch (error) {
      release();
      fail(error);
      return undefined;
    }
    if (!(result instanceof Promise)) {
      release();
      succeed(result);
      return undefined;
    }
    const slow = definition.concurrency === "serial" ? this.#watchSlow(task.type) : undefined;
    const done = result.then(succeed, fail).finally(() => {
      clearTimeout(slow);
      release();
      this.#running.delete(done);
    });
    this.#running.add(done);
    if (definition.concurrency !== "serial") return undefined;
    return this.#isOwn(task.type) ? done : this.#letGo(done, task.type, scope);
  }

  /** A command of an extension that does not end must not keep the host from all others. */
  async #letGo(done: Promise<void>, type: string, { owner }: Scope): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        const error = new Error(`It has held the lane for ${HOLD_LIMIT_MS / 1000} s; later commands go on without it`);
        const [override] = this.#options.registry.stack("command override", type);
        this.#options.reportError(override?.scope.owner.id ?? owner.id, `command:${type}`, error);
        resolve();
      }, HOLD_LIMIT_MS).unref();
    });
    await Promise.race([done, limit]);
    clearTimeout(timer);
  }

  #watchSlow(type: string): NodeJS.Timeout {
    const timer = setTimeout(() => {
      this.#options.log.warn(`Command "${type}" has held the lane for ${SLOW_COMMAND_MS / 1000} s; later commands wait for it`);
    }, SLOW_COMMAND_MS);
    return timer.unref();
  }

  #withOverrides(definition: CommandDefinition, ctx: Context, params: unknown): MaybePromise<unknown> {
    if (definition.sealed === true) return definition.run(ctx, params);
    const overrides = this.#options.registry.stack("command override", definition.name);
    if (overrides.length === 0) return definition.run(ctx, params);
    return this.#overridden(overrides, 0, definition, ctx, params);
  }

  /** A throw or time-out before `next` lets the shadowed command answer and reports the unit (DESIGN §9). */
  async #overridden(
    overrides: readonly Entry<"command override">[],
    index: number,
    definition: CommandDefinition,
    ctx: Context,
    params: unknown,
  ): Promise<unknown> {
    const entry = overrides[index];
    if (entry === undefined) return definition.run(ctx, params);
    const override: CommandOverride = entry.definition;
    let passed: Promise<unknown> | undefined;
    const next = () => {
      passed ??= this.#overridden(overrides, index + 1, definition, ctx, params);
      return passed;
    };
    const release = entry.scope.lease();
    let timer: NodeJS.Timeout | undefined;
    try {
      const run = runCall({ scope: entry.scope }, async () =>
        override.run(ctx.derive({ scope: entry.scope }), params as never, next),
      );
      const limit = new Promise<never>((_resolve, reject) => {
        timer = setTimeout(() => {
          if (passed === undefined)
            reject(new Error(`Override of "${definition.name}" took longer than ${OVERRIDE_TIMEOUT_MS} ms`));
        }, OVERRIDE_TIMEOUT_MS);
      });
      return await Promise.race([run, limit]);
    } catch (error) {
      if (passed !== undefined) throw error;
      this.#options.reportError(entry.scope.owner.id, `command:${definition.name}`, error);
      return await next();
    } finally {
      clearTimeout(timer);
      release();
    }
  }

  #succeed(task: Task, definition: CommandDefinition, data: unknown): void {
    if (this.#options.validateResults && !Serialized.is(data)) {
      const problem = resultProblem(definition, data);
      if (problem !== undefined) return this.#fail(task, new Error(problem));
    }
    if (Serialized.is(data)) {
      const json = this.#isOwn(task.type) ? data.json : sameJson(data.json);
      if (json === undefined) return this.#fail(task, new Error(`What "${task.type}" answers with as serialised is no JSON`));
      const id = task.id === undefined ? "" : `"id":${JSON.stringify(task.id)},`;
      this.#options.sendText(`{${id}"type":"response","command":"${task.type}","success":true,"data":${json}}`);
    } else {
      this.#options.send(
        data === undefined
          ? { id: task.id, type: "response", command: task.type, success: true }
          : { id: task.id, type: "response", command: task.type, success: true, data },
      );
    }
    this.#options.onAnswered();
  }

  /** True when nobody but a built-in had a hand in the answer: text of others must not reach the line unseen. */
  #isOwn(type: string): boolean {
    const { registry } = this.#options;
    const isBuiltin = registry.get("command", type)?.scope.owner.origin === "builtin";
    return isBuiltin && registry.stack("command override", type).length === 0;
  }

  #fail(task: Task, error: unknown): void {
    this.#options.send(failureFrame(task.id, task.type, error, this.#options.redact));
    if (!CommandError.is(error)) {
      this.#options.log.error(`Command "${task.type}" failed`, { error: errorMessage(error), stack: (error as Error)?.stack });
    }
    this.#options.onAnswered();
  }
}

/** The failure response of a command. */
export function failureFrame(
  id: RequestId | undefined,
  command: string,
  error: unknown,
  redact: (text: string) => string,
): Frame {
  const frame: Frame = { id, type: "response", command, success: false, error: redact(errorMessage(error)) };
  if (CommandError.is(error)) {
    if (error.code !== undefined) frame["code"] = error.code;
  } else {
    frame["code"] = "internal";
  }
  return frame;
}

function resultProblem(definition: CommandDefinition, data: unknown): string | undefined {
  if (definition.result === undefined) {
    return data === undefined ? undefined : `Command "${definition.name}" declares no result but returned one`;
  }
  if (data === undefined || data === null) return undefined;
  const parsed = definition.result.safeParse(data);
  return parsed.success ? undefined : `Result of "${definition.name}" does not fit its schema: ${describeIssues(parsed.error)}`;
}

/** The same JSON in one line; undefined when it is none. */
function sameJson(text: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return undefined;
  }
}
