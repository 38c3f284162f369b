// Generated from the definitions by `npm run docs`. Do not edit.

export type AgentMessage = UserMessage | DeveloperMessage | AssistantMessage | ToolResultMessage | CustomMessage | BashExecutionMessage | BranchSummaryMessage | CompactionSummaryMessage;

export type AgentProgress = {
  /** Place in its call, from 0 */
  index: number;
  id: string;
  agent: string;
  agentSource: "bundled" | "user" | "project";
  status: "pending" | "running" | "completed" | "failed" | "aborted";
  task: string;
  assignment?: string;
  description?: string;
  currentTool?: string;
  currentToolArgs?: string;
  currentToolStartMs?: number;
  recentTools: Array<{
    tool: string;
    args: string;
    endMs: number;
  }>;
  /** Its last lines */
  recentOutput: Array<string>;
  toolCount: number;
  requests: number;
  /** Input, output and cache writes so far */
  tokens: number;
  /** US dollars */
  cost: number;
  durationMs: number;
  contextTokens?: number;
  contextWindow?: number;
  resolvedModel?: string;
  retryState?: {
    attempt: number;
    maxAttempts: number;
    delayMs: number;
    errorMessage: string;
    startedAtMs: number;
  };
  retryFailure?: {
    attempt: number;
    errorMessage: string;
  };
};

export type AssistantContent = TextContent | ThinkingContent | RedactedThinkingContent | ToolCall;

export type AssistantMessage = {
  role: "assistant";
  content: Array<AssistantContent>;
  api: string;
  provider: string;
  model: string;
  usage: Usage;
  stopReason: StopReason;
  /** Unix milliseconds */
  timestamp: number;
  errorMessage?: string;
  /** HTTP status of the failure */
  errorStatus?: number;
  responseId?: string;
  /** Milliseconds from request to end */
  duration?: number;
  /** Milliseconds from request to the first delta */
  ttft?: number;
};

export type AssistantMessageEvent = {
  type: "text_start";
  contentIndex: number;
  partial: AssistantMessage;
} | {
  type: "text_delta";
  contentIndex: number;
  delta: string;
  partial: AssistantMessage;
} | {
  type: "text_end";
  contentIndex: number;
  content: string;
  partial: AssistantMessage;
} | {
  type: "thinking_start";
  contentIndex: number;
  partial: AssistantMessage;
} | {
  type: "thinking_delta";
  contentIndex: number;
  delta: string;
  partial: AssistantMessage;
} | {
  type: "thinking_end";
  contentIndex: number;
  content: string;
  partial: AssistantMessage;
} | {
  type: "toolcall_start";
  contentIndex: number;
  partial: AssistantMessage;
} | {
  type: "toolcall_delta";
  contentIndex: number;
  delta: string;
  partial: AssistantMessage;
} | {
  type: "toolcall_end";
  contentIndex: number;
  toolCall: AssistantContent;
  partial: AssistantMessage;
};

export type BashExecutionMessage = {
  role: "bashExecution";
  command: string;
  output: string;
  exitCode?: number;
  cancelled: boolean;
  truncated: boolean;
  fullOutputPath?: string;
  excludeFromContext?: boolean;
  /** Unix milliseconds */
  timestamp: number;
};

export type BranchSummaryMessage = {
  role: "branchSummary";
  summary: string;
  fromId: string;
  /** Unix milliseconds */
  timestamp: number;
};

export type CompactionResult = {
  summary: string;
  shortSummary?: string;
  /** The first entry before the compaction that stays in context */
  firstKeptEntryId: string;
  tokensBefore: number;
  details?: unknown;
};

export type CompactionSummaryMessage = {
  role: "compactionSummary";
  summary: string;
  shortSummary?: string;
  tokensBefore: number;
  /** Unix milliseconds */
  timestamp: number;
};

export type CustomMessage = {
  role: "custom";
  customType: string;
  content: string | Array<InputContent>;
  display: boolean;
  details?: unknown;
  attribution?: "user" | "agent";
  /** Unix milliseconds */
  timestamp: number;
};

export type DeveloperMessage = {
  role: "developer";
  content: string | Array<InputContent>;
  /** Unix milliseconds */
  timestamp: number;
  attribution?: "user" | "agent";
};

export type ExtensionInfo = {
  /** Stable across reloads: the unit's real path, or `builtin:<name>` */
  id: string;
  /** What people call it: the folder or file name without its ending */
  name: string;
  origin: "builtin" | "package" | "user" | "project" | "cli" | "host";
  /** `untrusted`: code of a project that nobody said yes to, not read; `waiting`: nobody provides a service that it requires */
  state: "loading" | "active" | "failed" | "waiting" | "disabled" | "untrusted" | "quarantined";
  /** Where its code is; absent for bundled built-ins */
  path?: string;
  /** Number of the version that answers; 0 when none does */
  generation: number;
  /** Number of an older version that still finishes its calls */
  draining?: number;
  /** `kind:name` of what it registered, in order */
  contributes: Array<string>;
  /** What others contribute under its names and that it hides */
  shadows: Array<{
    /** `kind:name` */
    key: string;
    /** Id of the other unit */
    owner: string;
  }>;
  /** What of its own is hidden, and by whom */
  shadowedBy: Array<{
    /** `kind:name` */
    key: string;
    /** Id of the other unit */
    owner: string;
  }>;
  /** Files whose change loads it anew */
  files: Array<string>;
  /** Milliseconds of the last load; `resolve` and `transpile` are part of `evaluate`, `swap` is the one synchronous step */
  timings: {
    resolve: number;
    transpile: number;
    evaluate: number;
    setup: number;
    swap: number;
  };
  /** Calls of its hook handlers, and the 95th percentile of the last 128 without their dialogs, in milliseconds */
  handlers: {
    calls: number;
    p95Ms: number;
  };
  /** Failures reported since the daemon started */
  errors: number;
  /** Of the last load that failed, or what it waits for; the version before may still answer */
  error?: string;
};

export type ImageContent = {
  type: "image";
  /** Base64 without a data: prefix */
  data: string;
  mimeType: string;
  detail?: "auto" | "low" | "high" | "original";
};

export type InputContent = TextContent | ImageContent;

export type Model = {
  id: string;
  name: string;
  /** Which provider contribution speaks to it, e.g. anthropic-messages */
  api: string;
  provider: string;
  baseUrl: string;
  reasoning: boolean;
  input: Array<"text" | "image">;
  /** US dollars per million tokens */
  cost: {
    input: number;
    output: number;
    cacheRead: number;
    cacheWrite: number;
  };
  contextWindow?: number;
  maxTokens?: number;
  thinking?: {
    mode: "budget" | "effort" | "adaptive";
    efforts: Array<"minimal" | "low" | "medium" | "high" | "xhigh" | "max">;
    defaultLevel?: ThinkingLevel;
    /** How a request turns thinking off; never: the model always thinks */
    off?: "omit" | "disabled" | "between_tools" | "never";
  };
  supportsTools?: boolean;
  /** The id sent to the provider when it differs from id */
  requestModelId?: string;
  /** What its server does differently; read by the provider */
  compat?: Record<string, unknown>;
};

export type RedactedThinkingContent = {
  type: "redactedThinking";
  data: string;
};

export type ReloadReport = {
  id: string;
  outcome: "loaded" | "unchanged" | "failed" | "removed" | "waiting";
  error?: string;
  /** Milliseconds of evaluation and set-up */
  ms?: number;
};

export type SlashEntry = {
  name: string;
  aliases?: Array<string>;
  description?: string;
  input?: {
    hint?: string;
  };
  subcommands?: Array<{
    name: string;
    description?: string;
    usage?: string;
  }>;
  source: "builtin" | "skill" | "extension" | "custom" | "mcp_prompt" | "file";
};

export type StopReason = "stop" | "length" | "toolUse" | "error" | "aborted";

export type SubagentSnapshot = {
  id: string;
  index: number;
  agent: string;
  agentSource: "bundled" | "user" | "project";
  status: "pending" | "running" | "completed" | "failed" | "aborted";
  /** Unix milliseconds */
  lastUpdate: number;
  description?: string;
  task?: string;
  assignment?: string;
  sessionFile?: string;
  parentToolCallId?: string;
  progress?: AgentProgress;
};

export type TextContent = {
  type: "text";
  text: string;
  textSignature?: string;
};

export type ThinkingContent = {
  type: "thinking";
  thinking: string;
  thinkingSignature?: string;
  itemId?: string;
};

export type ThinkingLevel = "off" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max";

export type TodoPhase = {
  name: string;
  tasks: Array<TodoTask>;
};

export type TodoStatus = "pending" | "in_progress" | "completed" | "abandoned";

export type TodoTask = {
  content: string;
  status: TodoStatus;
};

export type ToolCall = {
  type: "toolCall";
  id: string;
  name: string;
  arguments: Record<string, unknown>;
  thoughtSignature?: string;
  intent?: string;
};

export type ToolResult = {
  content: Array<InputContent>;
  details?: unknown;
  isError?: boolean;
};

export type ToolResultMessage = {
  role: "toolResult";
  toolCallId: string;
  toolName: string;
  content: Array<InputContent>;
  details?: unknown;
  isError: boolean;
  /** Unix milliseconds */
  timestamp: number;
};

export type Usage = {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  totalTokens: number;
  reasoningTokens?: number;
  /** US dollars */
  cost: {
    input: number;
    output: number;
    cacheRead: number;
    cacheWrite: number;
    total: number;
  };
};

export type UserMessage = {
  role: "user";
  content: string | Array<InputContent>;
  /** Unix milliseconds */
  timestamp: number;
  synthetic?: boolean;
  steering?: boolean;
  attribution?: "user" | "agent";
};

export type __schema0 = {
  id: string;
  type: string;
  role?: string;
  /** Beginning of a message's text */
  text?: string;
  label?: string;
  timestamp: string;
  children: Array<__schema0>;
};

/** Command name → what it takes and what its response holds. */
export interface CommandMap {
  /** Ends the run, its tools, a retry wait, a compaction and running `bash` commands; succeeds when idle as well. */
  abort: {
    params: Record<string, unknown>;
    result: undefined;
  };
  /** Ends the run as `abort` does, then sends a user message. */
  abort_and_prompt: {
    params: {
      message: string;
      images?: Array<ImageContent>;
    };
    result: undefined;
  };
  /** Ends every running `bash` command; succeeds when none is running */
  abort_bash: {
    params: Record<string, unknown>;
    result: undefined;
  };
  /** Ends a wait between retries; succeeds when there is none as well. */
  abort_retry: {
    params: Record<string, unknown>;
    result: undefined;
  };
  /** Runs a shell command in the session's directory and adds it to the conversation */
  bash: {
    params: {
      /** Run by bash in the session's directory; `cd` lasts until the next command */
      command: string;
      /** Keep the run out of what the model sees */
      excludeFromContext?: boolean;
    };
    result: {
      /** stdout and stderr in order, without control characters; beginning and end when truncated */
      output: string;
      /** Absent when the command was aborted or timed out */
      exitCode?: number;
      /** Aborted or timed out */
      cancelled: boolean;
      timedOut?: boolean;
      truncated: boolean;
      totalLines: number;
      totalBytes: number;
      outputLines: number;
      outputBytes: number;
      /** The complete output when it is truncated */
      fullOutputPath?: string;
      /** The shell's directory afterwards */
      workingDir?: string;
      /** E.g. processes left running in the background */
      notes?: Array<string>;
    };
  };
  /** Makes a session of everything before a user message and goes on there; the old session stays as it is. */
  branch: {
    params: {
      entryId: string;
    };
    result: {
      /** Text of the user message, to edit and send again */
      text: string;
      cancelled: boolean;
    };
  };
  /** Ends a background conversation; answers when it is disposed. */
  cancel_background_session: {
    params: {
      sessionId: string;
    };
    result: undefined;
  };
  /** Replaces older messages by a summary of the model. Ends a run first; what comes in meanwhile is delivered afterwards. */
  compact: {
    params: {
      /** What the summary should pay attention to */
      customInstructions?: string;
    };
    result: CompactionResult;
  };
  /** Chooses the next model of --models or enabledModels, else of all that have a credential; null when there is no other. */
  cycle_model: {
    params: Record<string, unknown>;
    result: {
      model: Model;
      thinkingLevel?: ThinkingLevel;
      isScoped: boolean;
    } | null;
  };
  /** The next stronger thinking level the model has, after the strongest the weakest; null for models without reasoning. */
  cycle_thinking_level: {
    params: Record<string, unknown>;
    result: {
      level: ThinkingLevel;
    } | null;
  };
  /** Writes the whole session, all branches, as one HTML file that needs no network; known and likely secrets are masked. */
  export_html: {
    params: {
      /** Relative to the working directory; empty or absent: mortise-session-<name>.html there */
      outputPath?: string;
    };
    result: {
      /** As given, or the absolute path of the default */
      path: string;
    };
  };
  /** Queues a message that is read when the run would end. */
  follow_up: {
    params: {
      message: string;
      images?: Array<ImageContent>;
    };
    result: undefined;
  };
  /** Lists the slash commands a prompt may start with. */
  get_available_commands: {
    params: Record<string, unknown>;
    result: {
      commands: Array<SlashEntry>;
    };
  };
  /** The models that can be used now: their provider is enabled and has a credential or needs none. */
  get_available_models: {
    params: Record<string, unknown>;
    result: {
      models: Array<Model>;
    };
  };
  /** The thinking levels the model of the conversation has, weakest first. */
  get_available_thinking_levels: {
    params: Record<string, unknown>;
    result: {
      levels: Array<ThinkingLevel>;
    };
  };
  /** Lists the conversations that go on without the host, oldest first. */
  get_background_sessions: {
    params: Record<string, unknown>;
    result: {
      sessions: Array<{
        sessionId: string;
        /** Absent for sessions that are kept in memory */
        sessionFile?: string;
        /** The session's name, else the beginning of its first prompt */
        title: string;
        /** Unix milliseconds */
        detachedAt: number;
        /** False when only its jobs go on */
        streaming: boolean;
        /** It is being ended and is gone in a moment */
        stopping: boolean;
      }>;
    };
  };
  /** User messages of the whole session file with the ids `branch` takes. */
  get_branch_messages: {
    params: Record<string, unknown>;
    result: {
      messages: Array<{
        entryId: string;
        text: string;
      }>;
    };
  };
  /** Entries of the session log in file order, all of them or those after one. */
  get_entries: {
    params: {
      /** Id of the last entry the host has */
      since?: string;
    };
    result: {
      entries: Array<Record<string, unknown>>;
      leafId: string | null;
    };
  };
  /** Every known extension, built-in ones included: state, version, files, timings, errors and what it contributes. */
  get_extensions: {
    params: Record<string, unknown>;
    result: {
      extensions: Array<ExtensionInfo>;
    };
  };
  /** Text of the latest answer, or null when there is none. */
  get_last_assistant_text: {
    params: Record<string, unknown>;
    result: {
      text: string | null;
    };
  };
  /** The providers one can log in to, and whether a credential of each is known already. */
  get_login_providers: {
    params: Record<string, unknown>;
    result: {
      providers: Array<{
        id: string;
        name: string;
        available: boolean;
        authenticated: boolean;
      }>;
    };
  };
  /** The messages in context, oldest first; a message that is being streamed may be absent. */
  get_messages: {
    params: Record<string, unknown>;
    result: {
      messages: Array<AgentMessage>;
    };
  };
  /** One page of the messages in context, oldest first. */
  get_messages_page: {
    params: {
      /** `nextCursor` of the page before */
      cursor?: unknown;
      /** 1 to 256 messages, 100 by default */
      limit?: unknown;
    };
    result: {
      messages: Array<AgentMessage>;
      /** Absent on the last page */
      nextCursor?: string;
      totalMessages: number;
    };
  };
  /** Counts, tokens and cost of the messages in context. */
  get_session_stats: {
    params: Record<string, unknown>;
    result: {
      sessionFile?: string;
      sessionId: string;
      userMessages: number;
      assistantMessages: number;
      toolCalls: number;
      toolResults: number;
      totalMessages: number;
      tokens: {
        input: number;
        output: number;
        reasoning: number;
        cacheRead: number;
        cacheWrite: number;
        total: number;
      };
      premiumRequests: number;
      /** US dollars */
      cost: number;
      contextUsage?: {
        tokens: number;
        contextWindow: number;
        percent: number;
      };
    };
  };
  /** Everything a host shows about the attached conversation. */
  get_state: {
    params: Record<string, unknown>;
    result: {
      thinkingLevel?: string;
      isStreaming?: boolean;
      sessionId?: string;
      [field: string]: unknown;
    };
  };
  /** Reads the session file of a subagent from a byte on; `nextByte` is where the next call goes on. */
  get_subagent_messages: {
    params: {
      agentId?: string;
      /** The same as agentId */
      subagentId?: string;
      /** Of a subagent of this process */
      sessionFile?: string;
      /** 0 when left out */
      fromByte?: number;
    };
    result: {
      sessionFile: string;
      /** Where reading really began */
      fromByte: number;
      nextByte: number;
      /** The file was shorter than fromByte, so reading began anew */
      reset: boolean;
      entries: Array<{
        type: string;
        [field: string]: unknown;
      }>;
      messages: Array<{
        role: string;
        [field: string]: unknown;
      }>;
    };
  };
  /** Lists the subagents of the session that wait or run, whatever the subscription is. */
  get_subagents: {
    params: Record<string, unknown>;
    result: {
      subagents: Array<SubagentSnapshot>;
    };
  };
  /** The entries of the session log as a tree. */
  get_tree: {
    params: Record<string, unknown>;
    result: {
      tree: Array<__schema0>;
      leafId: string | null;
    };
  };
  /** Goes on in a new session that begins with the model's account of this one; what is queued moves along. */
  handoff: {
    params: {
      /** What the account should pay attention to */
      customInstructions?: string;
    };
    result: {
      savedPath?: string;
    } | null;
  };
  /** Stored sessions, the last changed first; files are not read whole. */
  list_sessions: {
    params: {
      /** Sessions of the working directory (default), or of all */
      scope?: "project" | "all";
      /** `nextCursor` of the page before */
      cursor?: string;
      /** Sessions of one page, 50 by default */
      limit?: number;
    };
    result: {
      sessions: Array<{
        file: string;
        id: string;
        cwd: string;
        name?: string;
        /** Unix milliseconds */
        created: number;
        /** Unix milliseconds */
        modified: number;
        /** Bytes */
        size: number;
        parentSession?: string;
        firstMessage?: string;
      }>;
      nextCursor?: string;
    };
  };
  /** Logs in to a provider by dialogs with the host, and stores the credential; abort cancels it. */
  login: {
    params: {
      providerId: string;
    };
    result: {
      providerId: string;
    };
  };
  /** Switches stdout to protocol v2: frames over 1 MiB come as uninterrupted `rpc_chunk` sequences. */
  negotiate_protocol: {
    params: {
      /** 2 */
      protocolVersion?: unknown;
    };
    result: {
      protocolVersion: 2;
    };
  };
  /** Starts an empty session; model, thinking level, queue modes and what the host contributed stay. */
  new_session: {
    params: {
      /** Lineage recorded in the new session */
      parentSession?: string;
      /** Lets a streaming turn go on in the background */
      background?: boolean;
    };
    result: {
      /** An extension kept the session as it was */
      cancelled: boolean;
      /** Present when a conversation moved to the background */
      background?: {
        sessionId: string;
        sessionFile?: string;
        streaming: boolean;
        displaced: Array<string>;
        message: string;
      };
    };
  };
  /** Sends a user message, or runs a slash command. */
  prompt: {
    params: {
      message: string;
      images?: Array<ImageContent>;
      /** Required while a run is going */
      streamingBehavior?: "steer" | "followUp";
    };
    result: {
      agentInvoked: boolean;
    };
  };
  /** Loads one extension anew, or looks through all folders and loads every one; answers when the new versions are live or have failed. A version that fails leaves the one before in place. */
  reload_extensions: {
    params: {
      /** Id or name; all of them when left out */
      extensionId?: string;
    };
    result: {
      reports: Array<ReloadReport>;
    };
  };
  /** Turns automatic compaction on or off. For this process; no settings file is written. */
  set_auto_compaction: {
    params: {
      enabled: boolean;
    };
    result: undefined;
  };
  /** Turns retries of failed model calls on or off. For this process; no settings file is written. */
  set_auto_retry: {
    params: {
      enabled: boolean;
    };
    result: undefined;
  };
  /** Sends only events of these types; null sends all again. Responses and process-level frames are always sent. */
  set_event_filter: {
    params: {
      /** Frame types, or null */
      events: unknown;
    };
    result: {
      events: Array<string> | null;
    };
  };
  /** Takes an extension out, or back in, until the daemon ends. Calls that run finish; what it hid answers again in the same step. */
  set_extension_enabled: {
    params: {
      /** Id or name */
      extensionId: string;
      enabled: boolean;
    };
    result: {
      extension: ExtensionInfo;
    };
  };
  /** How many follow-up messages are read at once. For this process; no settings file is written. */
  set_follow_up_mode: {
    params: {
      mode: "all" | "one-at-a-time";
    };
    result: undefined;
  };
  /** Replaces the tools that the host runs itself; offered from the next model call on. */
  set_host_tools: {
    params: {
      /** { name, label?, description, parameters (JSON Schema), hidden? } */
      tools: Array<Record<string, unknown>>;
    };
    result: {
      toolNames: Array<string>;
    };
  };
  /** Replaces the URL schemes whose reads and writes go to the host. */
  set_host_uri_schemes: {
    params: {
      /** { scheme, description?, writable?, immutable? } */
      schemes: Array<Record<string, unknown>>;
    };
    result: {
      schemes: Array<string>;
    };
  };
  /** Whether steering is looked for between tool calls or at the end of the turn; holds from the next run on. */
  set_interrupt_mode: {
    params: {
      mode: "immediate" | "wait";
    };
    result: undefined;
  };
  /** Whether `message_update` frames carry the message so far or only the delta. */
  set_message_updates: {
    params: {
      mode: "full" | "delta";
    };
    result: undefined;
  };
  /** Chooses the model of the conversation, from its next request on; no settings file is written. */
  set_model: {
    params: {
      provider: string;
      modelId: string;
    };
    result: Model;
  };
  /** Names the session; a name given here is never replaced by an automatic one. */
  set_session_name: {
    params: {
      name: string;
    };
    result: undefined;
  };
  /** How many steering messages are read at once. For this process; no settings file is written. */
  set_steering_mode: {
    params: {
      mode: "all" | "one-at-a-time";
    };
    result: undefined;
  };
  /** Chooses which frames about subagents are sent: none (at first), their progress, or all their events as well. */
  set_subagent_subscription: {
    params: {
      level?: "off" | "progress" | "events";
    };
    result: {
      level: "off" | "progress" | "events";
    };
  };
  /** How much the model thinks, from its next request on; a level it lacks becomes the nearest it has. */
  set_thinking_level: {
    params: {
      /** auto: what the model recommends */
      level: ThinkingLevel | "auto";
    };
    result: undefined;
  };
  /** Replaces the plan; a status that is not known, a missing content or a missing list changes nothing */
  set_todos: {
    params: {
      phases: Array<TodoPhase>;
    };
    result: {
      todoPhases: Array<TodoPhase>;
    };
  };
  /** Queues a message that is read between tool calls or at the end of the turn. */
  steer: {
    params: {
      message: string;
      images?: Array<ImageContent>;
    };
    result: undefined;
  };
  /** Opens a session file, or comes back to a background conversation whose turn still streams. */
  switch_session: {
    params: {
      /** Relative to the working directory */
      sessionPath: string;
    };
    result: {
      /** An extension kept the session as it was */
      cancelled: boolean;
      /** Present when a conversation moved to the background */
      background?: {
        sessionId: string;
        sessionFile?: string;
        streaming: boolean;
        displaced: Array<string>;
        message: string;
      };
    };
  };
}

/** Frame type → its fields without `type`. */
export interface EventMap {
  /** Work on a prompt is over, retries and continuations included; carries every message it made */
  agent_end: {
    messages: Array<AgentMessage>;
  };
  /** Work on a prompt begins */
  agent_start: Record<string, never>;
  /** An automatic compaction is over; exactly one follows each start. */
  auto_compaction_end: {
    action: "context-full" | "handoff";
    /** Absent when nothing was compacted */
    result?: CompactionResult;
    aborted: boolean;
    /** The model is asked again what had not fitted */
    willRetry: boolean;
    errorMessage?: string;
  };
  /** The context is being compacted without the host having asked; `isCompacting` is true already. */
  auto_compaction_start: {
    reason: "threshold" | "overflow" | "idle";
    action: "context-full" | "handoff";
  };
  /** A chain of retries is over; sent exactly once for each chain. */
  auto_retry_end: {
    success: boolean;
    /** The last attempt, counting from 1 */
    attempt: number;
    finalError?: string;
  };
  /** A model call failed and will be tried again after a wait. */
  auto_retry_start: {
    /** Counts from 1 */
    attempt: number;
    maxAttempts: number;
    delayMs: number;
    errorMessage: string;
  };
  /** The slash commands a prompt may start with; first after start-up, then whenever the listing changes */
  available_commands_update: {
    commands: Array<SlashEntry>;
  };
  /** What a slash command prints; it precedes the response of its prompt */
  command_output: {
    text: string;
  };
  /** A slash command changed the model or the thinking level */
  config_update: {
    model?: Model;
    thinkingLevel?: ThinkingLevel;
  };
  /** A handler, a load or a timer of an extension failed; the daemon goes on. */
  extension_error: {
    /** Path of the extension, or builtin:<name> */
    extensionPath: string;
    /** Hook point, load, or command:<name> */
    event: string;
    error: string;
    stack?: string;
    phase?: "load" | "setup" | "validate" | "hook" | "command" | "tool" | "timer" | "async" | "dispose";
    generation?: number;
  };
  /** A dialog or a notice for the person in front of the host; the methods are listed under “UI methods”. */
  extension_ui_request: {
    id: string;
    method: string;
    /** Milliseconds; the host applies the default itself when it has passed */
    timeout?: number;
    [field: string]: unknown;
  };
  /** A message is final and stored */
  message_end: {
    message: AgentMessage;
  };
  /** A message enters the conversation; for an answer of the model its content is still empty */
  message_start: {
    message: AgentMessage;
  };
  /** The model's answer grew; `message` is the answer so far, or without content in delta mode */
  message_update: {
    message: AssistantMessage;
    assistantMessageEvent: AssistantMessageEvent;
  };
  /** Another model answers from the next request on */
  model_changed: {
    model: Model;
  };
  /** Something a person should know that is no answer to a command */
  notice: {
    level: "info" | "warning" | "error";
    message: string;
    source?: string;
  };
  /** An accepted prompt has ended without an agent turn; after protocol v2 is negotiated also sent when its run has ended. */
  prompt_result: {
    id?: string | number;
    agentInvoked: boolean;
    /** v2 only */
    status?: "completed" | "aborted" | "error";
  };
  /** First line of stdout, written before anything is loaded. */
  ready: {
    protocolVersion: 1;
    supportedProtocolVersions: Array<number>;
    maxFrameBytes: number;
    maxReassembledFrameBytes: number;
  };
  /** The answer to a command; the only one, except that an acknowledged prompt may fail later under the same id. */
  response: {
    id?: string | number;
    command?: string;
    success: boolean;
    data?: unknown;
    error?: string;
    code?: string;
  };
  /** Retries of a model are used up; the run goes on with another one. */
  retry_fallback_applied: {
    from: string;
    to: string;
    role: string;
    reason?: string;
  };
  /** A fallback model answered. */
  retry_fallback_succeeded: {
    model: string;
    role: string;
  };
  /** Protocol v2: one piece of a frame over 1 MiB; the pieces of a frame follow one another without anything between. */
  rpc_chunk: {
    chunkId: string;
    index: number;
    count: number;
    /** UTF-8 bytes of the whole frame */
    byteLength: number;
    /** Base64 */
    data: string;
  };
  /** A slash command changed what a session is called */
  session_info_update: {
    title?: string;
    sessionId: string;
  };
  /** A session event of a subagent; sent at the level events. */
  subagent_event: {
    id: string;
    event: {
      type: string;
      [field: string]: unknown;
    };
  };
  /** A subagent has started or ended; sent at the levels progress and events. */
  subagent_lifecycle: {
    id: string;
    agent: string;
    agentSource: "bundled" | "user" | "project";
    index: number;
    sessionFile?: string;
    parentToolCallId?: string;
    /** It works behind its parent's back, as a job */
    detached?: boolean;
    description?: string;
    status: "started" | "completed" | "failed" | "aborted";
  };
  /** What a subagent is doing, at most every 150 ms; sent at the levels progress and events. */
  subagent_progress: {
    agent: string;
    agentSource: "bundled" | "user" | "project";
    index: number;
    sessionFile?: string;
    parentToolCallId?: string;
    /** It works behind its parent's back, as a job */
    detached?: boolean;
    task: string;
    assignment?: string;
    progress: AgentProgress;
  };
  /** Another thinking level holds from the next request on */
  thinking_level_changed: {
    thinkingLevel: ThinkingLevel;
  };
  /** Reserved: finished todos were taken out of the plan */
  todo_auto_clear: Record<string, never>;
  /** The model stopped with open todos and is told to go on */
  todo_reminder: {
    /** The open ones */
    todos: Array<TodoTask>;
    /** From 1 */
    attempt: number;
    maxAttempts: number;
  };
  /** A tool call is over */
  tool_execution_end: {
    toolCallId: string;
    toolName: string;
    result: ToolResult;
    isError: boolean;
  };
  /** A tool call is taken up; `args` are repaired and validated where that was possible */
  tool_execution_start: {
    toolCallId: string;
    toolName: string;
    args: Record<string, unknown>;
    intent?: string;
  };
  /** What a running tool has so far: a whole snapshot, at most ten a second */
  tool_execution_update: {
    toolCallId: string;
    toolName: string;
    args: Record<string, unknown>;
    partialResult: ToolResult;
  };
  /** Rules matched what the model was saying: its answer was cut off, or it is told about them after the turn or the call */
  ttsr_triggered: {
    rules: Array<{
      name: string;
      /** Absolute path of its file; rule://name for one that comes with mortise */
      path: string;
      content: string;
      globs?: Array<string>;
      alwaysApply?: boolean;
      description?: string;
      /** Regular expressions */
      condition?: Array<string>;
      scope?: Array<string>;
      interruptMode?: "always" | "prose-only" | "tool-only" | "never";
    }>;
  };
  /** A turn is over; `toolResults` stand in call order */
  turn_end: {
    message: AssistantMessage;
    toolResults: Array<ToolResultMessage>;
  };
  /** A turn begins: one answer of the model and the tools it calls */
  turn_start: Record<string, never>;
}
