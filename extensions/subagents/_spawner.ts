// Starts subagents for tool calls and keeps the places where they may nest, how many work at once, and who may start whom.
import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  AgentAgents,
  type AgentDefinition,
  AgentIsolationMode,
  AgentMaxConcurrency,
  AgentMaxNestedSpawnDepth,
  type Context,
  type ConversationHandle,
  Conversations,
  type SpawnRequest,
  type SpawnTask,
  type SubagentResult,
  type SubagentSnapshot,
  type Subagents,
  type SubscriptionLevel,
  ToolError,
} from "mortise/extension";
import { Assignment } from "./_assignment.ts";
import { Child, type ChildPlan, type ChildPorts } from "./_child.ts";
import { readDefinitions } from "./_definitions.ts";
import { Coalesced } from "./_progress.ts";
import { closeRecords } from "./_record.ts";
import { SubagentRegistry, type Tracked } from "./_registry.ts";
import { Semaphore } from "./_semaphore.ts";

const DEFAULT_AGENT = "task";
const MAX_NAME = 48;
/** The loop waits 80 ms for a tool that was aborted; what the subagents had said is stored within a few. */
const ABORT_GRACE_MS = 50;

export class Spawner implements Subagents {
  readonly #ctx: Context;
  readonly #registry: SubagentRegistry;
  readonly #children = new Map<ConversationHandle, Child>();
  readonly #semaphores = new WeakMap<ConversationHandle, Semaphore>();
  /** Conversations being closed, working trees being removed. */
  readonly #behind = new Set<Promise<unknown>>();
  /** Complaints about files that were told already. */
  readonly #warned = new Set<string>();

  constructor(ctx: Context) {
    this.#ctx = ctx;
    this.#registry = new SubagentRegistry(ctx);
    const conversations = ctx.use(Conversations);
    const off = conversations.onChange(({ type, conversation }) => {
      if (type === "attached") this.#registry.attached(conversation);
      if (type === "created" && !conversation.isSubagent) this.#closeRecords(conversation);
    });
    for (const conversation of conversations.list()) if (!conversation.isSubagent) this.#closeRecords(conversation);
    ctx.scope.own(async () => {
      off();
      await Promise.allSettled(this.#behind);
    }, "subagents");
  }

  get level(): SubscriptionLevel {
    return this.#registry.level;
  }
  set level(level: SubscriptionLevel) {
    this.#registry.level = level;
  }

  canSpawn(parent: ConversationHandle): boolean {
    const limit = this.#ctx.setting(AgentMaxNestedSpawnDepth);
    const { depth, spawns } = parent.slot(Assignment).get();
    if (limit >= 0 && depth >= limit) return false;
    return !parent.isSubagent || spawns !== undefined;
  }

  async definitions(parent: ConversationHandle): Promise<readonly AgentDefinition[]> {
    const found = await readDefinitions(this.#ctx, parent, (message) => this.#warn(message));
    const overrides = this.#ctx.setting(AgentAgents);
    const allowed = parent.slot(Assignment).get().spawns ?? "*";
    return [...found.values()].filter(({ name }) => {
      return overrides[name]?.enabled !== false && (allowed === "*" || allowed.includes(name));
    });
  }

  async run(request: SpawnRequest): Promise<SubagentResult[]> {
    const { parent, signal } = request;
    if (!this.canSpawn(parent))
      throw new ToolError("Subagents cannot be started here: they are nested too deeply, or not allowed to");
    const plans = await this.#plan(request);
    if (signal.aborted) return plans.map((plan) => neverRun(plan, signal));
    const own = this.#children.get(parent);
    const work = () => this.#runAll(request, plans);
    return own === undefined || request.detached === true ? work() : own.whileWaiting(work, signal);
  }

  snapshots(): SubagentSnapshot[] {
    return this.#registry.snapshots();
  }

  sessionFile(selector: { id?: string | undefined; file?: string | undefined }): string {
    return this.#registry.sessionFile(selector);
  }

  #runAll({ onProgress, signal }: SpawnRequest, plans: readonly ChildPlan[]): Promise<SubagentResult[]> {
    const shown = new Coalesced(() => onProgress?.(children.map((child) => child.progress.read())));
    const children = plans.map((plan) => {
      this.#registry.add(plan.tracked);
      return new Child(plan, this.#ports(plan), () => shown.touch());
    });
    const all = Promise.all(children.map((child) => child.run(signal)));
    // A call that is given up answers with what there is: its run does not wait for the unwinding of its subagents.
    const early = new Promise<SubagentResult[]>((resolve) => {
      let timer: NodeJS.Timeout | undefined;
      const giveUp = () => {
        timer = setTimeout(() => resolve(children.map((child) => child.result(signal))), ABORT_GRACE_MS);
      };
      if (signal.aborted) giveUp();
      else signal.addEventListener("abort", giveUp, { once: true });
      void all.finally(() => {
        clearTimeout(timer);
        signal.removeEventListener("abort", giveUp);
      });
    });
    this.#keep(all);
    return Promise.race([all, early]).finally(() => shown.close());
  }

  /** What the session says is running belonged to a process that is gone, unless an earlier generation of ours runs it. */
  #closeRecords(conversation: ConversationHandle): void {
    const live = this.#ctx.use(Conversations).list();
    const files = live.flatMap((each) => (each.isSubagent && each.log.file !== undefined ? [each.log.file] : []));
    closeRecords(conversation, new Set(files), this.#ctx.log);
  }

  #ports(plan: ChildPlan): ChildPorts {
    return {
      ctx: this.#ctx.derive({ locals: { conversation: plan.parent } }),
      registry: this.#registry,
      semaphore: this.#semaphore(plan.tracked.root),
      opened: (conversation, child) => this.#children.set(conversation, child),
      closed: (conversation) => this.#children.delete(conversation),
      behind: (work) => this.#keep(work),
    };
  }

  #keep(work: Promise<unknown>): void {
    const kept = work.catch(() => {}).finally(() => this.#behind.delete(kept));
    this.#behind.add(kept);
  }

  async #plan({ parent, tasks, toolCallId, context, detached }: SpawnRequest): Promise<ChildPlan[]> {
    const definitions = await this.definitions(parent);
    const known = (name: string) => definitions.find((definition) => definition.name === name);
    const missing = tasks.map(({ agent = DEFAULT_AGENT }) => agent).filter((name) => known(name) === undefined);
    if (missing.length > 0) {
      const names = definitions.map(({ name }) => name).join(", ");
      throw new ToolError(`Unknown agent: ${[...new Set(missing)].join(", ")}. There are: ${names}`);
    }
    const overrides = this.#ctx.setting(AgentAgents);
    const isolated = this.#ctx.setting(AgentIsolationMode) !== "none";
    const root = this.#ctx.use(Conversations).rootOf(parent);
    const taken = new Set<string>();
    return tasks.map((task, index) => {
      const definition = known(task.agent ?? DEFAULT_AGENT);
      if (definition === undefined) throw new ToolError(`Unknown agent: ${task.agent}`);
      const id = this.#freeId(parent, task, definition.name, taken);
      taken.add(id);
      const tracked: Tracked = {
        ...{ id, index, agent: definition.name, agentSource: definition.source, task: task.task, root },
        assignment: context?.trim() ? context.trim() : undefined,
        description: task.description,
        parentToolCallId: toolCallId,
        detached: detached ?? false,
        sessionFile: undefined,
        status: "pending",
        lastUpdate: Date.now(),
        progress: undefined,
      };
      return {
        ...{ tracked, definition, parent, context },
        depth: parent.slot(Assignment).get().depth + 1,
        isolated: task.isolated ?? isolated,
        modelOverride: overrides[definition.name]?.model,
        file: fileOf(parent, id),
      };
    });
  }

  /** The wanted name, or the agent's; numbered where a live subagent or an earlier one of the session has it. */
  #freeId(parent: ConversationHandle, task: SpawnTask, agent: string, taken: ReadonlySet<string>): string {
    const wanted = (task.name ?? "")
      .trim()
      .replace(/[^\p{L}\p{N}_-]+/gu, "-")
      .replace(/^-+|-+$/g, "");
    const base = wanted === "" ? agent.charAt(0).toUpperCase() + agent.slice(1) : wanted;
    const prefix = this.#children.get(parent)?.plan.tracked.id;
    const name = prefix === undefined ? base.slice(0, MAX_NAME) : `${prefix}.${base.slice(0, MAX_NAME)}`;
    for (let n = 1; ; n++) {
      const id = n === 1 ? name : `${name}-${n}`;
      const file = fileOf(parent, id);
      const isFree = !taken.has(id) && !this.#registry.isTaken(id) && (file === undefined || !existsSync(file));
      if (isFree) return id;
    }
  }

  /** One for each session, over all its levels. */
  #semaphore(root: ConversationHandle): Semaphore {
    let semaphore = this.#semaphores.get(root);
    if (semaphore === undefined) {
      semaphore = new Semaphore(() => this.#ctx.setting(AgentMaxConcurrency));
      this.#semaphores.set(root, semaphore);
    }
    return semaphore;
  }

  #warn(message: string): void {
    if (this.#warned.has(message)) return;
    this.#warned.add(message);
    this.#ctx.log.warn(message);
    this.#ctx.sendRaw({ type: "notice", level: "warning", message, source: "subagents" });
  }
}

/** Beside the parent's own file, in the folder of its name; in memory like its parent. */
function fileOf(parent: ConversationHandle, id: string): string | undefined {
  const { dir } = parent.log.artifacts;
  return parent.log.file === undefined || dir === undefined ? undefined : join(dir, `${id}.jsonl`);
}

function neverRun({ tracked }: ChildPlan, signal: AbortSignal): SubagentResult {
  const { index, id, agent, agentSource, task } = tracked;
  const abortReason = signal.reason instanceof Error ? signal.reason.message : "Aborted";
  return {
    ...{ index, id, agent, agentSource, task },
    ...{ exitCode: 1, output: "", stderr: abortReason, truncated: false, durationMs: 0, tokens: 0, requests: 0 },
    ...{ aborted: true, abortReason },
  };
}
