import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { piTuiModule } from "../../../extensions/dialects/_pi-tui.ts";
import { truncateToWidth, visibleWidth, wrapTextWithAnsi } from "../../../extensions/dialects/_text-width.ts";
import { createTheme, inert } from "../../../extensions/dialects/_theme.ts";

const runs = { numRuns: process.env["MORTISE_SOAK"] ? 5000 : 200 };
const red = (text: string) => `\x1b[31m${text}\x1b[0m`;

describe("text measures", () => {
  it("escape sequences take no room, wide characters two", () => {
    expect(visibleWidth(red("abc"))).toBe(3);
    expect(visibleWidth("漢字")).toBe(4);
    expect(visibleWidth("e\u0301")).toBe(1);
    expect(visibleWidth("\x1b]8;;http://x\x07link\x1b]8;;\x07")).toBe(4);
    expect(visibleWidth("👍")).toBe(2);
  });

  it("cutting keeps to the width", () => {
    expect(truncateToWidth("hello world", 8)).toBe("hello w…");
    expect(truncateToWidth("hi", 5, "…", true)).toBe("hi   ");
    expect(visibleWidth(truncateToWidth(red("漢字漢字"), 5))).toBeLessThanOrEqual(5);
  });

  it("no cut or wrapped line is wider than asked, and wrapping loses no word", () => {
    const text = fc.stringMatching(/^[a-z漢👍 ]{0,60}$/u);
    fc.assert(
      fc.property(text, fc.integer({ min: 2, max: 30 }), (value, width) => {
        expect(visibleWidth(truncateToWidth(value, width))).toBeLessThanOrEqual(width);
        const lines = wrapTextWithAnsi(value, width);
        for (const line of lines) expect(visibleWidth(line)).toBeLessThanOrEqual(width);
        expect(lines.join("").replaceAll(" ", "")).toBe(value.replaceAll(" ", ""));
      }),
      runs,
    );
  });

  it("an open style goes on in the next line", () => {
    expect(wrapTextWithAnsi("\x1b[31mone two", 4)).toEqual(["\x1b[31mone", "\x1b[31mtwo"]);
  });
});

describe("what only a terminal has", () => {
  it("the theme gives texts back, also for styles nobody named", () => {
    const theme = createTheme() as Record<string, (...args: unknown[]) => unknown>;
    expect(theme["fg"]?.("accent", "text")).toBe("text");
    expect(theme["bold"]?.("text")).toBe("text");
    expect(theme["styledSymbol"]?.("tool.todo", "text")).toBe("text");
    expect(`${theme["status"]}`).toBe("");
  });

  it("inert values and the theme can be awaited", async () => {
    expect(typeof (await inert())).toBe("function");
    expect(typeof (await createTheme())).toBe("object");
  });

  it("components can be extended, with private members, and draw plain text", () => {
    const tui = piTuiModule();
    const Base = tui["Container"] as new (
      ...args: unknown[]
    ) => { render(width: number): string[]; addChild(child: unknown): void };
    const Text = tui["Text"] as new (...args: unknown[]) => object;
    class Mine extends Base {
      #count = 1;
      count(): number {
        return this.#count++;
      }
    }
    const mine = new Mine();
    mine.count();
    mine.addChild(new Text("hello there", 0, 0));
    expect(mine.count()).toBe(2);
    expect(mine).toBeInstanceOf(Base);
    expect(mine.render(5)).toEqual(["hello", "there"]);
  });

  it("keys have names", () => {
    const tui = piTuiModule() as Record<string, (...args: unknown[]) => unknown>;
    const Key = tui["Key"] as unknown as Record<string, (key: string) => string>;
    expect(Key["ctrl"]?.("c")).toBe("ctrl+c");
    expect(tui["matchesKey"]?.("\x03", "ctrl+c")).toBe(true);
    expect(tui["matchesKey"]?.("\x1b", Key["escape"])).toBe(true);
    expect(tui["matchesKey"]?.("a", "b")).toBe(false);
  });

  it("fuzzyFilter ranks by closeness and keeps everything for an empty query", () => {
    const tui = piTuiModule() as Record<string, (...args: unknown[]) => unknown>;
    const text = (item: unknown) => String(item);
    expect(tui["fuzzyFilter"]?.(["xaxb", "ab", "c"], "ab", text)).toEqual(["ab", "xaxb"]);
    expect(tui["fuzzyFilter"]?.(["b", "a"], "", text)).toEqual(["b", "a"]);
  });
});
