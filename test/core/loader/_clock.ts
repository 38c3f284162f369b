// Beside a loader and a kernel whose clock a test moves: what extensions do there, and an oracle that says from DESIGN §5 which
// generation answers, which may drain and until when, which calls are open and which timers live.
import type { Scope } from "../../../core/kernel/scope.ts";

/** DESIGN §5 "Reload": hooks, commands and timers. */
const DRAIN_MS = 30_000;
/** How exactly the end of a run past that limit is noticed. */
const RUN_CHECK_MS = 1_000;
export const HOOK_MS = 30_000;
/** DESIGN §9 "Limits": a gate's dialog, and so a gate, 5 minutes. */
export const GATE_MS = 300_000;
/** docs/extensions.md: ten asynchronous failures within ten seconds. */
const STRIKES = 10;
const STRIKE_WINDOW_MS = 10_000;

export const now = () => performance.now();

export interface Shape {
  version: string;
  tools: readonly string[];
  gate: boolean;
}

/** A call the test started: `run` a tool call, `call` a lease as a command holds it, `hook` a gate at work. */
export interface Call {
  readonly kind: "run" | "call" | "hook";
  /** Of a hook. */
  readonly limitMs?: number | undefined;
  readonly key: string;
  readonly version: string;
  readonly began: number;
  /** Its code waits for a dialog, which stops the limit of a hook. */
  readonly asks: boolean;
  /** What it comes to in the ordinary way. */
  readonly done: unknown;
  /** What it comes to when it is given up. */
  readonly givenUp: unknown;
  /** Of a plain lease. */
  release?: (() => void) | undefined;
  open: boolean;
  /** What it must come to, once it is over. */
  expected: unknown;
  /** What it came to; more than one would be a call that returned twice. */
  readonly outcomes: unknown[];
}

export class Gen {
  readonly scope: Scope;
  readonly shape: Shape;
  readonly calls = new Set<Call>();
  retiredAt: number | undefined;
  lastRunAt = Number.NEGATIVE_INFINITY;
  ended = false;

  constructor(scope: Scope, shape: Shape) {
    this.scope = scope;
    this.shape = shape;
  }

  held(kinds: readonly Call["kind"][]): number {
    return [...this.calls].filter((call) => call.open && kinds.includes(call.kind)).length;
  }

  /** Closes a call with what it must come to. */
  close(call: Call, expected: unknown): void {
    call.open = false;
    call.expected = expected;
    if (call.kind === "run") this.lastRunAt = now();
  }

  /** Brings the generation up to the present, or to another moment. */
  refresh(at = now()): void {
    for (const call of this.calls) {
      if (call.open && !call.asks && call.limitMs !== undefined && at >= call.began + call.limitMs) {
        this.close(call, call.givenUp);
      }
    }
    if (this.retiredAt === undefined || this.ended) return;
    if (this.held(["run", "call", "hook"]) === 0) return this.end();
    if (this.held(["run"]) > 0) return;
    const deadline = this.retiredAt + DRAIN_MS;
    if (at < deadline) return;
    // Past the limit the end of the last run is seen within a second; until then either is right.
    if (this.lastRunAt < deadline || at >= this.lastRunAt + RUN_CHECK_MS || this.scope.state === "disposed") this.end();
  }

  /** No further code of it runs: what is open is given up. */
  end(): void {
    this.ended = true;
    for (const call of this.calls) if (call.open) this.close(call, call.givenUp);
  }
}

/** One life of a unit, from its appearance to its removal. */
export class Life {
  readonly id: string;
  readonly gens: Gen[] = [];
  active: Gen | undefined;
  on = true;
  /** The gate of a unit out of service; it blocks. */
  blocks = false;
  quarantined = false;
  number = 0;

  constructor(id: string) {
    this.id = id;
  }

  get draining(): Gen | undefined {
    return this.gens.find((gen) => gen !== this.active && !gen.ended);
  }

  refresh(): void {
    for (const gen of this.gens) gen.refresh();
  }

  commit(gen: Gen): void {
    this.#retire(gen);
    this.gens.push(gen);
    this.quarantined = false;
    this.blocks = false;
  }

  withdraw(): void {
    this.#retire(undefined);
    this.quarantined = false;
    this.blocks = false;
  }

  quarantine(): void {
    const gate = this.active?.shape.gate === true;
    this.#retire(undefined);
    this.quarantined = true;
    this.blocks = gate;
  }

  /** One is active, one may drain; the middle of three goes at once. */
  #retire(next: Gen | undefined): void {
    this.refresh();
    const old = this.active;
    const drains = this.draining !== undefined;
    this.active = next;
    if (old === undefined) return;
    old.retiredAt = now();
    if (drains) old.end();
    else old.refresh();
  }
}

export class Oracle {
  /** Known now, in order of discovery. */
  readonly lives: Life[] = [];
  readonly past: Life[] = [];
  readonly bench = new Bench(this);
  readonly #strikes = new Map<string, number[]>();

  get all(): Life[] {
    return [...this.lives, ...this.past];
  }

  get gens(): Gen[] {
    return this.all.flatMap((life) => life.gens);
  }

  life(id: string): Life | undefined {
    return this.lives.find((life) => life.id === id);
  }

  refresh(): void {
    for (const life of this.all) life.refresh();
  }

  /** Who answers a name, then who is hidden: users by discovery, the built-in last. */
  stack(tool: string): Gen[] {
    const rank = (life: Life) => (life.id.startsWith("builtin:") ? 1 : 0);
    const sorted = [...this.lives].sort((a, b) => rank(a) - rank(b));
    return sorted.flatMap((life) => (life.active?.shape.tools.includes(tool) ? [life.active] : []));
  }

  /** Takes a unit out of service, if it is in it; the report of that counts, unless failures led to it. */
  quarantine(id: string): void {
    const life = this.life(id);
    if (life?.active === undefined) return;
    const { generation } = life.active.scope;
    life.quarantine();
    this.strike(id, generation);
  }

  strike(id: string, generation: number): void {
    const key = `${id} ${generation}`;
    const strikes = [...(this.#strikes.get(key) ?? []).filter((at) => now() - at < STRIKE_WINDOW_MS), now()];
    this.#strikes.set(key, strikes);
    if (strikes.length < STRIKES) return;
    this.#strikes.delete(key);
    const life = this.life(id);
    if (life?.active?.scope.generation === generation) life.quarantine();
  }
}

/** The module "bench" of the extensions: where their code waits, and tells what it does. */
export class Bench {
  readonly shapes = new Map<AbortSignal, Shape>();
  readonly undone = new Map<AbortSignal, number>();
  /** Code of generations that should run no more. */
  readonly strays: string[] = [];
  faults = 0;
  readonly #oracle: Oracle;
  readonly #waiting = new Map<string, () => void>();
  readonly #hung = new Set<() => void>();
  #onHang: (() => void) | undefined;

  constructor(oracle: Oracle) {
    this.#oracle = oracle;
  }

  enter = (signal: AbortSignal, shape: Shape): void => void this.shapes.set(signal, shape);

  undo = (signal: AbortSignal): void => void this.undone.set(signal, (this.undone.get(signal) ?? 0) + 1);

  tick = (signal: AbortSignal): void => {
    const gen = this.#oracle.gens.find((one) => one.scope.signal === signal);
    // What is due at this very moment may come before or after it.
    gen?.refresh(now() - 0.5);
    if (gen === undefined || gen.ended) this.strays.push(this.shapes.get(signal)?.version ?? "a generation that never was live");
  };

  fault = (signal: AbortSignal, owner: string): never => {
    this.tick(signal);
    this.faults++;
    const gen = this.#oracle.gens.find((one) => one.scope.signal === signal);
    if (gen !== undefined) this.#oracle.strike(owner, gen.scope.generation);
    throw new Error(`fault ${this.faults}`);
  };

  wait = (signal: AbortSignal, key: string): Promise<void> =>
    new Promise((resolve, reject) => {
      this.#waiting.set(key, resolve);
      signal.addEventListener("abort", () => reject(new Error("given up")), { once: true });
    });

  release(key: string): void {
    this.#waiting.get(key)?.();
    this.#waiting.delete(key);
  }

  hang = (): Promise<void> =>
    new Promise((resolve) => {
      this.#hung.add(resolve);
      this.#onHang?.();
    });

  /** Resolves when code hangs. */
  hanging(): Promise<void> {
    return new Promise((resolve) => {
      this.#onHang = resolve;
    });
  }

  /** Lets everything that hangs go on, too late. */
  unhang(): void {
    for (const resolve of this.#hung) resolve();
    this.#hung.clear();
  }
}

export type Broken = "syntax" | "throw" | "empty" | "twice" | "setup" | "slow load" | "slow setup";
export interface Content extends Shape {
  broken?: Broken | undefined;
  /** Milliseconds between the failures of its timer. */
  faulty?: number | undefined;
}

/** A unit and its helper, which holds the version. */
export function sourceOf(content: Content): string {
  const { broken, tools, gate, faulty } = content;
  if (broken === "syntax") return "export default (";
  if (broken === "empty") return "export {}";
  const shape = `{ version, tools: ${JSON.stringify(tools)}, gate: ${gate} }`;
  const list = broken === "twice" ? [...tools, ...tools] : tools;
  const contributes = [...list.map((name) => `tool("${name}")`), ...(gate ? ["gate", "observer"] : [])];
  return `import { defineExtension, defineHook, defineTool, toolDecide, toolObserve, z } from "mortise/extension";
import { bench } from "bench";
import { version } from "./_helper.ts";
${broken === "throw" ? 'throw new Error("at its load")' : broken === "slow load" ? "await bench.hang()" : ""};
const tool = (name) => defineTool({ name, description: name, params: z.object({ key: z.string().optional(), asks: z.boolean().optional() }),
  async run(ctx, { key, asks }) {
    if (key === undefined) return version;
    if (asks) return version + (await ctx.ui.confirm({ title: version, message: key }));
    await bench.wait(ctx.signal, key);
    return version + (await import("./_helper.ts")).version;
  } });
const gate = defineHook(toolDecide, ({ toolName, toolCallId: key }, ctx) => {
  if (toolName === "ls") return { block: true, reason: version };
  if (toolName === "wait " + version) return bench.wait(ctx.signal, key);
  if (toolName === "ask " + version) return ctx.ui.confirm({ title: version, message: key }).then((yes) => (yes ? undefined : { block: true, reason: version }));
});
const observer = defineHook(toolObserve, ({ toolName, toolCallId: key }, ctx) => (toolName === "wait " + version ? bench.wait(ctx.signal, key) : undefined));
export default defineExtension({ name: "e", contributes: [${contributes}], async setup(s) {
  bench.enter(s.signal, ${shape});
  s.own(() => bench.undo(s.signal), "mark");
  ${broken === "slow setup" ? "await bench.hang();" : ""}
  setInterval(() => ${faulty === undefined ? "bench.tick(s.signal)" : "bench.fault(s.signal, s.owner)"}, ${faulty ?? 5000});
  ${broken === "setup" ? 'throw new Error("at its set-up")' : ""}
} });
`;
}
