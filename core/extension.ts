// The authors' door, "mortise/extension". Names only; a name added here is a promise (test/architecture.test.ts pins the list).
import "./agent/context-extension.ts";

export { z } from "zod";
export {
  AssistantContent,
  ImageContent,
  InputContent,
  RedactedThinkingContent,
  TextContent,
  ThinkingContent,
  ToolCall,
} from "../protocol/content.ts";
export {
  AgentMessage,
  AssistantMessage,
  AssistantMessageEvent,
  BashExecutionMessage,
  BranchSummaryMessage,
  CompactionSummaryMessage,
  CustomMessage,
  DeveloperMessage,
  StopReason,
  ToolResult,
  ToolResultMessage,
  Usage,
  UserMessage,
} from "../protocol/message.ts";
export { Model, THINKING_EFFORTS, type ThinkingEffort, ThinkingLevel } from "../protocol/model.ts";
export { TodoPhase, TodoStatus, TodoTask } from "../protocol/session.ts";
export { type AfterRuns, afterRuns } from "./agent/after-runs.ts";
export type { AnswerDelta, AnswerWatch, Interruption } from "./agent/answer-watch.ts";
export type {
  ConversationHandle,
  InterruptMode,
  QueueMode,
  RunOutcome,
  Selection,
  SubmitOptions,
  Taken,
} from "./agent/conversation-types.ts";
export { notice } from "./agent/events.ts";
export {
  type Aborting,
  type AnswerStarting,
  aborting,
  answerStarting,
  beforeAgentStart,
  type CancelAnswer,
  type ContextValue,
  type ContinueAnswer,
  contextBuilding,
  contextOverflow,
  type DialogWithheld,
  dialogWithheld,
  type FrameEmitted,
  frameEmitted,
  type InputValue,
  input,
  type MessageEnded,
  messageEnded,
  type Overflow,
  providerRequest,
  type RequestValue,
  type RetryAnswer,
  type RunEnded,
  type RunPlan,
  type RunStarting,
  runEnded,
  runStarting,
  type SessionBranch,
  type SessionChange,
  type SessionClosing,
  type SessionSwitched,
  sessionBeforeBranch,
  sessionBeforeSwitch,
  sessionBranched,
  sessionClosing,
  sessionSwitched,
  type ToolCallValue,
  type ToolFinishedValue,
  type ToolProgressValue,
  type TurnEnded,
  type TurnFailure,
  toolDecide,
  toolFinished,
  toolObserve,
  toolProgress,
  toolRewrite,
  toolSeal,
  turnEnded,
  turnFailed,
} from "./agent/hook-points.ts";
export {
  defineProvider,
  type ModelMessage,
  type ProviderDefinition,
  type ProviderEvent,
  type ProviderRequest,
  type TokenCounts,
  type ToolChoice,
  type ToolSchema,
} from "./agent/provider.ts";
export { redacted } from "./agent/secrets.ts";
export { defineSetting, type SettingDefinition } from "./agent/settings.ts";
export { type SideAnswer, type SideRequest, sideRequest } from "./agent/side-request.ts";
export { defineSlot, type Slot, type SlotDefinition } from "./agent/slot.ts";
export { definePromptSection, type PromptSectionDefinition } from "./agent/system-prompt.ts";
export { defineTool, type ToolContext, type ToolDefinition, textResult } from "./agent/tool.ts";
export {
  countLines,
  formatBytes,
  headBytes,
  MAX_BYTES,
  MAX_LINES,
  type Truncation,
  tailBytes,
  truncateHead,
  truncateTail,
} from "./agent/truncation.ts";
export { untilAborted } from "./agent/until-aborted.ts";
export type { Context, DialogOptions, Invocation, Logger, Ui, UiMethods } from "./kernel/context-door.ts";
export {
  type CommandDefinition,
  defineCommand,
  defineExtension,
  defineFrame,
  type ExtensionDefinition,
  type FrameDefinition,
  type MaybePromise,
  overrideCommand,
  type SetupScope,
} from "./kernel/definition.ts";
export {
  CommandError,
  DisconnectedError,
  ExtensionError,
  errorMessage,
  isAbort,
  ProviderError,
  type ProviderErrorKind,
  StaleExtensionError,
  ToolError,
} from "./kernel/errors.ts";
export { defineHook, defineHookPoint, type HookPoint, type Veto } from "./kernel/hooks.ts";
export {
  defineHostRequest,
  defineUiMethod,
  type HostRequestDefinition,
  type UiAnswer,
  type UiMethodDefinition,
} from "./kernel/host-requests.ts";
export { Serialized } from "./kernel/serialized.ts";
export { createToken, defineService, type ServiceDefinition, type Token } from "./kernel/services.ts";
export { type ConversationChange, Conversations, type CreateConversation } from "./services/agent.ts";
export { BackgroundConversations, type BackgroundMove } from "./services/background.ts";
export {
  type CompactionAnswer,
  type CompactionPlan,
  type CompactionReason,
  CompactionResult,
  type SessionCompacted,
  type SessionCompactionFailed,
  sessionBeforeCompact,
  sessionCompacted,
  sessionCompactionFailed,
} from "./services/compaction.ts";
export {
  type ContentFolder,
  type ContentFolderDefinition,
  contentFolders,
  contributedFolders,
  defineContentFolder,
  type Following,
  type FollowOptions,
  followFolders,
  listFolder,
  warnOnce,
} from "./services/content-folders.ts";
export {
  type DialectDefinition,
  type DialectHints,
  type DialectUnit,
  defineDialect,
  type VirtualModule,
} from "./services/dialects.ts";
export { EventFilter } from "./services/event-filter.ts";
export { Extensions, ReloadReport, UnitInfo } from "./services/extensions.ts";
export { FileLocks } from "./services/files.ts";
export { followService } from "./services/follow-service.ts";
export { Framing } from "./services/framing.ts";
export { type Frontmatter, parseFrontmatter } from "./services/frontmatter.ts";
export { HostContributions } from "./services/host-contributions.ts";
export { defineUriScheme, type UriReadResult, type UriSchemeDefinition, Uris } from "./services/host-uris.ts";
export { type JobInfo, type JobResult, type JobStart, type JobStatus, Jobs } from "./services/jobs.ts";
export {
  AgentAgents,
  AgentBatch,
  AgentDelegation,
  AgentIsolationCommits,
  AgentIsolationMerge,
  AgentIsolationMode,
  AgentMaxConcurrency,
  AgentMaxNestedSpawnDepth,
  AgentOverride,
  AskTimeout,
  AsyncEnabled,
  AsyncMaxJobs,
  BashAutoBackgroundEnabled,
  BashAutoBackgroundThresholdMs,
  CompactionEnabled,
  FollowUpMode,
  ImagesAutoResize,
  InterruptMode as InterruptModeSetting,
  knownSettings,
  MemoryBackend,
  ReadDefaultLimit,
  RetryEnabled,
  SessionBackgroundLimit,
  SkillsEnableSkillCommands,
  SteeringMode,
  TodoEager,
  TodoEnabled,
  TodoReminders,
  TodoRemindersMax,
  ToolsApproval,
  ToolsApprovalMode,
  ToolsSandbox,
  ToolsSandboxNetwork,
} from "./services/known-settings.ts";
export { Launch } from "./services/launch.ts";
export { defineLoginFlow, type LoginContext, type LoginFlowDefinition } from "./services/login.ts";
export { type Credential, Credentials, Models, type ResolvedKey } from "./services/models.ts";
export { Sandbox, type SandboxMode } from "./services/sandbox.ts";
export { defineSearchProvider, type SearchProviderDefinition, type SearchQuery, type SearchResult } from "./services/search.ts";
export { type SettingLayer, Settings, SettingsFileError } from "./services/settings.ts";
export { Shell, type ShellResult, type ShellRun } from "./services/shell.ts";
export { type Skill, Skills } from "./services/skills.ts";
export {
  defineSlashCommand,
  SlashCommands,
  type SlashContext,
  type SlashDefinition,
  SlashEntry,
  type SlashMatch,
  type SlashOutcome,
} from "./services/slash.ts";
export { defineStateField, type StateFieldDefinition } from "./services/state.ts";
export {
  type AgentContribution,
  type AgentDefinition,
  AgentProgress,
  AgentSource,
  type AgentTemplate,
  defineAgent,
  type SpawnRequest,
  type SpawnTask,
  SubagentResult,
  SubagentSnapshot,
  SubagentStatus,
  Subagents,
  type SubscriptionLevel,
} from "./services/subagents.ts";
export { Todos } from "./services/todos.ts";
export { Transport } from "./services/transport.ts";
export { ProjectCode, Trust, type TrustCase } from "./services/trust.ts";
export { type PathWatch, type PathWatchOptions, watchPaths } from "./services/watch.ts";
export { messageOf } from "./session/convert.ts";
export type { CompactionEntry, SessionEntry, SessionHeader } from "./session/entry.ts";
export { SessionLockedError } from "./session/errors.ts";
export { type FollowResult, readFrom } from "./session/follow.ts";
export { listSessions, type SessionInfo } from "./session/list.ts";
export { acquireLock, type SessionLock } from "./session/lock.ts";
export type { SessionLog } from "./session/log.ts";
export { messagesPage } from "./session/page.ts";
export { Slices } from "./session/slices.ts";
export { estimateTokens } from "./session/tokens.ts";
