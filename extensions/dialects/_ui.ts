// `ctx.ui` of the families over our UI methods. What only a terminal could show has no effect and says what the protocol
// reference says it says (protocol-facts §4.4).
import type { Context, DialogOptions } from "mortise/extension";
import type { Runtime } from "./_runtime.ts";
import { isObject } from "./_schema.ts";
import { createTheme } from "./_theme.ts";

const UNTHEMED = { success: false, error: "Theme switching not supported in RPC mode" };

/** Builds the `ui` object for one context. All members work detached. */
export function createUi(runtime: Runtime, ctx: Context): Record<string, unknown> {
  const dialog = (method: string, params: Record<string, unknown>, options: unknown): Promise<unknown> => {
    runtime.assertUsable(`ui.${method}`);
    return ctx.ui.call(method, params, dialogOptions(options));
  };
  /** Notices of a disposed generation are dropped: its timers may still have one to give. */
  const notice = (method: string, params: Record<string, unknown>): void => {
    if (!runtime.usable || !ctx.hasUI) return;
    runtime.background(`ui.${method}`, ctx.ui.call(method, params));
  };
  const setEditorText = (value: unknown): void => notice("set_editor_text", { text: String(value ?? "") });

  return {
    select: async (title: unknown, options: unknown, dialogOptions?: unknown) =>
      dialog("select", selectParams(title, options), dialogOptions),
    confirm: async (title: unknown, message: unknown, options?: unknown) =>
      (await dialog("confirm", { title: String(title), message: String(message ?? "") }, options)) === true,
    input: async (title: unknown, placeholder?: unknown, options?: unknown) =>
      dialog("input", { title: String(title), ...given("placeholder", placeholder) }, options),
    editor: async (title: unknown, prefill?: unknown, options?: unknown, editorOptions?: unknown) =>
      dialog("editor", { title: String(title), ...given("prefill", prefill), ...promptStyle(editorOptions) }, options),
    notify: (message: unknown, level?: unknown) =>
      notice("notify", { message: String(message), ...(isLevel(level) ? { notifyType: level } : {}) }),
    setStatus: (key: unknown, value: unknown) => notice("setStatus", { statusKey: String(key), ...given("statusText", value) }),
    setWidget: (key: unknown, content: unknown, options?: unknown) => {
      // Component factories need a terminal.
      if (typeof content === "function") return;
      notice("setWidget", widgetParams(key, content, options));
    },
    setTitle: (title: unknown) => notice("setTitle", { title: String(title) }),
    setEditorText,
    pasteToEditor: setEditorText,
    getEditorText: () => "",
    custom: async () => undefined,
    askDialog: async () => undefined,
    theme: createTheme(),
    getAllThemes: () => [],
    getTheme: () => undefined,
    setTheme: () => ({ ...UNTHEMED }),
    getToolsExpanded: () => false,
    setToolsExpanded: nothing,
    onTerminalInput: () => nothing,
    addAutocompleteProvider: () => nothing,
    setAutocompleteProvider: nothing,
    setWorkingMessage: nothing,
    setWorkingVisible: nothing,
    setWorkingIndicator: nothing,
    setHiddenThinkingLabel: nothing,
    setFooter: nothing,
    setHeader: nothing,
    setEditorComponent: nothing,
    getEditorComponent: () => undefined,
    scrollToEntry: () => ({ success: false, error: "Scrolling not supported in RPC mode" }),
    scrollToBottom: nothing,
  };
}

function nothing(): void {}

function selectParams(title: unknown, options: unknown): Record<string, unknown> {
  const list = Array.isArray(options) ? options : [];
  const labels = list.map(labelOf);
  const details = list.map((option) =>
    isObject(option) && typeof option["description"] === "string" ? { description: option["description"] } : {},
  );
  const described = details.some((detail) => "description" in detail);
  return { title: String(title), options: labels, ...(described ? { optionDetails: details } : {}) };
}

function labelOf(option: unknown): string {
  return isObject(option) ? String(option["label"] ?? option["value"] ?? "") : String(option);
}

function widgetParams(key: unknown, content: unknown, options: unknown): Record<string, unknown> {
  const placement = isObject(options) ? options["placement"] : undefined;
  return {
    widgetKey: String(key),
    ...(Array.isArray(content) ? { widgetLines: content.map(String) } : {}),
    ...(placement === "aboveEditor" || placement === "belowEditor" ? { widgetPlacement: placement } : {}),
  };
}

function dialogOptions(options: unknown): DialogOptions {
  if (!isObject(options)) return {};
  const { timeout, signal, onTimeout } = options;
  return {
    ...(typeof timeout === "number" ? { timeout } : {}),
    ...(signal instanceof AbortSignal ? { signal } : {}),
    ...(typeof onTimeout === "function" ? { onTimeout: () => void onTimeout() } : {}),
  };
}

function given(key: string, value: unknown): Record<string, string> {
  return value === undefined || value === null ? {} : { [key]: String(value) };
}

function promptStyle(options: unknown): Record<string, boolean> {
  return isObject(options) && typeof options["promptStyle"] === "boolean" ? { promptStyle: options["promptStyle"] } : {};
}

function isLevel(level: unknown): level is "info" | "warning" | "error" {
  return level === "info" || level === "warning" || level === "error";
}
