// Hands work to subagents. The shape of its arguments follows the setting `agent.batch`.
import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  AgentBatch,
  CommandError,
  type Context,
  defineExtension,
  defineTool,
  type JobStart,
  Jobs,
  Settings,
  type SpawnRequest,
  Subagents,
  type ToolContext,
  type ToolResult,
  textResult,
} from "mortise/extension";
import { type BatchCall, batchParams, flatParams, reshape } from "./_task-params.ts";
import { present } from "./_task-result.ts";

const SHARED = {
  name: "task",
  promptSnippet: "Hand self-contained work to subagents",
  promptGuidelines: [
    "Hand wide searches and independent pieces of work to subagents with task; do what needs this conversation yourself.",
    "A subagent sees nothing of this conversation: write its task so that it can be done without it.",
  ],
  available: ({ context }: { context?: Context | undefined }) =>
    context?.tryUse(Subagents)?.canSpawn(context.conversation) === true,
};

const batchTool = defineTool({
  ...SHARED,
  description: [
    "Start subagents that work at the same time, each with its own context, and get what they report.",
    "Give one entry in tasks for each independent piece of work. Two that would change the same files belong into one task, or isolated.",
  ].join("\n"),
  params: batchParams,
  prepareArguments: (args) => reshape(args, "batch"),
  run: spawn,
});

const flatTool = defineTool({
  ...SHARED,
  description:
    "Start a subagent with its own context, and get what it reports. Several calls in one message work at the same time.",
  params: flatParams,
  prepareArguments: (args) => reshape(args, "flat"),
  run: (ctx, args) => spawn(ctx, { tasks: [args] }),
});

export default defineExtension({
  name: "task",
  setup(scope) {
    let batch = scope.ctx.setting(AgentBatch);
    let remove = scope.add(batch ? batchTool : flatTool);
    const follow = () => {
      const now = scope.ctx.setting(AgentBatch);
      if (now === batch) return;
      batch = now;
      remove();
      remove = scope.add(batch ? batchTool : flatTool);
    };
    scope.onLive?.(() => {
      let off: (() => void) | undefined;
      const connect = () => {
        if (scope.signal.aborted) return;
        off?.();
        off = scope.ctx.tryUse(Settings)?.onChange((paths) => {
          if (paths.includes(AgentBatch.name)) follow();
        });
        follow();
      };
      // The settings may come later than this unit; a swap is not changed from within.
      const stop = scope.ctx.registry.onChange((diff) => {
        if (diff.touches("service", Settings.name)) queueMicrotask(connect);
      });
      scope.own(() => {
        stop();
        off?.();
      }, "settings");
      connect();
    });
  },
});

async function spawn(ctx: ToolContext, call: BatchCall): Promise<ToolResult> {
  const subagents = ctx.use(Subagents);
  const began = Date.now();
  const { tasks } = call;
  const request = { parent: ctx.conversation, toolCallId: ctx.toolCallId, context: call.context, tasks };
  const detached = await detach(ctx, call, request);
  if (detached !== undefined) return detached;
  const results = await subagents.run({
    ...request,
    signal: ctx.signal,
    onProgress: (progress) => {
      const lines = progress.map(({ id, status, currentTool }) => `${id}: ${currentTool === undefined ? status : currentTool}`);
      ctx.update(textResult(lines.join("\n"), { results: [], totalDurationMs: Date.now() - began, progress }));
    },
  });
  return present(results, Date.now() - began, { projectAgentsDir: projectAgents(ctx) });
}

/** Where the project keeps definitions of agents; null when it has none. */
function projectAgents({ conversation }: ToolContext): string | null {
  const folder = join(conversation.cwd, ".mortise", "agents");
  return existsSync(folder) ? folder : null;
}

type Request = Omit<SpawnRequest, "signal">;

/** The work as a job, where that is possible and wanted; undefined where the call has to wait, at the limit of jobs as well. */
async function detach(ctx: ToolContext, call: BatchCall, request: Request): Promise<ToolResult | undefined> {
  const jobs = ctx.tryUse(Jobs);
  if (jobs?.allowed(ctx.conversation) !== true || !(await mayGoOn(ctx, call))) return undefined;
  const subagents = ctx.use(Subagents);
  const began = Date.now();
  const work: JobStart = {
    conversation: ctx.conversation,
    type: "task",
    label: call.tasks.map((task) => task.name ?? task.description ?? task.task.slice(0, 40)).join(", "),
    isQueued: () => {
      const own = subagents.snapshots().filter(({ parentToolCallId }) => parentToolCallId === ctx.toolCallId);
      return own.length > 0 && own.every(({ status }) => status === "pending");
    },
    async run(signal) {
      const results = await subagents.run({ ...request, signal, detached: true });
      const { content, details, isError } = present(results, Date.now() - began, { projectAgentsDir: projectAgents(ctx) });
      const [block] = content;
      return { text: block?.type === "text" ? block.text : "", details, failed: isError === true };
    },
  };
  try {
    const { id } = jobs.start(work);
    const text = `Started as background job ${id}. Its result comes by itself when it has ended.`;
    return textResult(text, { results: [], totalDurationMs: 0, async: { state: "running", jobId: id, type: "task" } });
  } catch (error) {
    if (CommandError.is(error) && error.code === "busy") return undefined;
    throw error;
  }
}

/** True when every agent of the call says that it need not be waited for. */
async function mayGoOn(ctx: ToolContext, call: BatchCall): Promise<boolean> {
  const definitions = await ctx.use(Subagents).definitions(ctx.conversation);
  return call.tasks.every(({ agent = "task" }) => definitions.find(({ name }) => name === agent)?.blocking === false);
}
