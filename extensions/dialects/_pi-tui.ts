// The terminal library of the families. Text measures and key names are real; components hold what they are given and draw
// plain text, because there is no terminal.
import type { VirtualModule } from "mortise/extension";
import { sliceByColumn, stripTerminalSequences, truncateToWidth, visibleWidth, wrapTextWithAnsi } from "./_text-width.ts";
import { inert } from "./_theme.ts";

// A symbol and not a private member: methods run on the proxy, where private members of the object are out of reach.
const ownText = Symbol("text");

/** The base of all components: children, text, and drawing that never fails. */
export class Component {
  readonly children: unknown[] = [];
  readonly args: readonly unknown[];
  focused = false;
  [ownText]: string;

  constructor(...args: unknown[]) {
    this.args = args;
    this[ownText] = typeof args[0] === "string" ? args[0] : "";
    // Members of real components that are not here (themes, editors' methods) read as values without effect; callbacks are
    // unset until the extension sets them.
    // biome-ignore lint/correctness/noConstructorReturn: a proxy is the only way to answer for unknown members
    return new Proxy(this, {
      get: (target, key, receiver) => {
        if (key in target) return Reflect.get(target, key, receiver);
        return typeof key !== "string" || key === "then" || /^on[A-Z]/.test(key) ? undefined : inert();
      },
    });
  }

  addChild(child: unknown): void {
    this.children.push(child);
  }
  removeChild(child: unknown): void {
    const index = this.children.indexOf(child);
    if (index >= 0) this.children.splice(index, 1);
  }
  clear(): void {
    this.children.length = 0;
  }
  setText(text: unknown): void {
    this[ownText] = String(text ?? "");
  }
  getText(): string {
    return this[ownText];
  }
  setValue(value: unknown): void {
    this.setText(value);
  }
  getValue(): string {
    return this[ownText];
  }
  handleInput(_data: string): void {}
  invalidate(): void {}
  dispose(): void {}
  render(width: number): string[] {
    const own = this[ownText] === "" ? [] : wrapTextWithAnsi(this[ownText], width);
    return [...own, ...this.children.flatMap((child) => drawn(child, width))];
  }
}

function drawn(child: unknown, width: number): string[] {
  if (typeof child !== "object" || child === null || !("render" in child) || typeof child.render !== "function") return [];
  const lines: unknown = child.render(width);
  return Array.isArray(lines) ? lines.map(String) : [];
}

/** A component class of its own, so that `extends` and `instanceof` work. */
export function componentClass(name: string): typeof Component {
  return { [name]: class extends Component {} }[name] ?? Component;
}

const COMPONENTS = [
  "Text",
  "TruncatedText",
  "Box",
  "Container",
  "PaneContainer",
  "Spacer",
  "Markdown",
  "SelectList",
  "SettingsList",
  "Input",
  "Editor",
  "Image",
  "Loader",
  "CancellableLoader",
  "TUI",
  "ProcessTerminal",
  "StdinBuffer",
  "CombinedAutocompleteProvider",
  "KeybindingsManager",
  "HStack",
  "Marked",
  "MouseRegion",
  "ScrollView",
  "TuiAltScreen",
  "TuiMainScreen",
  "VStack",
];

/** Functions that only a terminal gives a meaning. */
const INERT = [
  "getKeybindings",
  "setKeybindings",
  "getEditorKeybindings",
  "setEditorKeybindings",
  "setKittyProtocolActive",
  "decodeKittyPrintable",
  "adjacentPane",
  "allPanes",
  "computeLayout",
  "newLeaf",
  "paneCount",
  "removePane",
  "setRatio",
  "splitPane",
  "allocateImageId",
  "calculateImageRows",
  "deleteAllKittyImages",
  "deleteKittyImage",
  "encodeITerm2",
  "encodeKitty",
  "getCellDimensions",
  "setCellDimensions",
  "getGifDimensions",
  "getImageDimensions",
  "getJpegDimensions",
  "getPngDimensions",
  "getWebpDimensions",
  "imageFallback",
  "renderImage",
  "resetCapabilitiesCache",
  "backgroundAnsi",
  "colorToHex",
  "colorToOkhsl",
  "colorToOklch",
  "colorToRgb",
  "compositeTuiLine",
  "foregroundAnsi",
  "formatProgramStatus",
  "getNativeClipboard",
  "getOsc8LinkAtColumn",
  "getSelectPageIndex",
  "getTerminalColorMode",
  "indexedColor",
  "isAppleTerminalSession",
  "isViewportTUI",
  "mixColors",
  "okhslColor",
  "oklabToOkhslLightness",
  "oklchColor",
  "parseColor",
  "parseTerminalColorSchemeReport",
  "renderFakeCursor",
  "renderLatex",
  "rgbColor",
  "setCapabilities",
  "setCapabilityOverrides",
  "setImageTranscoder",
];

/** The namespace of `…/pi-tui`. */
export function piTuiModule(): VirtualModule {
  return {
    ...Object.fromEntries(COMPONENTS.map((name) => [name, componentClass(name)])),
    ...Object.fromEntries(INERT.map((name) => [name, () => inert()])),
    hyperlink: (text: unknown) => String(text),
    styleText: (_style: unknown, text: unknown) => String(text),
    styleTextWithAnsi: (text: unknown) => String(text),
    stripTerminalSequences,
    replaceControlCharacters: (text: string) => text.replace(/[\x00-\x08\x0b-\x1f\x7f]/g, "\ufffd"),
    sliceByColumn,
    visibleWidth,
    truncateToWidth,
    wrapTextWithAnsi,
    fuzzyMatch,
    fuzzyFilter,
    Key,
    matchesKey,
    parseKey,
    isKeyRelease: (data: string) => /\x1b\[[0-9;]*:3[a-zA-Z~]/.test(data),
    isKeyRepeat: (data: string) => /\x1b\[[0-9;]*:2[a-zA-Z~]/.test(data),
    isKittyProtocolActive: () => false,
    isFocusable: (value: unknown) => typeof value === "object" && value !== null && "focused" in value,
    getCapabilities: () => ({ images: null, trueColor: false, hyperlinks: false }),
    detectCapabilities: () => ({ images: null, trueColor: false, hyperlinks: false }),
    CURSOR_MARKER: "\x1b_pi:c\x07",
    TUI_KEYBINDINGS: {},
    DEFAULT_EDITOR_KEYBINDINGS: {},
  };
}

/** Names of keys as texts: `Key.ctrl("c")` is `ctrl+c`. Members that are not listed are their own name in lower case. */
const modifier =
  (name: string) =>
  (key: string): string =>
    `${name}+${key}`;
const Key: Record<string, unknown> = {
  ...Object.fromEntries(
    [
      "escape",
      "enter",
      "return",
      "tab",
      "space",
      "backspace",
      "delete",
      "insert",
      "home",
      "end",
      "up",
      "down",
      "left",
      "right",
    ].map((name) => [name, name]),
  ),
  esc: "escape",
  pageUp: "pageUp",
  pageDown: "pageDown",
  ...Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`f${index + 1}`, `f${index + 1}`])),
  ctrl: modifier("ctrl"),
  shift: modifier("shift"),
  alt: modifier("alt"),
  super: modifier("super"),
  ctrlShift: modifier("ctrl+shift"),
  ctrlAlt: modifier("ctrl+alt"),
  shiftAlt: modifier("shift+alt"),
  shiftCtrl: modifier("ctrl+shift"),
  altShift: modifier("shift+alt"),
  altCtrl: modifier("ctrl+alt"),
  ctrlShiftAlt: modifier("ctrl+shift+alt"),
};

const SEQUENCES: Readonly<Record<string, string>> = {
  "\x1b": "escape",
  "\r": "enter",
  "\n": "enter",
  "\t": "tab",
  " ": "space",
  "\x7f": "backspace",
  "\b": "backspace",
  "\x1b[A": "up",
  "\x1b[B": "down",
  "\x1b[C": "right",
  "\x1b[D": "left",
  "\x1b[H": "home",
  "\x1b[F": "end",
  "\x1b[3~": "delete",
  "\x1b[5~": "pageUp",
  "\x1b[6~": "pageDown",
  "\x1b[Z": "shift+tab",
};

/** The name of a key sequence, undefined when it is none we know. */
function parseKey(data: string): string | undefined {
  const known = SEQUENCES[data];
  if (known !== undefined) return known;
  const code = data.charCodeAt(0);
  if (data.length === 1) return code < 27 ? `ctrl+${String.fromCharCode(code + 96)}` : data;
  return data.length === 2 && data.startsWith("\x1b") ? `alt+${data[1]}` : undefined;
}

function matchesKey(data: string, key: string): boolean {
  const name = parseKey(data)?.toLowerCase();
  const wanted = key
    .toLowerCase()
    .replace(/^esc$/, "escape")
    .replace(/^return$/, "enter");
  return name === wanted;
}

/** All characters of the query in order; lower scores are better, undefined-like `matches: false` when one is missing. */
function fuzzyMatch(query: string, text: string): { matches: boolean; score: number } {
  const wanted = query.toLowerCase();
  const given = text.toLowerCase();
  let at = -1;
  let score = 0;
  for (const character of wanted) {
    const next = given.indexOf(character, at + 1);
    if (next < 0) return { matches: false, score: 0 };
    const startsWord = next === 0 || /[\s\-_./:]/.test(given[next - 1] ?? "");
    score += next === at + 1 ? -2 : next - at - 1;
    if (startsWord) score -= 5;
    at = next;
  }
  return { matches: true, score };
}

/** Items that match every word of the query, best first. */
function fuzzyFilter<T>(items: readonly T[], query: string, getText: (item: T) => string): T[] {
  const words = query.trim().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [...items];
  return items
    .flatMap((item, index) => {
      const found = words.map((word) => fuzzyMatch(word, getText(item)));
      const score = found.reduce((sum, each) => sum + each.score, 0);
      return found.every((each) => each.matches) ? [{ item, index, score }] : [];
    })
    .sort((a, b) => a.score - b.score || a.index - b.index)
    .map(({ item }) => item);
}
