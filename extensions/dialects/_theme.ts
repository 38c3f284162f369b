// A theme that colours nothing, and values that stand in for what only a terminal has.

/** Gives back the text of a styling call: its last argument that is a text. */
function plainText(...args: unknown[]): string {
  return args.findLast((arg) => typeof arg === "string") ?? "";
}

/**
 * A value that can be called, read and printed without effect: members nobody named here (`theme.status.success`,
 * `theme.spinnerFrames`) must not end the extension. It never answers `then`, so it can be awaited.
 */
export function inert(): unknown {
  return new Proxy(plainText, {
    get: (target, key) => {
      if (key === "then") return undefined;
      if (key === Symbol.toPrimitive) return () => "";
      if (key === Symbol.iterator) return () => [][Symbol.iterator]();
      if (key === "toString" || key === "toJSON") return () => "";
      if (key === "length") return 0;
      if (key === "prototype") return Reflect.get(target, key);
      return inert();
    },
  });
}

/** `ctx.ui.theme`: every style returns its text unchanged. */
export function createTheme(): unknown {
  const known: Record<string, unknown> = {
    name: "plain",
    fg: plainText,
    bg: plainText,
    bold: plainText,
    dim: plainText,
    italic: plainText,
    underline: plainText,
    inverse: plainText,
    strikethrough: plainText,
    getFgAnsi: () => "",
    getBgAnsi: () => "",
    getColorMode: () => "truecolor",
    getThinkingBorderColor: () => plainText,
    getBashModeBorderColor: () => plainText,
  };
  return new Proxy(known, {
    get: (target, key) => {
      if (typeof key !== "string" || key === "then") return undefined;
      return Object.hasOwn(target, key) ? target[key] : inert();
    },
  });
}
