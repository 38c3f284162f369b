import {
  CommandError,
  type Context,
  defineCommand,
  defineTool,
  HostContributions,
  isAbort,
  type ToolDefinition,
  ToolError,
  z,
} from "mortise/extension";
import { readHostResult } from "./_result.ts";
import hostToolCall from "./host-tool-call.ts";

interface HostTool {
  name: string;
  label: string;
  description: string;
  parameters: Record<string, unknown>;
  hidden: boolean;
}

export default defineCommand({
  name: "set_host_tools",
  group: "State",
  summary: "Replaces the tools that the host runs itself; offered from the next model call on.",
  concurrency: "serial",
  source: "both",
  params: z.object({
    tools: z.array(z.looseObject({})).describe("{ name, label?, description, parameters (JSON Schema), hidden? }"),
  }),
  result: z.object({ toolNames: z.array(z.string()) }),
  example: {
    params: {
      tools: [
        {
          name: "echo_host",
          label: "Echo Host",
          description: "Echo a value from the embedding host",
          parameters: { type: "object", properties: { message: { type: "string" } }, required: ["message"] },
        },
      ],
    },
    result: { toolNames: ["echo_host"] },
    failure: "RPC host tool names must be unique",
  },
  run(ctx, { tools }) {
    const read = tools.map(readDefinition);
    const names = read.map((tool) => tool.name);
    if (new Set(names).size < names.length) throw new CommandError("RPC host tool names must be unique", "invalid_params");
    refuseConflicts(ctx, names);
    ctx.use(HostContributions).replace("host tools", read.map(toTool));
    return { toolNames: names };
  },
});

/** Checks and texts in the order of 000_…, "set_host_tools"; the first failure refuses the whole set. */
function readDefinition(tool: Record<string, unknown>, index: number): HostTool {
  const name = typeof tool["name"] === "string" ? tool["name"].trim() : "";
  if (name === "") throw new CommandError(`Host tool at index ${index} must provide a non-empty name`, "invalid_params");
  const description = typeof tool["description"] === "string" ? tool["description"].trim() : "";
  if (description === "") throw new CommandError(`Host tool "${name}" must provide a non-empty description`, "invalid_params");
  const parameters = z.record(z.string(), z.unknown()).safeParse(tool["parameters"]);
  if (!parameters.success || Array.isArray(tool["parameters"])) {
    throw new CommandError(`Host tool "${name}" must provide a JSON Schema object`, "invalid_params");
  }
  const label = typeof tool["label"] === "string" ? tool["label"].trim() : "";
  return { name, description, parameters: parameters.data, label: label === "" ? name : label, hidden: tool["hidden"] === true };
}

function refuseConflicts(ctx: Context, names: readonly string[]): void {
  const host = ctx.use(HostContributions);
  for (const name of names) {
    const entry = ctx.registry.get("tool", name);
    if (entry !== undefined && entry.scope.owner.origin !== "host" && !host.owns("tool", name)) {
      throw new CommandError(`RPC host tool "${name}" conflicts with an existing tool`, "invalid_params");
    }
  }
}

function toTool(tool: HostTool): ToolDefinition {
  return defineTool<Record<string, unknown>>({
    name: tool.name,
    label: tool.label,
    description: tool.description,
    params: tool.parameters,
    hidden: tool.hidden,
    source: "host",
    async run(ctx, args) {
      try {
        const answer = await ctx.ask(
          hostToolCall,
          { toolCallId: ctx.toolCallId, toolName: tool.name, arguments: args },
          { onProgress: (progress) => ctx.update(progress.partialResult) },
        );
        return readHostResult(answer);
      } catch (error) {
        if (isAbort(error, ctx.signal)) throw new ToolError(`Host tool "${tool.name}" was aborted`, { cause: error });
        throw error;
      }
    },
  });
}
