// Case 23: an export of the built daemon runs nothing of the conversation in it. What needs a browser is skipped where no Chromium is.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CHROMIUM, Chromium } from "../extensions/export/_chromium.ts";
import { CLICK_ALL, INJECT, INSPECT } from "../extensions/export/_page-checks.ts";
import { ATTACKS, hostile } from "../extensions/export/_session.ts";
import { ask, PATIENCE_MS, useProcesses, wait } from "./_support.ts";

const use = useProcesses();
/** A name that a file may have and a page must not believe. */
const FILE = `x"><img src=x onerror=PWN(1)>.jsonl`;

async function exported() {
  const daemon = use.start();
  await wait(daemon, "ready");
  const session = hostile();
  await ask(daemon, "switch_session", { sessionPath: session.write(join(daemon.home, "cloned", FILE)) });
  const { path } = await ask(daemon, "export_html", { outputPath: "out.html" });
  expect(path).toBe("out.html");
  const file = join(daemon.cwd, "out.html");
  return { daemon, session, file, html: readFileSync(file, "utf8") };
}

describe("case 23", { timeout: 2 * PATIENCE_MS }, () => {
  it("the page has a policy that allows two scripts by hash and nothing from the network", async () => {
    const { html } = await exported();
    const policy = (/<meta http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(html)?.[1] ?? "").replaceAll(
      "&#39;",
      "'",
    );
    expect(policy).toMatch(/default-src 'none'/);
    expect(policy).toMatch(/script-src 'sha256-[A-Za-z0-9+/=]+'/);
    expect(policy).not.toMatch(/script-src[^;]*unsafe|https?:|\*/);
    // It stands before anything it has to hold for.
    expect(html.indexOf("Content-Security-Policy")).toBeLessThan(html.search(/<(script|style|title|body)/));
  });

  it("embedded data cannot close its script element, and is the session, whole", async () => {
    const { html, session } = await exported();
    const data = /<script type="application\/json" id="data">([\s\S]*?)<\/script>/.exec(html)?.[1];
    expect(data).toBeDefined();
    expect(data).not.toMatch(/[<\u2028\u2029]/);
    expect((JSON.parse(data ?? "{}") as { lines: unknown[] }).lines).toHaveLength(session.lines.length);
    expect(html.match(/<script/g)).toHaveLength(2);
  });

  it("no markup of the conversation survives: no handler, no address that runs", async () => {
    const { html } = await exported();
    const markup = html.replace(/<script[\s\S]*?<\/script>/g, "").replace(/<style[\s\S]*?<\/style>/g, "");
    for (const tag of markup.match(/<[a-z][^>]*>/gi) ?? []) {
      expect(tag).not.toMatch(/\son[a-z]+\s*=/i);
      expect(tag).not.toMatch(/(href|src)\s*=\s*["']?\s*(javascript|vbscript|data:text)/i);
      if (/<a\b[^>]*href="https?:/.test(tag)) expect(tag).toContain('rel="noopener noreferrer"');
    }
  });

  it.skipIf(CHROMIUM === undefined)(
    "in a browser, after clicking everything, with the policy and without, nothing runs",
    async () => {
      const { file } = await exported();
      const browser = new Chromium(CHROMIUM ?? "");
      use.later(() => browser.close());
      for (const bypassPolicy of [false, true]) {
        const page = await browser.page();
        await page.open(file, { inject: INJECT, bypassPolicy });
        expect(await page.evaluate(INSPECT)).toEqual([]);
        expect(await page.evaluate(CLICK_ALL)).toBe(0);
        expect(await page.evaluate(INSPECT)).toEqual([]);
        expect(page.requests.filter((url) => !/^(?:data:image\/|blob:)/.test(url))).toEqual([
          expect.stringContaining("out.html"),
        ]);
        expect(page.problems).toEqual([]);
        expect(await page.evaluate("location.protocol")).toBe("file:");
        // What was sent to harm is still there to be read.
        const text = await page.evaluate<string>("document.querySelector('main').textContent");
        for (const attack of ATTACKS.slice(0, 3)) expect(text).toContain(attack);
        expect(text).toContain("javascript:PWN(1)");
      }
    },
  );
});
