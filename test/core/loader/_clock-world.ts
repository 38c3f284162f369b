// A real kernel and loader on a clock that the test moves, the steps of a random sequence, and what must hold after each.
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { defineExtension, defineHook, defineTool, defineUiMethod, toolDecide, toolObserve, z } from "mortise/extension";
import { expect, vi } from "vitest";
import type { Kernel } from "../../../core/kernel/kernel.ts";
import type { BuiltinUnit } from "../../../core/loader/host.ts";
import { Loader } from "../../../core/loader/loader.ts";
import type { Frame } from "../../../protocol/frame.ts";
import { bareKernel } from "../../support/kernel.ts";
import { type Call, type Content, GATE_MS, Gen, HOOK_MS, Life, now, Oracle, sourceOf } from "./_clock.ts";
import { folderWith, virtualModules, write } from "./_support.ts";

export const TOOLS = ["t", "u"] as const;
export const BUILTIN = "builtin:d";

const confirm = defineUiMethod({
  name: "confirm",
  mode: "dialog",
  summary: "Asks",
  params: z.object({ title: z.string(), message: z.string() }),
  read: (answer) => (typeof answer.confirmed === "boolean" ? { value: answer.confirmed } : undefined),
  fallback: false,
  source: "mortise",
  example: { title: "t", message: "m" },
});

/** Real turns of the event loop: what is due now happens, the clock stands still. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 8; i++) await new Promise((resolve) => setImmediate(resolve));
}

export class World {
  readonly oracle = new Oracle();
  readonly kernel: Kernel;
  readonly frames: Frame[];
  readonly loader: Loader;
  readonly folder: string;
  readonly #known = new Set<string>([BUILTIN]);
  readonly #answered = new Set<string>();
  readonly #calls: Call[] = [];
  #content = 0;
  #keys = 0;

  private constructor(folder: string, cacheDir: string) {
    this.folder = folder;
    const bare = bareKernel({
      onQuarantine: (owner, reason, generation) => this.loader.quarantine(owner, reason, generation),
    });
    this.kernel = bare.kernel;
    this.frames = bare.frames;
    bare.add("builtin:ui", "builtin", confirm);
    const { bench } = this.oracle;
    this.loader = new Loader(this.#host(), {
      builtins: [this.#builtin()],
      roots: [],
      virtualModules: () => Promise.resolve({ ...virtualModules(), bench: { bench } }),
      isGate: (point) => point === "toolDecide" || point === "toolSeal",
      cacheDir,
    });
    this.oracle.lives.push(new Life(BUILTIN));
    this.loader.onActivated(({ unitId, scope, previous }) => {
      const life = this.oracle.life(unitId);
      const shape = bench.shapes.get(scope.signal);
      if (life === undefined || shape === undefined) throw new Error(`${unitId} went live unexpectedly`);
      expect(previous, "the replaced generation").toBe(life.active?.scope);
      expect(scope.generation, "generation numbers increase").toBeGreaterThan(life.number);
      life.number = scope.generation;
      life.commit(new Gen(scope, shape));
    });
  }

  static async start(): Promise<World> {
    const world = new World(await folderWith(), await folderWith());
    await world.loader.start();
    return world;
  }

  #host() {
    const { kernel } = this;
    return {
      registry: kernel.registry,
      log: kernel.log,
      createContext: kernel.createContext.bind(kernel),
      runAs: kernel.runAs.bind(kernel),
      reportError: kernel.reportError.bind(kernel),
    };
  }

  /** Has no exemption: the same tool, the same gate's points, the same ownership. */
  #builtin(): BuiltinUnit {
    const { bench } = this.oracle;
    return {
      id: BUILTIN,
      name: "d",
      definitions: () => {
        const version = `d${++this.#content}`;
        const tool = defineTool({
          name: "t",
          description: "t",
          params: z.object({ key: z.string().optional(), asks: z.boolean().optional() }),
          async run(ctx, { key, asks }) {
            if (key === undefined) return version;
            if (asks) return version + (await ctx.ui.call("confirm", { title: version, message: key }));
            await bench.wait(ctx.signal, key);
            return version + version;
          },
        });
        const observer = defineHook(toolObserve, ({ toolName, toolCallId }, ctx) =>
          toolName === `wait ${version}` ? bench.wait(ctx.signal, toolCallId) : undefined,
        );
        const setup = defineExtension({
          name: "d",
          contributes: [tool, observer],
          setup(scope) {
            bench.enter(scope.signal, { version, tools: ["t"], gate: false });
            scope.own(() => bench.undo(scope.signal), "mark");
            const timer = setInterval(() => bench.tick(scope.signal), 5000);
            scope.own(() => clearInterval(timer), "timer");
          },
        });
        return [setup];
      },
    };
  }

  // ── Units ────────────────────────────────────────────────────────────────────────────────────────────────────────────────

  path(name: string): string {
    return name === "d" ? BUILTIN : join(this.folder, name, "index.ts");
  }

  id(name: string): string {
    return name === "d" ? BUILTIN : join(this.folder, name);
  }

  life(name: string): Life | undefined {
    return this.oracle.life(this.id(name));
  }

  async put(name: string, content: Omit<Content, "version">): Promise<string> {
    const version = `${name}${++this.#content}`;
    await write(join(this.folder, name), {
      "_helper.ts": `export const version = "${version}";\n`,
      "index.ts": sourceOf({ ...content, version }),
    });
    return version;
  }

  /** Loads what lies there now; a unit that was not known comes in. */
  load(name: string): Promise<unknown> {
    const id = this.id(name);
    if (this.oracle.life(id) !== undefined) return this.loader.reload(id);
    this.oracle.lives.push(new Life(id));
    this.#known.add(id);
    return this.loader.addRoot({ path: id, origin: "user", kind: "unit" });
  }

  async remove(name: string): Promise<void> {
    const life = this.life(name);
    if (life === undefined || name === "d") return;
    // The helper stays: a call that still runs imports it, and it is looked for on disk.
    await rm(this.path(name), { force: true });
    const removed = this.loader.removeRoot(this.id(name));
    life.withdraw();
    this.oracle.lives.splice(this.oracle.lives.indexOf(life), 1);
    this.oracle.past.push(life);
    await removed;
  }

  async setEnabled(name: string, enabled: boolean): Promise<void> {
    const life = this.life(name);
    if (life === undefined || life.on === enabled) return;
    life.on = enabled;
    const done = this.loader.setEnabled(life.id, enabled);
    if (!enabled) life.withdraw();
    await done;
  }

  quarantine(name: string): void {
    this.oracle.quarantine(this.id(name));
    this.loader.quarantine(this.id(name), "of the test");
  }

  // ── Calls ────────────────────────────────────────────────────────────────────────────────────────────────────────────────

  #follow(gen: Gen, call: Omit<Call, "open" | "outcomes" | "expected" | "version" | "began">, work?: Promise<unknown>): void {
    const whole: Call = { ...call, version: gen.shape.version, began: now(), open: true, expected: undefined, outcomes: [] };
    gen.calls.add(whole);
    this.#calls.push(whole);
    if (work === undefined) return;
    const told = (outcome: unknown) => void whole.outcomes.push(outcome);
    work.then(told, () => told("given up"));
  }

  /** A tool call as the agent makes it: the lease of a run, the generation's context. */
  beginRun(tool: string, asks: boolean): void {
    const entry = this.kernel.registry.get("tool", tool);
    const gen = this.oracle.stack(tool)[0];
    if (entry === undefined || gen === undefined) return;
    const key = `run ${++this.#keys}`;
    const release = entry.scope.lease("run");
    const ctx = this.kernel.createContext(entry.scope);
    const work = this.kernel.runAs(entry.scope, async () => entry.definition.run(ctx as never, { key, asks } as never));
    const { version } = gen.shape;
    const ends = asks ? { done: `${version}true`, givenUp: `${version}false` } : { done: version + version, givenUp: "given up" };
    this.#follow(gen, { kind: "run", key, asks, ...ends }, work.finally(release));
  }

  /** A command's lease, of a command that hangs. */
  beginCall(name: string): void {
    const gen = this.life(name)?.active;
    if (gen === undefined) return;
    this.#follow(gen, {
      kind: "call",
      key: "",
      asks: false,
      done: undefined,
      givenUp: undefined,
      release: gen.scope.lease("call"),
    });
  }

  /** A hook at work, which the kernel leases and limits. */
  beginHook(name: string, how: "observe" | "decide" | "ask"): void {
    const gen = this.life(name)?.active;
    if (gen === undefined || !(gen.shape.gate || (how === "observe" && name === "d"))) return;
    const { version } = gen.shape;
    const key = `hook ${++this.#keys}`;
    const asks = how === "ask";
    const point = how === "observe" ? toolObserve : toolDecide;
    const input = { toolName: `${asks ? "ask" : "wait"} ${version}`, toolCallId: key };
    const work = this.kernel.hooks
      .run<never, unknown>(point as never, input as never, this.kernel.createContext(gen.scope))
      .then((verdict) => (verdict === undefined ? "pass" : "block"));
    const limitMs = how === "observe" ? HOOK_MS : GATE_MS;
    // A gate out of service blocks whatever the others say.
    const done = how !== "observe" && this.oracle.lives.some((life) => life.blocks) ? "block" : "pass";
    this.#follow(gen, { kind: "hook", limitMs, key, asks, done, givenUp: how === "observe" ? "pass" : "block" }, work);
  }

  /** Ends an open call in the ordinary way. */
  async end(pick: number): Promise<void> {
    const open = this.oracle.gens.flatMap((gen) => [...gen.calls].filter((call) => call.open).map((call) => ({ gen, call })));
    const chosen = open[pick % Math.max(1, open.length)];
    if (chosen === undefined) return;
    const { gen, call } = chosen;
    if (call.asks) {
      const frame = this.frames.find((one) => one.type === "extension_ui_request" && one["message"] === call.key);
      const id = String(frame?.["id"]);
      this.#answered.add(id);
      this.kernel.requests.answer(id, { confirmed: true });
    } else this.oracle.bench.release(call.key);
    call.release?.();
    call.release = undefined;
    gen.close(call, call.done);
    gen.refresh();
    await settle();
  }

  async advance(ms: number): Promise<void> {
    await vi.advanceTimersByTimeAsync(ms);
    await settle();
  }

  // ── What must hold ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** The verdict of the gates on `ls`: undefined, or why it is blocked. */
  verdict(): Promise<{ block: true; reason?: string } | undefined> {
    const ctx = this.kernel.createContext(
      this.oracle.life(BUILTIN)?.active?.scope ?? (this.kernel.registry.list("ui")[0]?.scope as never),
    );
    return this.kernel.hooks.run(toolDecide, { toolName: "ls" } as never, ctx);
  }

  /** What the model is told of tools. */
  toolBytes(): string {
    const tools = this.kernel.registry
      .list("tool")
      .map(({ name, definition }) => [name, definition.description, z.toJSONSchema(definition.params as z.ZodType)]);
    return JSON.stringify(tools);
  }

  /** Everything registered, by identity. */
  snapshot(): unknown[] {
    return [...this.kernel.registry.all("tool"), ...this.kernel.registry.all("hook")];
  }

  /** `loading`: units in the middle of a load, which has a limit. */
  async check(loading = 0): Promise<void> {
    this.oracle.refresh();
    await this.#checkRegistry();
    this.#checkGenerations();
    this.#checkCalls();
    this.#checkTimers(loading);
    this.#checkErrors();
  }

  /** Invariants 1, 2 and 12. */
  async #checkRegistry(): Promise<void> {
    const { registry } = this.kernel;
    for (const tool of TOOLS) {
      const stack = this.oracle.stack(tool);
      expect(registry.stack("tool", tool).map((entry) => entry.scope)).toEqual(stack.map((gen) => gen.scope));
      const entry = registry.get("tool", tool);
      const ctx = entry && this.kernel.createContext(entry.scope);
      expect(await entry?.definition.run(ctx as never, {} as never)).toBe(stack[0]?.shape.version);
    }
    for (const entry of [...registry.all("tool"), ...registry.all("hook")]) {
      if (this.oracle.lives.some((life) => life.blocks && life.id === entry.scope.owner.id)) continue;
      const gen = this.oracle.gens.find((one) => one.scope === entry.scope);
      expect([entry.scope.state, gen?.ended]).toEqual(["active", false]);
    }
    const active = this.oracle.lives.flatMap((life) => life.active ?? []);
    const hooks =
      active.filter((gen) => gen.shape.gate).length * 2 + active.filter((gen) => gen.shape.version.startsWith("d")).length;
    const blockers = this.oracle.lives.filter((life) => life.blocks);
    expect(registry.all("hook")).toHaveLength(hooks + blockers.length);
    expect(registry.all("tool")).toHaveLength(active.flatMap((gen) => gen.shape.tools).length);
    const first = this.oracle.lives.find((life) => life.blocks || life.active?.shape.gate);
    const verdict = await this.verdict();
    expect(verdict?.block).toBe(first === undefined ? undefined : true);
    if (first !== undefined)
      expect(verdict?.reason).toMatch(first.blocks ? /taken out of service/ : new RegExp(`^${first.active?.shape.version}$`));
  }

  /** Invariants 3 and 6. */
  #checkGenerations(): void {
    for (const life of this.oracle.all) {
      const alive = life.gens.filter((gen) => gen.scope.state !== "disposed");
      expect(alive.length, "generations of one unit").toBeLessThanOrEqual(2);
      for (const gen of life.gens) {
        const state = gen.ended ? "disposed" : gen === life.active ? "active" : "draining";
        expect([gen.shape.version, gen.scope.state]).toEqual([gen.shape.version, state]);
        expect(this.oracle.bench.undone.get(gen.scope.signal) ?? 0, "undone once, at its end").toBe(gen.ended ? 1 : 0);
        expect(gen.scope.effects).toEqual(gen.ended ? [] : ["mark", "timer"]);
        // A command that hangs holds its lease for good; it keeps nothing alive.
        const hung = [...gen.calls].filter((call) => !call.open && call.release !== undefined).length;
        expect(gen.scope.leases).toBe(gen.held(["run", "call", "hook"]) + hung);
        expect(gen.scope.runs).toBe(gen.held(["run"]));
      }
    }
    for (const info of this.loader.units()) {
      const life = this.oracle.life(info.id);
      expect([info.generation, info.draining]).toEqual([life?.active?.scope.generation ?? 0, life?.draining?.scope.generation]);
      if (life?.quarantined) expect(info.state).toBe("quarantined");
    }
  }

  /** Invariants 4 and 7. */
  #checkCalls(): void {
    for (const call of this.#calls) {
      if (call.kind !== "call") expect([call.key, call.outcomes]).toEqual([call.key, call.open ? [] : [call.expected]]);
      if (!call.asks) continue;
      const asked = this.frames.filter((frame) => frame.type === "extension_ui_request" && frame["message"] === call.key);
      expect(asked).toHaveLength(1);
      const id = String(asked[0]?.["id"]);
      const cancelled = this.frames.filter((frame) => frame["method"] === "cancel" && frame["targetId"] === id).length;
      expect(cancelled + (this.#answered.has(id) ? 1 : 0), "one end of a dialog").toBe(call.open ? 0 : 1);
    }
    expect(this.kernel.requests.size).toBe(this.#calls.filter((call) => call.open && call.asks).length);
  }

  /** Invariant 6: no timer but those of live generations, of drains and of hooks at work; and the transform worker's. */
  #checkTimers(loading: number): void {
    const live = this.oracle.gens.filter((gen) => !gen.ended);
    const drains = live.filter((gen) => gen.retiredAt !== undefined).length;
    const limits = this.#calls.filter((call) => call.open && call.limitMs !== undefined && !call.asks).length;
    const others = vi.getTimerCount() - live.length - drains - limits - loading;
    expect([0, 1], "timers of nobody").toContain(others);
    expect(this.oracle.bench.strays, "code of ended generations").toEqual([]);
  }

  /** Invariant 9. */
  #checkErrors(): void {
    const named = this.frames.filter((frame) => frame.type === "extension_error").map((frame) => String(frame["extensionPath"]));
    expect(named.filter((path) => !this.#known.has(path))).toEqual([]);
  }

  /** Ends what is open, removes the units and looks that nothing is left. */
  async clear(): Promise<void> {
    while (this.oracle.gens.some((gen) => gen.held(["run", "call", "hook"]) > 0)) await this.end(0);
    for (const call of this.#calls) {
      call.release?.();
      call.release = undefined;
    }
    for (const name of ["a", "b", "c"]) await this.remove(name);
    await this.setEnabled("d", false);
    await settle();
    await this.check();
    expect(this.oracle.gens.filter((gen) => !gen.ended)).toEqual([]);
    expect(this.oracle.gens.map((gen) => gen.scope.leases).filter((leases) => leases > 0)).toEqual([]);
    // What a sequence left is not looked at again and again by the next ones; failures count no longer.
    this.oracle.past.length = 0;
    this.#calls.length = 0;
    this.frames.length = 0;
    for (const life of this.oracle.lives) life.gens.length = 0;
    await this.advance(31_000);
    await this.setEnabled("d", true);
    await settle();
  }
}
