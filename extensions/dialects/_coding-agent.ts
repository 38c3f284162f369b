// The main package of the families: what extensions import from it as values. Its SDK, which starts agents and draws
// terminals, links and refuses.
import { homedir } from "node:os";
import { join } from "node:path";
import { type Context, Launch, truncateHead, truncateTail, type VirtualModule } from "mortise/extension";
import { bindTool, localBashOperations } from "./_builtin-tools.ts";
import { parseFrontmatter, stripFrontmatter } from "./_frontmatter.ts";
import { convertToLlm, estimateTokens, serializeConversation } from "./_messages.ts";
import { componentClass } from "./_pi-tui.ts";
import { isObject } from "./_schema.ts";
import { createTheme, inert } from "./_theme.ts";
import type { Traits } from "./_traits.ts";
import { unavailableOnes } from "./_unavailable.ts";
import { FileQueue } from "./file-queue.ts";

/** The limits of the families' tools, which are ours as well. */
const DEFAULT_MAX_LINES = 2000;
const DEFAULT_MAX_BYTES = 50 * 1024;
const MAX_LINE_LENGTH = 500;

const TOOLS = ["bash", "read", "edit", "write", "grep", "find", "ls"] as const;

const COMPONENTS = [
  "ArminComponent",
  "AssistantMessageComponent",
  "BashExecutionComponent",
  "BorderedLoader",
  "BranchSummaryMessageComponent",
  "CompactionSummaryMessageComponent",
  "CustomEditor",
  "CustomMessageComponent",
  "DynamicBorder",
  "ExtensionEditorComponent",
  "ExtensionInputComponent",
  "ExtensionSelectorComponent",
  "FooterComponent",
  "LoginDialogComponent",
  "ModelSelectorComponent",
  "OAuthSelectorComponent",
  "SessionSelectorComponent",
  "SettingsSelectorComponent",
  "ShowImagesSelectorComponent",
  "SkillInvocationMessageComponent",
  "Theme",
  "ThemeSelectorComponent",
  "ThinkingSelectorComponent",
  "ToolExecutionComponent",
  "TreeSelectorComponent",
  "UserMessageComponent",
  "UserMessageSelectorComponent",
];

const SDK = [
  "AgentSession",
  "AgentSessionRuntime",
  "AuthStorage",
  "DefaultPackageManager",
  "DefaultResourceLoader",
  "ExtensionRunner",
  "InteractiveMode",
  "ModelRegistry",
  "ModelRuntime",
  "ProjectTrustStore",
  "RpcClient",
  "SessionManager",
  "SettingsManager",
  "buildSessionContext",
  "calculateContextTokens",
  "collectEntriesForBranchSummary",
  "compact",
  "convertToPng",
  "copyToClipboard",
  "createAgentSession",
  "createAgentSessionFromServices",
  "createAgentSessionRuntime",
  "createAgentSessionServices",
  "createEventBus",
  "createExtensionRuntime",
  "createPowerShellTool",
  "createPowerShellToolDefinition",
  "detectSupportedImageMimeTypeFromFile",
  "discoverAndLoadExtensions",
  "findCutPoint",
  "findTurnStartIndex",
  "formatSkillsForPrompt",
  "generateBranchSummary",
  "generateDiffString",
  "generateSummary",
  "generateUnifiedPatch",
  "getLatestCompactionEntry",
  "getPowerShellConfig",
  "loadProjectContextFiles",
  "loadSkills",
  "loadSkillsFromDir",
  "main",
  "migrateSessionEntries",
  "parseArgs",
  "parseSessionEntries",
  "prepareBranchEntries",
  "resizeImage",
  "resolveCliModel",
  "runPrintMode",
  "runRpcMode",
  "shouldCompact",
  "wrapRegisteredTool",
  "CredentialSynchronizationError",
  "VIRTUAL_MODEL_STATE_ENTRY",
  "buildContextEntries",
  "buildSessionProjection",
  "createCodemodeExtension",
  "createLocalPowerShellOperations",
  "createMcpExtension",
  "createToolSearchExtension",
  "generateSummaryWithUsage",
  "hasTrustRequiringProjectResources",
  "parseSkillBlock",
  "readStoredCredential",
  "resolveModelScopeWithDiagnostics",
  "sessionEntryToContextMessages",
  "wrapRegisteredTools",
];

/** The namespace of `…/pi-coding-agent`. `daemon` serves calls that come from no handler. */
export function codingAgentModule(traits: Traits, daemon: Context): VirtualModule {
  const home = (): string => daemon.tryUse(Launch)?.home ?? process.env["MORTISE_HOME"] ?? join(homedir(), ".mortise");
  return {
    ...unavailableOnes(SDK),
    ...Object.fromEntries(COMPONENTS.map((name) => [name, componentClass(name)])),
    ...toolFactories(daemon),
    ...toolGuards(),
    ...themeHelpers(),
    ...truncation(),
    defineTool: (tool: unknown) => tool,
    CONFIG_DIR_NAME: ".mortise",
    APP_NAME: "mortise",
    VERSION: traits.apiVersion,
    CURRENT_SESSION_VERSION: 3,
    DEFAULT_COMPACTION_SETTINGS: { enabled: true, reserveTokens: 16_384, keepRecentTokens: 20_000 },
    getAgentDir: home,
    getPackageDir: home,
    getDocsPath: () => join(home(), "docs"),
    getExamplesPath: () => join(home(), "examples"),
    getReadmePath: () => join(home(), "README.md"),
    getShellConfig: () => ({ shell: "bash", args: ["-c"] }),
    withFileMutationQueue: (path: string, change: () => unknown) => daemon.use(FileQueue).run(path, async () => change()),
    createLocalBashOperations: localBashOperations,
    createSyntheticSourceInfo: (path: string, options?: unknown) => ({ path, ...(isObject(options) ? options : {}) }),
    parseFrontmatter,
    stripFrontmatter,
    convertToLlm,
    serializeConversation,
    estimateTokens,
    formatReadLineRange,
    getLastAssistantUsage: (entries: unknown) => lastUsage(entries),
    getExtensionUISelectOptionLabel: (option: unknown) => (isObject(option) ? String(option["label"]) : String(option)),
  };
}

function toolFactories(daemon: Context): Record<string, unknown> {
  const bound = (name: string) => (cwd?: unknown, options?: unknown) => bindTool(daemon, name, cwd, optionsOf(options, name));
  const several = (names: readonly string[]) => (cwd?: unknown, options?: unknown) =>
    names.map((name) => bindTool(daemon, name, cwd, optionsOf(options, name)));
  const factories: Record<string, unknown> = {
    createCodingTools: several(["read", "bash", "edit", "write"]),
    createReadOnlyTools: several(["read", "grep", "find", "ls"]),
    createAllTools: (cwd?: unknown, options?: unknown) =>
      Object.fromEntries(TOOLS.map((name) => [name, bindTool(daemon, name, cwd, optionsOf(options, name))])),
    codingTools: several(["read", "bash", "edit", "write"])(),
    readOnlyTools: several(["read", "grep", "find", "ls"])(),
  };
  for (const name of TOOLS) {
    const title = `${name[0]?.toUpperCase()}${name.slice(1)}`;
    factories[`create${title}Tool`] = bound(name);
    factories[`create${title}ToolDefinition`] = bound(name);
    factories[`${name}Tool`] = bound(name)();
  }
  return factories;
}

/** Options of one tool, or of several by tool name. */
function optionsOf(options: unknown, name: string): unknown {
  return isObject(options) && isObject(options[name]) ? options[name] : options;
}

function toolGuards(): Record<string, unknown> {
  const of = (name: string) => (event: unknown) => isObject(event) && event["toolName"] === name;
  const guards = TOOLS.map((name) => [`is${name[0]?.toUpperCase()}${name.slice(1)}ToolResult`, of(name)]);
  return {
    ...Object.fromEntries(guards),
    isPowerShellToolResult: of("powershell"),
    isToolCallEventType: (name: string, event: unknown) => of(name)(event),
  };
}

function themeHelpers(): Record<string, unknown> {
  const plain = (...args: unknown[]) => args.findLast((arg) => typeof arg === "string") ?? "";
  return {
    theme: createTheme(),
    initTheme: () => {},
    getMarkdownTheme: inert,
    getSelectListTheme: inert,
    getSettingsListTheme: inert,
    highlightCode: (code: unknown) => String(code).split("\n"),
    getLanguageFromPath: (path: string) => /\.([A-Za-z0-9]+)$/.exec(path)?.[1]?.toLowerCase(),
    keyHint: plain,
    rawKeyHint: plain,
    appKeyHint: plain,
    keyText: plain,
    renderDiff: (diff: unknown) => String(diff),
    truncateToVisualLines: (text: unknown, maxLines: number) => {
      const lines = String(text).split("\n");
      const skipped = Math.max(0, lines.length - maxLines);
      return { visualLines: lines.slice(skipped), skippedCount: skipped };
    },
    formatDimensionNote: () => undefined,
  };
}

function truncation(): Record<string, unknown> {
  return {
    truncateHead,
    truncateTail,
    truncateLine: (line: string, maxLength: number = MAX_LINE_LENGTH) =>
      line.length > maxLength
        ? { text: `${line.slice(0, maxLength)}... [truncated]`, wasTruncated: true }
        : { text: line, wasTruncated: false },
    formatSize,
    DEFAULT_MAX_LINES,
    DEFAULT_MAX_BYTES,
    GREP_MAX_LINE_LENGTH: MAX_LINE_LENGTH,
  };
}

function formatSize(bytes: number): string {
  if (bytes < 1024) return `${bytes}B`;
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)}KB` : `${(bytes / (1024 * 1024)).toFixed(1)}MB`;
}

/** The lines a read call asks for, as a suffix of its path: `:10-29`. */
function formatReadLineRange(offset: unknown, limit: unknown): string {
  if (typeof offset !== "number" && typeof limit !== "number") return "";
  const start = typeof offset === "number" ? offset : 1;
  return typeof limit === "number" ? `:${start}-${start + limit - 1}` : `:${start}`;
}

function lastUsage(entries: unknown): unknown {
  if (!Array.isArray(entries)) return undefined;
  const entry: unknown = entries.findLast(
    (each: unknown) => isObject(each) && isObject(each["message"]) && each["message"]["role"] === "assistant",
  );
  return isObject(entry) && isObject(entry["message"]) ? entry["message"]["usage"] : undefined;
}
