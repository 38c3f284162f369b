import {
  CommandError,
  type Context,
  defineCommand,
  defineUriScheme,
  HostContributions,
  isAbort,
  ToolError,
  type UriSchemeDefinition,
  z,
} from "mortise/extension";
import hostUriRequest from "./host-uri-request.ts";

/** Never the host's: the file system, the web, and what mortise itself serves. */
const RESERVED = new Set([
  "http",
  "https",
  "file",
  "data",
  "artifact",
  "skill",
  "rule",
  "agent",
  "memory",
  "local",
  "history",
  "mcp",
]);

interface HostScheme {
  scheme: string;
  description: string | undefined;
  writable: boolean;
  immutable: boolean;
}

export default defineCommand({
  name: "set_host_uri_schemes",
  group: "State",
  summary: "Replaces the URL schemes whose reads and writes go to the host.",
  concurrency: "serial",
  source: "both",
  params: z.object({
    schemes: z.array(z.looseObject({})).describe("{ scheme, description?, writable?, immutable? }"),
  }),
  result: z.object({ schemes: z.array(z.string()) }),
  example: {
    params: { schemes: [{ scheme: "db", description: "Virtual db row files", writable: true, immutable: false }] },
    result: { schemes: ["db"] },
    failure: "Host URI scheme must be a non-empty string",
  },
  run(ctx, { schemes }) {
    const bySchemeName = new Map<string, HostScheme>();
    for (const scheme of schemes) {
      const read = readDefinition(scheme);
      // The last definition of a scheme wins and keeps the place of the first.
      bySchemeName.set(read.scheme, read);
    }
    refuseConflicts(ctx, [...bySchemeName.keys()]);
    ctx.use(HostContributions).replace("host uri schemes", [...bySchemeName.values()].map(toScheme));
    return { schemes: [...bySchemeName.keys()] };
  },
});

function readDefinition(value: Record<string, unknown>): HostScheme {
  const raw = value["scheme"];
  if (typeof raw !== "string" || raw.trim() === "") {
    throw new CommandError("Host URI scheme must be a non-empty string", "invalid_params");
  }
  const scheme = raw.trim().toLowerCase();
  if (!/^[a-z][a-z0-9+.-]*$/.test(scheme)) {
    throw new CommandError(`Host URI scheme contains invalid characters: ${raw}`, "invalid_params");
  }
  if (RESERVED.has(scheme)) throw new CommandError(`Host URI scheme is reserved: ${scheme}://`, "invalid_params");
  return {
    scheme,
    description: typeof value["description"] === "string" ? value["description"] : undefined,
    writable: value["writable"] === true,
    immutable: value["immutable"] === true,
  };
}

function refuseConflicts(ctx: Context, schemes: readonly string[]): void {
  const host = ctx.use(HostContributions);
  for (const scheme of schemes) {
    const entry = ctx.registry.get("uri scheme", scheme);
    if (entry !== undefined && entry.scope.owner.origin !== "host" && !host.owns("uri scheme", scheme)) {
      throw new CommandError(`Host URI scheme is in use by an extension: ${scheme}://`, "invalid_params");
    }
  }
}

type HostUriAnswer = z.infer<typeof hostUriRequest.answer>;

function toScheme(scheme: HostScheme): UriSchemeDefinition {
  const read: UriSchemeDefinition["read"] = async (url, ctx) => {
    const answer = await request(ctx, "read", url);
    return {
      content: answer.content ?? "",
      contentType: answer.contentType ?? "text/plain",
      notes: answer.notes,
      immutable: answer.immutable ?? scheme.immutable,
    };
  };
  const write: UriSchemeDefinition["write"] = async (url, content, ctx) => {
    await request(ctx, "write", url, content);
  };
  const { description, immutable } = scheme;
  return defineUriScheme({ name: scheme.scheme, description, immutable, read, ...(scheme.writable ? { write } : {}) });
}

async function request(ctx: Context, operation: "read" | "write", url: string, content?: string): Promise<HostUriAnswer> {
  let answer: HostUriAnswer;
  try {
    answer = await ctx.ask(hostUriRequest, content === undefined ? { operation, url } : { operation, url, content });
  } catch (error) {
    if (isAbort(error, ctx.signal)) throw new ToolError(`Host URI ${operation} for ${url} was aborted`, { cause: error });
    throw error;
  }
  if (answer.isError) {
    throw new ToolError(answer.error || answer.content || `Host URI ${operation} failed for ${url}`);
  }
  return answer;
}
