// Exports in a real browser (public-bugs 23). Skipped where no Chromium is installed: apt-get install chromium.
import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startDaemon } from "../../../core/testing.ts";
import { CHROMIUM, Chromium } from "./_chromium.ts";
import { CLICK_ALL, INJECT, INSPECT } from "./_page-checks.ts";
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

describe.skipIf(CHROMIUM === undefined)("An exported page", () => {
  let browser: Chromium;
  beforeAll(() => {
    browser = new Chromium(CHROMIUM ?? "");
  });
  afterAll(() => browser.close());

  it("runs nothing of a hostile session, with its policy and without (case 23)", async () => {
    const path = await exported(hostile(), "hostile", `x"><img src=x onerror=PWN(1)>.jsonl`);
    for (const bypassPolicy of [false, true]) {
      const page = await browser.page();
      await page.open(path, { inject: INJECT, bypassPolicy });
      expect(await page.evaluate(INSPECT)).toEqual([]);
      expect(await page.evaluate(CLICK_ALL)).toBe(0);
      expect(await page.evaluate(INSPECT)).toEqual([]);
      expect(page.requests.filter((url) => !url.startsWith("data:image/"))).toEqual([expect.stringContaining("hostile.html")]);
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
    const path = await exported(friendly(), "friendly");
    await page.open(path);
    const visible = () =>
      page.evaluate<string>(
        "[...document.querySelectorAll('article')].filter((each) => each.checkVisibility()).map((each) => each.textContent).join('\\n')",
      );
    const rows = () =>
      page.evaluate<number>("[...document.querySelectorAll('.row')].filter((each) => each.checkVisibility()).length");
    expect(await visible()).toContain("You are welcome.");
    expect(await visible()).not.toContain("Quotes use a stack now.");
    await page.evaluate(
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
    const id = friendly().lines.find((line) => JSON.stringify(line).includes("Quotes are done differently"))?.["id"];
    await linked.open(path, { hash: `#entry-${String(id)}` });
    expect(await linked.evaluate("document.querySelector('article.marked').checkVisibility()")).toBe(true);
    expect(await linked.evaluate("document.querySelector('article.marked').textContent")).toContain(
      "Quotes are done differently",
    );
    expect(await linked.evaluate("document.querySelector('img.picture').naturalWidth")).toBe(1);
    expect(linked.problems).toEqual([]);
  });

  it("gives the session back as JSONL", async () => {
    const page = await browser.page();
    await page.open(await exported(friendly(), "download"));
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
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(JSON.parse(JSON.stringify(friendly().lines)));
    expect(lines.join("")).toContain(PNG);
  });
});
