// Exports in a real browser (public-bugs 23). Skipped where no Chromium is installed: apt-get install chromium.
import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startDaemon } from "../../../core/testing.ts";
import { CHROMIUM, Chromium, type Page } from "./_chromium.ts";
import { CLICK_ALL, CONTRAST, INJECT, INSPECT } from "./_page-checks.ts";
import { ATTACKS, friendly, hostile, PNG, type SessionFile } from "./_session.ts";

if (CHROMIUM === undefined) console.warn("No Chromium found: the exports are not tried in a browser");

let folder = "";
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "mortise-export-")));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function exported(file: SessionFile, name: string, fileName = `${name}.jsonl`): Promise<string> {
  const session = file.write(join(folder, fileName));
  const d = await startDaemon({ watch: false, env: {} });
  try {
    await d.ask("switch_session", { sessionPath: session });
    const { path } = await d.ask("export_html", { outputPath: join(folder, `${name}.html`) });
    return String(path);
  } finally {
    await d.stop();
  }
}

let made: Promise<string> | undefined;
/** One export for the tests that only look at it. */
const shared = () => (made ??= exported(friendly(), "friendly"));
const first = () => String(friendly().lines.find((line) => JSON.stringify(line).includes("Please fix the parser"))?.["id"]);
/** Does what leads to another entry and waits until the page is there. */
const follow = (page: Page, expression: string) =>
  page.evaluate(
    `new Promise((resolve) => { addEventListener("hashchange", resolve, { once: true }); ${expression}; }).then(() => {})`,
  );
const arrive = async (page: Page, act: () => Promise<void>) => {
  await page.evaluate(
    `globalThis.arrived = new Promise((resolve) => addEventListener("hashchange", () => resolve(), { once: true })), 0`,
  );
  await act();
  await page.evaluate("globalThis.arrived");
};

describe.skipIf(CHROMIUM === undefined)("An exported page", () => {
  let browser: Chromium;
  beforeAll(() => {
    browser = new Chromium(CHROMIUM ?? "");
  });
  afterAll(() => browser.close());

  it("runs nothing of a hostile session, with its policy and without (case 23)", async () => {
    const path = await exported(hostile(), "hostile", `x"><img src=x onerror=PWN(1)>.jsonl`);
    await browser.send("Browser.setDownloadBehavior", { behavior: "deny" });
    for (const bypassPolicy of [false, true]) {
      const page = await browser.page();
      await page.open(path, { inject: INJECT, bypassPolicy });
      expect(await page.evaluate(INSPECT)).toEqual([]);
      expect(await page.evaluate(CLICK_ALL)).toBe(0);
      expect(await page.evaluate(INSPECT)).toEqual([]);
      expect(page.requests.filter((url) => !/^(?:data:image\/|blob:)/.test(url))).toEqual([
        expect.stringContaining("hostile.html"),
      ]);
      expect(page.problems).toEqual([]);
      expect(await page.evaluate("location.protocol")).toBe("file:");
    }
    // The texts are still there to be read.
    const page = await browser.page();
    await page.open(path);
    const text = await page.evaluate<string>("document.querySelector('main').textContent");
    for (const piece of [
      "<img src=x onerror=PWN(1)>",
      "javascript:PWN(1)",
      "data:text/html,<script>PWN(1)</script>",
      "<details ontoggle=PWN(1) open>",
      "</script><script>PWN(1)</script>",
    ])
      expect(text).toContain(piece);
    const data = await page.evaluate<{ lines: unknown[] }>("JSON.parse(document.getElementById('data').textContent)");
    expect(data.lines).toHaveLength(hostile().lines.length);
    expect(JSON.stringify(data)).toContain(JSON.stringify(ATTACKS[19]).slice(1, -1));
  });

  it("shows one branch at a time, searches, filters and links", async () => {
    const page = await browser.page();
    const path = await shared();
    await page.open(path);
    const visible = () =>
      page.evaluate<string>(
        "[...document.querySelectorAll('article')].filter((each) => each.checkVisibility()).map((each) => each.textContent).join('\\n')",
      );
    const rows = () =>
      page.evaluate<number>("[...document.querySelectorAll('.row')].filter((each) => each.checkVisibility()).length");
    expect(await visible()).toContain("You are welcome.");
    expect(await visible()).not.toContain("Quotes use a stack now.");
    await follow(
      page,
      "[...document.querySelectorAll('.row')].find((row) => row.textContent.includes('Do it with a stack')).firstChild.click()",
    );
    expect(await visible()).toContain("Quotes use a stack now.");
    expect(await visible()).toContain("Tried quotes by recursion");
    expect(await visible()).not.toContain("You are welcome.");
    expect(await visible()).not.toContain("Quotes are done differently.");
    const all = await rows();
    const search = (text: string) =>
      page.evaluate(
        `(() => { const box = document.getElementById("search"); box.value = ${JSON.stringify(text)}; box.dispatchEvent(new Event("input")); })()`,
      );
    await search("STACK quotes");
    expect(await rows()).toBe(1);
    await search("nowhere to be found");
    expect(await rows()).toBe(0);
    expect(await page.evaluate("document.getElementById('count').textContent")).toBe("No entry fits");
    await search("");
    expect(await rows()).toBe(all);
    const filter = (name: string) => page.evaluate(`document.querySelector("[data-filter=${name}]").click()`);
    await filter("user");
    expect(await rows()).toBe(5);
    await filter("labelled");
    expect(await rows()).toBe(1);
    await filter("all");
    expect(await rows()).toBeGreaterThan(all);
    // Thinking and tools open and close together.
    await page.evaluate("document.querySelector('[data-action=thinking]').click()");
    expect(await page.evaluate("[...document.querySelectorAll('details.thinking')].every((each) => each.open)")).toBe(true);
    await page.evaluate("document.querySelector('[data-action=theme]').click()");
    expect(await page.evaluate("document.documentElement.dataset.theme")).toMatch(/dark|light/);
    // A deep link opens the branch it is on.
    const linked = await browser.page();
    await linked.open(path, { hash: "#entry-ünï-漢字" });
    expect(await linked.evaluate("document.querySelector('article.marked').checkVisibility()")).toBe(true);
    expect(await linked.evaluate("document.querySelector('article.marked').textContent")).toContain(
      "Quotes are done differently",
    );
    expect(await linked.evaluate("document.querySelector('img.picture').naturalWidth")).toBe(1);
    // Back leads to where one was, an address that is none to nowhere.
    await follow(linked, `document.querySelector("[href='#entry-${first()}']").click()`);
    expect(await linked.evaluate("document.querySelector('article.marked').textContent")).toContain("Please fix the parser");
    await follow(linked, "history.back()");
    expect(await linked.evaluate("document.querySelector('article.marked').id")).toBe("entry-ünï-漢字");
    await follow(linked, "location.hash = '#%E0%A4%A'");
    expect(await linked.evaluate("document.querySelector('article.marked')")).toBe(null);
    expect(linked.problems).toEqual([]);
  });

  it("is worked with the keyboard: search, tree, entry, and back", async () => {
    const page = await browser.page();
    await page.open(await shared());
    const press = async (key: string, text?: string) => {
      const code = { Enter: 13, Escape: 27, Tab: 9 }[key];
      const event = {
        key,
        ...(text === undefined ? {} : { text }),
        ...(code === undefined ? {} : { windowsVirtualKeyCode: code }),
      };
      await page.send("Input.dispatchKeyEvent", { type: "keyDown", ...event });
      await page.send("Input.dispatchKeyEvent", { type: "keyUp", key });
    };
    const focused = (what = "textContent") => page.evaluate<string>(`document.activeElement.${what}`);
    await press("/", "/");
    expect(await focused("id")).toBe("search");
    for (const letter of "value39") await press(letter, letter);
    expect(await page.evaluate("document.getElementById('count').textContent")).toMatch(/^1 of /);
    // What hides the hit is opened, and the hit is coloured.
    await arrive(page, () => press("Enter", "\r"));
    expect(await focused("tagName")).toBe("ARTICLE");
    expect(await page.evaluate("document.activeElement.querySelector('details.result').open")).toBe(true);
    expect(await page.evaluate("CSS.highlights.get('hit').size")).toBe(1);
    await press("/", "/");
    await press("Escape");
    expect(await page.evaluate("document.getElementById('search').value")).toBe("");
    await press("ArrowDown");
    expect(await focused("getAttribute('role')")).toBe("treeitem");
    await press("Home");
    expect(await focused()).toContain("Please fix the parser");
    await press("ArrowRight");
    expect(await focused()).toContain("I'll read the parser first");
    await press("End");
    expect(await focused()).toContain("You are welcome");
    await press("ArrowUp");
    await press("ArrowLeft");
    expect(await focused()).toContain("Please fix the parser");
    await arrive(page, () => press("Enter", "\r"));
    expect(await focused("tagName")).toBe("ARTICLE");
    // One stop for the whole tree, and names for what has none to read.
    expect(await page.evaluate("[...document.querySelectorAll('#tree a')].filter((each) => each.tabIndex === 0).length")).toBe(1);
    expect(
      await page.evaluate("[...document.querySelectorAll('button')].every((each) => each.textContent || each.ariaLabel)"),
    ).toBe(true);
    expect(await page.evaluate("document.querySelector('[data-filter=default]').ariaPressed")).toBe("true");
    expect(page.problems).toEqual([]);
  });

  it("fits a telephone, where the tree is a menu", async () => {
    const page = await browser.page();
    const metrics = { width: 400, height: 800, deviceScaleFactor: 1, mobile: false };
    await page.send("Emulation.setDeviceMetricsOverride", metrics);
    await page.open(await shared());
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(400);
    const seen = () => page.evaluate<boolean>("document.getElementById('sidebar').checkVisibility({ visibilityProperty: true })");
    const leave = "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }))";
    expect(await seen()).toBe(false);
    await page.evaluate("document.getElementById('menu').click()");
    expect(await seen()).toBe(true);
    expect(await page.evaluate("document.activeElement.id + document.getElementById('menu').ariaExpanded")).toBe("searchtrue");
    expect(await page.evaluate("document.getElementById('main').inert")).toBe(true);
    await page.evaluate(leave);
    expect(await seen()).toBe(false);
    expect(await page.evaluate("document.activeElement.id + document.getElementById('menu').ariaExpanded")).toBe("menufalse");
    await page.evaluate("document.getElementById('menu').click()");
    await follow(page, "document.querySelector('#tree a').click()");
    expect(await seen()).toBe(false);
    expect(await page.evaluate("document.activeElement.tagName")).toBe("ARTICLE");
  });

  it("copies what stands in a block, also where the clipboard is not given", async () => {
    const page = await browser.page();
    await page.open(await shared());
    const copied = await page.evaluate<string[]>(`(async () => {
      const texts = [];
      const button = document.querySelector(".entry.tool pre.diff").parentElement.querySelector(".copy");
      const write = (act) => Object.defineProperty(navigator, "clipboard", { value: { writeText: act }, configurable: true });
      const said = () => new Promise((resolve) => new MutationObserver(resolve).observe(button, { attributeFilter: ["class"] }));
      document.addEventListener("copy", () => texts.push(document.activeElement.value));
      for (const act of [async (text) => void texts.push(text), () => Promise.reject(new Error("no"))]) {
        write(act);
        const done = said();
        button.click();
        await done;
        texts.push(button.ariaLabel);
        button.classList.remove("done");
      }
      return texts;
    })()`);
    expect(copied).toEqual([expect.stringContaining("-12   const indent = 0;\n+12   const"), "Copied", copied[0], "Copied"]);
  });

  it("can be read in both themes, and rows and entries cost nothing out of sight", async () => {
    const page = await browser.page();
    await page.open(await shared());
    await page.evaluate(
      "document.querySelector('[data-filter=all]').click(), document.querySelectorAll('details').forEach((each) => (each.open = true))",
    );
    for (const theme of ["light", "dark"]) {
      await page.evaluate(`document.documentElement.dataset.theme = "${theme}"`);
      expect(await page.evaluate(CONTRAST)).toEqual([]);
    }
    // List items are numbered by the browser, and anew for every one that is hidden: quadratic in a long session.
    expect(await page.evaluate("getComputedStyle(document.querySelector('#tree > li')).display")).toBe("block");
    expect(await page.evaluate("getComputedStyle(document.querySelector('.entry').parentElement).contentVisibility")).toBe(
      "auto",
    );
  });

  it("gives the session back as JSONL", async () => {
    const page = await browser.page();
    const session = friendly();
    // What could be mistaken for something else on the way there or back.
    session.message({
      role: "user",
      content: [
        { type: "image", data: "$image:0", mimeType: "image/png" },
        { type: "text", text: "\ud800</script>\u2028" },
      ],
    });
    session.add({
      type: "custom",
      customType: "odd",
      data: JSON.parse('{"__proto__":{"a":1},"constructor":[{"type":"image","data":{"$image":0}}]}'),
    });
    await page.open(await exported(session, "download"));
    await browser.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: folder, eventsEnabled: true });
    const done = browser.event("Browser.downloadProgress", ({ state }) => state === "completed");
    const begun = browser.event("Browser.downloadWillBegin");
    await page.evaluate("document.querySelector('[data-action=download]').click()");
    const { suggestedFilename } = await begun;
    await done;
    expect(suggestedFilename).toBe("mortise-session-download.jsonl");
    const lines = readFileSync(join(folder, String(suggestedFilename)), "utf8")
      .trimEnd()
      .split("\n");
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(JSON.parse(JSON.stringify(session.lines)));
    expect(lines.join("")).toContain(PNG);
  });
});
