// Types of the context for the authors' door.
export type { Context, Invocation, Logger, Ui, UiMethods } from "./context.ts";
export type { DialogOptions } from "./host-requests.ts";
