// Handlers of one generation: subscription, and the events that belong to the generation itself: session_start and
// resources_discover when it went live, session_shutdown when it retires.
import { defineHook, sessionBranched, sessionSwitched } from "mortise/extension";
import { beforeCompactHook, compactedHook, compactionFailedHook } from "./_compaction-events.ts";
import { createContext } from "./_context.ts";
import { HOOKS, previous } from "./_events.ts";
import { FrameObservers } from "./_frame-observers.ts";
import { discoverResources, keepResources } from "./_resources.ts";
import type { Handler, Runtime } from "./_runtime.ts";
import { beforeTreeHook, treeHook } from "./_tree-events.ts";
import { userBashOverride } from "./_user-bash.ts";

/** Events of the generation itself, which no other extension hears. */
const OWN: ReadonlySet<string> = new Set(["session_start", "session_shutdown", "resources_discover"]);

export class Lifecycle {
  readonly #runtime: Runtime;
  readonly #frames: FrameObservers;
  readonly #own = new Map<string, Handler[]>();
  readonly #counts = new Map<string, number>();
  #watchesSwitches = false;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#frames = new FrameObservers(runtime);
  }

  /** Subscribes a handler. The returned function unsubscribes it. */
  on(event: string, handler: Handler): () => void {
    this.#counts.set(event, (this.#counts.get(event) ?? 0) + 1);
    const off = this.#subscribe(event, handler);
    let subscribed = true;
    return () => {
      if (!subscribed) return;
      subscribed = false;
      this.#counts.set(event, (this.#counts.get(event) ?? 1) - 1);
      off();
    };
  }

  #subscribe(event: string, handler: Handler): () => void {
    const { scope } = this.#runtime;
    if (OWN.has(event)) return this.#subscribeOwn(event, handler);
    if (event === "user_bash") return scope.add(userBashOverride(this.#runtime, handler));
    if (event === "session_before_compact") return scope.add(beforeCompactHook(this.#runtime, handler));
    if (event === "session_before_tree") return scope.add(beforeTreeHook(this.#runtime, handler));
    if (event === "session_tree") return scope.add(treeHook(this.#runtime, handler));
    if (event === "session_compact_failed") return scope.add(compactionFailedHook(this.#runtime, handler));
    if (event === "session_compact") return scope.add(compactedHook(this.#runtime, handler));
    const hooks = Object.hasOwn(HOOKS, event) ? HOOKS[event] : undefined;
    if (hooks !== undefined) return scope.add(...hooks(this.#runtime, handler));
    return this.#frames.on(event, handler);
  }

  #subscribeOwn(event: string, handler: Handler): () => void {
    this.#own.set(event, [...(this.#own.get(event) ?? []), handler]);
    if (event === "session_start") this.#watchSwitches();
    return () => {
      this.#own.set(
        event,
        (this.#own.get(event) ?? []).filter((each) => each !== handler),
      );
    };
  }

  /** Hooks the generation into the loader. */
  install(): void {
    const { scope } = this.#runtime;
    if (this.#own.has("resources_discover")) keepResources(this.#runtime);
    scope.onRetire?.((reason) => this.#tell("session_shutdown", { reason: reason === "reload" ? "reload" : "quit" }));
    scope.onLive?.((reason) => {
      this.#runtime.setLive();
      this.#frames.remember(scope.ctx.conversation);
      return this.#goneLive(reason);
    });
  }

  async #goneLive(reason: string): Promise<void> {
    await this.#tell("session_start", { reason });
    const handlers = this.#own.get("resources_discover") ?? [];
    if (handlers.length > 0) await discoverResources(this.#runtime, handlers, reason === "reload" ? "reload" : "startup");
  }

  /** pi: a new, resumed or forked session starts again. Extensions that listen for switches themselves are told only there. */
  #watchSwitches(): void {
    if (this.#watchesSwitches || this.#runtime.traits.promptBlocks) return;
    this.#watchesSwitches = true;
    const told = (event: string) => (this.#counts.get(event) ?? 0) > 0;
    this.#runtime.scope.add(
      defineHook(
        sessionSwitched,
        async ({ reason, previousFile }) => {
          if (reason === "startup" || told("session_switch")) return;
          await this.#tell("session_start", { reason: reason === "resume" ? "resume" : "new", ...previous(previousFile) });
        },
        { attachedOnly: true },
      ),
      defineHook(
        sessionBranched,
        async ({ previousFile }) => {
          if (!told("session_fork") && !told("session_branch")) {
            await this.#tell("session_start", { reason: "fork", ...previous(previousFile) });
          }
        },
        { attachedOnly: true },
      ),
    );
  }

  /** Tells the handlers of this generation alone, one after another; a failure is reported and the next one is told. */
  async #tell(type: string, fields: Record<string, unknown>): Promise<void> {
    const runtime = this.#runtime;
    const { ctx } = runtime.scope;
    for (const handler of this.#own.get(type) ?? []) {
      try {
        await runtime.run(ctx, () => handler({ type, ...fields }, createContext(runtime, ctx)));
      } catch (error) {
        runtime.report(type, error);
      }
    }
  }
}
