// The authors' door, "mortise/extension". Names only; a name added here is a promise (test/architecture.test.ts pins the list).
import "./agent/context-extension.ts";

export { z } from "zod";
export * from "../protocol/content.ts";
export * from "../protocol/message.ts";
export * from "../protocol/model.ts";
export type { ConversationHandle, InterruptMode, QueueMode, Selection, SubmitOptions } from "./agent/conversation-types.ts";
export {
  defineProvider,
  type ModelMessage,
  type ProviderDefinition,
  type ProviderEvent,
  type ProviderRequest,
  type TokenCounts,
  type ToolSchema,
} from "./agent/provider.ts";
export { defineSetting, type SettingDefinition } from "./agent/settings.ts";
export { defineSlot, type Slot, type SlotDefinition } from "./agent/slot.ts";
export { defineTool, type ToolContext, type ToolDefinition, textResult } from "./agent/tool.ts";
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
export { createToken, defineService, type ServiceDefinition, type Token } from "./kernel/services.ts";
export {
  type DialectDefinition,
  type DialectHints,
  type DialectUnit,
  defineDialect,
  type VirtualModule,
} from "./services/dialects.ts";
export * from "./services/host-uris.ts";
export { Launch } from "./services/launch.ts";
export { defineLoginFlow, type LoginContext, type LoginFlowDefinition } from "./services/login.ts";
export * from "./services/models.ts";
export * from "./services/settings.ts";
export * from "./services/shell.ts";
export * from "./services/slash.ts";
