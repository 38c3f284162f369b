// Which specifiers of which family stand for which module (extensions.md §3.1).
import type { Context, DialectDefinition, VirtualModule } from "mortise/extension";
import type { Traits } from "./_traits.ts";

type Modules = ReturnType<DialectDefinition["virtualModules"]>;

const AI_PATHS = ["", "/compat", "/models", "/oauth", "/providers/all"];
const AGENT_PATHS = ["", "/hooks"];
const AGENT_CORE = [
  "Agent",
  "ProxyTransport",
  "agentLoop",
  "agentLoopContinue",
  "runAgentLoop",
  "runAgentLoopContinue",
  "runToolCall",
  "setDefaultStreamFn",
  "streamProxy",
];

/** The modules of one family. Each is made when it is first imported. */
export function familyModules(traits: Traits, daemon: Context): Modules {
  const agent = once(async () => (await import("./_coding-agent.ts")).codingAgentModule(traits, daemon));
  const ai = once(async () => (await import("./_pi-ai.ts")).piAiModule(daemon));
  const tui = once(async () => (await import("./_pi-tui.ts")).piTuiModule());
  const core = once(async () => (await import("./_unavailable.ts")).unavailableOnes(AGENT_CORE));
  const utils = once(() => utilsModule(daemon));
  const modules: Record<string, Modules[string]> = {};
  for (const { scope, names } of packageNames(traits)) {
    for (const path of AGENT_PATHS) modules[`${scope}/${names.agent}${path}`] = agent;
    for (const name of names.ai) for (const path of AI_PATHS) modules[`${scope}/${name}${path}`] = ai;
    for (const name of names.tui) modules[`${scope}/${name}`] = tui;
    for (const name of names.core) modules[`${scope}/${name}`] = core;
    for (const name of names.utils) {
      modules[`${scope}/${name}`] = utils;
      modules[`${scope}/${name}/chalk`] = utils;
    }
  }
  return modules;
}

/** The schema library, which belongs to no family. */
export function typeboxModules(): Modules {
  const type = once(async () => (await import("./_typebox.ts")).typeboxModule());
  const value = once(async () => (await import("./_typebox.ts")).typeboxValueModule());
  const compile = once(async () => (await import("./_typebox.ts")).typeboxCompileModule());
  return {
    typebox: type,
    "typebox/type": type,
    "typebox/value": value,
    "typebox/compile": compile,
    "@sinclair/typebox": type,
    "@sinclair/typebox/value": value,
    "@sinclair/typebox/compile": compile,
    "@sinclair/typebox/compiler": compile,
  };
}

function packageNames(traits: Traits) {
  const names = { agent: "pi-coding-agent", ai: ["pi-ai"], tui: ["pi-tui"], core: ["pi-agent-core"], utils: ["pi-utils"] };
  const veyyon = {
    agent: "coding-agent",
    ai: ["ai", "pi-ai"],
    tui: ["tui", "pi-tui"],
    core: ["agent-core", "pi-agent-core"],
    utils: ["utils", "pi-utils"],
  };
  return traits.packages.map((scope) => ({ scope, names: traits.family === "veyyon" ? veyyon : names }));
}

/** The small helpers of the forks: their logger, and colours that colour nothing. */
async function utilsModule(daemon: Context): Promise<VirtualModule> {
  const [{ createLogger }, { isObject }, { inert }] = await Promise.all([
    import("./_libraries.ts"),
    import("./_schema.ts"),
    import("./_theme.ts"),
  ]);
  const chalk = inert();
  return {
    default: chalk,
    chalk,
    logger: createLogger(daemon.log, "extension"),
    isEnoent: (error: unknown) => isObject(error) && error["code"] === "ENOENT",
  };
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
