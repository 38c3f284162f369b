// The export_html command: where it writes (public-bugs 24), what it hides (27), what it refuses.
import { lstatSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { type StartOptions, startDaemon, type TestDaemon } from "../../../core/testing.ts";
import { loadHighlight } from "../../../extensions/export/_highlight.ts";
import { escapeText, html, jsonForScript } from "../../../extensions/export/_html.ts";
import { loadMarkdown, safeUrl } from "../../../extensions/export/_markdown.ts";
import { MASKED, maskDeep, maskFor } from "../../../extensions/export/_mask.ts";
import { defaultName } from "../../../extensions/export/_write.ts";
import { ATTACKS, hostile, PNG } from "./_session.ts";

let d: TestDaemon;
afterEach(() => d?.stop());
const start = async (options: StartOptions = {}) => {
  d = await startDaemon({ watch: false, env: {}, ...options });
  return d;
};
const exported = (outputPath?: string) => d.request("export_html", outputPath === undefined ? {} : { outputPath });
const leftOvers = (folder: string) => readdirSync(folder).filter((name) => name.endsWith(".tmp"));

describe("export_html", () => {
  it("writes a private file with the default name and says where", async () => {
    await start();
    await d.prompt("Hello **there**");
    const before = readFileSync(d.daemon.conversations.attached.log.file ?? "", "utf8");
    const { path } = await d.ask("export_html", { outputPath: "" });
    expect(path).toBe(
      join(
        d.cwd,
        defaultName(d.daemon.conversations.attached.log.file ?? "", (text) => text),
      ),
    );
    expect(String(path)).toMatch(/\/mortise-session-[\w.-]+\.html$/);
    expect(statSync(String(path)).mode & 0o777).toBe(0o600);
    const page = readFileSync(String(path), "utf8");
    expect(page).toContain("<strong>there</strong>");
    expect(page).toContain("default-src &#39;none&#39;");
    expect(page).not.toMatch(/unsafe-inline|unsafe-eval/);
    // The session is as it was, and a second export replaces the first.
    expect(readFileSync(d.daemon.conversations.attached.log.file ?? "", "utf8")).toBe(before);
    await d.prompt("More");
    expect(await d.ask("export_html")).toEqual({ path });
    expect(readFileSync(String(path), "utf8")).toContain("More");
    expect(leftOvers(d.cwd)).toEqual([]);
  });

  it("gives a named path back as it was named", async () => {
    await start();
    await d.prompt("one");
    mkdirSync(join(d.cwd, "out"));
    expect(await d.ask("export_html", { outputPath: "out/../out/x.html" })).toEqual({ path: "out/../out/x.html" });
    expect(statSync(join(d.cwd, "out/x.html")).isFile()).toBe(true);
  });

  it("refuses a session in memory and one without messages", async () => {
    await start({ options: { noSession: true } });
    await d.prompt("one");
    expect(await exported()).toMatchObject({ success: false, error: "Cannot export in-memory session to HTML" });
    await d.stop();
    await start();
    expect(await exported()).toMatchObject({ success: false, error: "Nothing to export yet: the session has no messages" });
  });

  it("follows no link and overwrites nothing but an earlier export (case 24, parts 1 to 4)", async () => {
    await start();
    await d.prompt("one");
    const at = (name: string) => join(d.cwd, name);
    expect(await exported("../../../../nowhere/x/evil.html")).toMatchObject({ success: false, code: "not_found" });
    writeFileSync(at("authorized_keys"), "ssh-ed25519 AAAA");
    expect(await exported(at("authorized_keys"))).toMatchObject({
      success: false,
      error: expect.stringContaining("exists and is not an earlier export"),
    });
    expect(readFileSync(at("authorized_keys"), "utf8")).toBe("ssh-ed25519 AAAA");
    expect(await exported("out\0.html")).toMatchObject({ success: false, error: "Output path must not hold a NUL character" });
    writeFileSync(at("outside.html"), "<!DOCTYPE html>\n<p>mine");
    symlinkSync(at("outside.html"), at("link.html"));
    symlinkSync(at("missing.html"), at("dangling.html"));
    for (const name of ["link.html", "dangling.html"])
      expect(await exported(name)).toMatchObject({ success: false, error: expect.stringContaining("it is a symbolic link") });
    expect(lstatSync(at("link.html")).isSymbolicLink()).toBe(true);
    expect(await exported("outside.html")).toMatchObject({ success: false });
    expect(readFileSync(at("outside.html"), "utf8")).toBe("<!DOCTYPE html>\n<p>mine");
    expect(await exported(".")).toMatchObject({ success: false, error: expect.stringContaining("it is a folder") });
    writeFileSync(at("empty.html"), "");
    expect(await exported("empty.html")).toMatchObject({ success: false });
    // A link to an earlier export is still a link.
    await d.ask("export_html", { outputPath: "first.html" });
    symlinkSync(at("first.html"), at("again.html"));
    expect(await exported("again.html")).toMatchObject({ success: false });
    expect(leftOvers(d.cwd)).toEqual([]);
    expect(await d.ask("get_state")).toMatchObject({ messageCount: 2 });
  });

  it("writes inside the folder whatever the session is called (case 24, parts 5 and 6)", async () => {
    await start();
    await d.prompt("one");
    await d.request("set_session_name", { name: "../../evil/name\n\u001b[2J" });
    const { path } = await d.ask("export_html");
    expect(String(path).startsWith(`${d.cwd}/mortise-session-`)).toBe(true);
    expect(readFileSync(String(path), "utf8")).not.toMatch(/[\u0000-\u0008\u000b-\u001f]/);
  });

  it("hides known and likely secrets in every field, and leaves pictures and the session alone (case 27)", async () => {
    const canary = `ghp_CANARY5${"x".repeat(29)}`;
    await start({ files: { "auth.json": JSON.stringify({ anthropic: { type: "api_key", key: "plain-words-CANARY1" } }) } });
    const { log } = d.daemon.conversations.attached;
    await d.prompt(`My token is ${canary}`);
    await d.request("set_session_name", { name: canary });
    log.append({ type: "label", targetId: log.entries[0]?.id ?? "", label: canary });
    log.append({ type: "custom", customType: canary, data: { [canary]: ["plain-words-CANARY1"] } });
    log.append({
      type: "message",
      message: {
        role: "toolResult",
        toolCallId: "c",
        toolName: canary,
        content: [
          { type: "text", text: `Authorization: Bearer CANARY-${"b".repeat(20)}\nhttp://u:CANARY4@127.0.0.1:1/` },
          { type: "image", data: PNG, mimeType: "image/png" },
        ],
        isError: false,
        timestamp: 1,
      },
    });
    const before = readFileSync(log.file ?? "", "utf8");
    const { path } = await d.ask("export_html");
    const page = readFileSync(String(path), "utf8");
    expect(page).not.toContain("CANARY");
    expect(page.split(MASKED).length).toBeGreaterThan(8);
    expect(page).toContain(PNG);
    expect(readFileSync(log.file ?? "", "utf8")).toBe(before);
    expect(before).toContain(canary);
  });

  it("is there as /export, to files only", async () => {
    await start();
    await d.prompt("one");
    const say = async (text: string) => {
      const after = d.frames.length;
      d.send({ id: text, type: "prompt", message: text });
      return String((await d.next("command_output", { after }))["text"]);
    };
    expect(await say("/export copy")).toContain("to a file only");
    expect(await say("/export page.html")).toContain("Exported to page.html");
    expect(statSync(join(d.cwd, "page.html")).isFile()).toBe(true);
  });

  it("keeps a hostile session inside its data block (case 23)", async () => {
    await start();
    const session = hostile().write(join(d.home, "hostile.jsonl"));
    await d.ask("switch_session", { sessionPath: session });
    const { path } = await d.ask("export_html");
    const page = readFileSync(String(path), "utf8");
    expect(page.match(/<\/script>/gi)).toHaveLength(2);
    expect(page.match(/<script/gi)).toHaveLength(2);
    const data = /<script type="application\/json" id="data">(.*?)<\/script>/s.exec(page)?.[1] ?? "";
    expect(data).not.toMatch(/[<>&\u2028\u2029]/);
    expect((JSON.parse(data) as { lines: unknown[] }).lines).toHaveLength(hostile().lines.length);
    expect(page).not.toMatch(/\son\w+="/i);
  });
});

describe("What is made of text", { timeout: process.env["MORTISE_SOAK"] ? 300_000 : 30_000 }, () => {
  it("has no markup of the text's own, whatever the text", async () => {
    const markdown = await loadMarkdown(await loadHighlight());
    const piece = fc.oneof(
      fc.constantFrom(
        ...ATTACKS,
        "<",
        ">",
        '"',
        "'",
        "&",
        "`",
        "```\n",
        "\n\n",
        "[",
        "](",
        ")",
        "|",
        "# ",
        "> ",
        "- ",
        "<pre>",
        "</pre>",
        "&lt;",
      ),
      fc.string({ maxLength: 5 }),
    );
    const tags = /^(?:div|p|br|hr|h[1-6]|ul|ol|li|blockquote|pre|code|table|thead|tbody|tr|th|td|strong|em|del|a|span|button)$/;
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const out = markdown(pieces.join("")).text;
        for (const [, name, attributes] of out.matchAll(/<\/?([^\s>/]*)([^>]*)>/g)) {
          expect(name).toMatch(tags);
          expect(attributes).toMatch(/^(?: (?:class|data-lang|start|target|rel|href|dir|type|aria-label)="[^"<>]*")*$/);
        }
        // No link inside of a link: a browser would close the first.
        expect(out.replace(/<(?!\/?a[ >])[^<>]*>/g, "")).not.toMatch(/<a [^<]*<a /);
        expect(out.replace(/<[^<>]*>/g, "")).not.toMatch(/[<>]/);
        for (const [, href] of out.matchAll(/href="([^"]*)"/g)) expect(href).toMatch(/^(?:https?:\/\/|mailto:)/);
      }),
      { numRuns: process.env["MORTISE_SOAK"] ? 20_000 : 500 },
    );
  });

  it("shows Markdown as people expect it", async () => {
    const markdown = await loadMarkdown(await loadHighlight());
    const shown = (text: string) => markdown(text).text;
    expect(shown("a & b &amp; c < d")).toContain("a &amp; b &amp; c &lt; d");
    expect(shown("`a &amp; <b>`")).toContain("<code>a &amp;amp; &lt;b&gt;</code>");
    expect(shown("[x](https://example.com/?a=1&b=2)")).toContain(
      '<a href="https://example.com/?a=1&amp;b=2" target="_blank" rel="noopener noreferrer">x</a>',
    );
    expect(shown("[x](javascript:alert(1))")).toContain("[x](javascript:alert(1))");
    expect(shown("```ts\nconst a = 1;\n```")).toContain('<span class="hljs-keyword">const</span>');
    expect(shown("- [x] a\n- [ ] b")).toMatch(/☑<\/span> .*a.*☐<\/span> .*b/s);
    expect(shown("|a|b|\n|--:|:-:|\n|1|2|")).toContain('<td class="right">1</td><td class="center">2</td>');
    expect(shown("a &mdash; b &copy; &unknown;")).toContain("a — b © &amp;unknown;");
    // A picture that leads somewhere is one link, a tag of its own text in lines, a heading below those of the page.
    expect(shown("[![ci](https://a.example/b.svg)](https://c.example/)").match(/<a /g)).toHaveLength(1);
    expect(shown("<plan>\none\ntwo\n</plan>")).toContain('<div class="plain">&lt;plan&gt;\none\ntwo\n&lt;/plan&gt;</div>');
    expect(shown("# a")).toContain("<h3>a</h3>");
  });

  it("keeps formulas as they were written, and takes no price for one", async () => {
    const markdown = await loadMarkdown(await loadHighlight());
    const shown = (text: string) => markdown(text).text;
    for (const formula of ["$a_1 * b_2 * c_3$", "\\(x^2 \\_ y*\\)", "\\[ \\{*a*\\} \\]", "$$\\sum_{i} *x* _y_$$"])
      expect(shown(`so ${formula} holds`)).toContain(`so <span class="math">${formula}</span> holds`);
    for (const block of ["$$\na = b \\\\\n- c\n\n+ *d*\n$$", "\\[\n# x\n\\]"])
      expect(shown(block)).toContain(`<div class="math">${block}</div>`);
    for (const text of ["It costs $5 and $10.", "`$a_b$`", "echo $HOME:$PATH", "from $1 to $2", "an \\* and $$"])
      expect(shown(text)).not.toContain("math");
  });

  it("shows what would reorder it, in prose, code and names", async () => {
    const markdown = await loadMarkdown(await loadHighlight());
    const text = "a\u202eb\u2066c\u200f \u200d";
    expect(escapeText(text)).toBe("a[U+202E]b[U+2066]c\u200f \u200d");
    for (const source of [text, `\`${text}\``, `\`\`\`js\n"${text}"\n\`\`\``]) {
      expect(markdown(source).text).toContain("a[U+202E]b[U+2066]c");
      expect(markdown(source).text).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/);
    }
  });

  it("takes no long time over text that was made to", async () => {
    const markdown = await loadMarkdown(await loadHighlight());
    const mask = maskFor([]);
    const begun = process.cpuUsage();
    for (const piece of [
      "*",
      "_a",
      "> ",
      "[",
      "*a **",
      "`",
      "<a ",
      "eyJ-",
      "sk-",
      "a.",
      "x://a:",
      "|a",
      "~a~",
      "$",
      "$_a",
      "$$ ",
      "\\(",
      "\\[",
      "[![i](u)](v)",
    ]) {
      const text = piece.repeat(100_000 / piece.length);
      expect(markdown(text).text).toContain("<div");
      mask(text);
    }
    // Quadratic time would be minutes.
    expect(process.cpuUsage(begun).user).toBeLessThan(20_000_000);
  });

  it("lets links lead to the web and to mail only", () => {
    for (const href of [
      "javascript:x",
      "JaVa\tScript:x",
      " javascript:x",
      "data:text/html,x",
      "file:///etc/passwd",
      "//x.y",
      "/x",
      "#x",
      "java&#115;cript:x",
      "https:",
      "vbscript:x",
      "blob:https://x/y",
    ])
      expect(safeUrl(href)).toBeUndefined();
    expect(safeUrl("HTTPS://Example.com/a b")).toBe("https://example.com/a%20b");
    expect(safeUrl("mailto:a@example.com")).toBe("mailto:a@example.com");
  });

  it("is escaped in templates, unless it is markup of ours", () => {
    expect(html`<b title="${'"'}">${"<i>"}${html`<i>`}${["<", html`<br>`]}${undefined}${0}</b>`.text).toBe(
      '<b title="&quot;">&lt;i&gt;<i>&lt;<br>0</b>',
    );
    expect(escapeText("\u001b[31mred\u001b[0m\u0000\r\nx\ud800")).toBe("red\ufffd\nx\ufffd");
    const data = { text: "</script><!--\u2028&", n: [1] };
    expect(jsonForScript(data).text).not.toMatch(/[<>&\u2028]/);
    expect(JSON.parse(jsonForScript(data).text)).toEqual(data);
  });
});

describe("Masking", () => {
  const mask = maskFor(["s3cret-value", "s3cret-value-longer", "abc"]);
  it("hides what is known and what looks like a secret", () => {
    const samples = [
      "s3cret-value",
      "s3cret-value-longer",
      `ghp_${"a1".repeat(18)}`,
      `github_pat_${"a1".repeat(20)}`,
      "sk-live-CANARY1abc",
      `sk-ant-api03-${"x".repeat(40)}`,
      "AKIAIOSFODNN7EXAMPLE",
      `AIza${"b".repeat(35)}`,
      "xoxb-123456789012-abcdef",
      "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
      "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
      "-----BEGIN OPENSSH PRIVATE KEY-----\ncut off",
    ];
    for (const sample of samples) expect(mask(`a ${sample} b`)).toMatch(/^a \[masked\](?: b)?$/);
    expect(mask("Authorization: Bearer abcdef0123456789")).toBe("Authorization: Bearer [masked]");
    expect(mask("postgres://user:hunter2@db/x")).toBe("postgres://user:[masked]@db/x");
  });
  it("leaves ordinary text alone", () => {
    for (const text of [
      "abc",
      "sk-learn-something-very-long",
      "https://example.com/a:b@c",
      "the bearer of bad news",
      "ghp_short",
      "task-based-approach-1",
      "src/disk-usage-2024.ts",
    ])
      expect(mask(text)).toBe(text);
  });
  it("masks keys and nested texts, and no picture", () => {
    const value = { "s3cret-value": [{ type: "image", data: PNG, mimeType: "s3cret-value" }, 1, null], data: "s3cret-value" };
    expect(maskDeep(value, mask)).toEqual({ [MASKED]: [{ type: "image", data: PNG, mimeType: MASKED }, 1, null], data: MASKED });
    expect(maskDeep({ type: "image", data: "no base64: s3cret-value", mimeType: "x" }, mask)).toMatchObject({
      data: `no base64: ${MASKED}`,
    });
  });
});

describe("The default name", () => {
  it("cannot lead elsewhere", () => {
    const plain = (text: string) => text;
    expect(defaultName("/a/2026-01-02_0199.jsonl", plain)).toBe("mortise-session-2026-01-02_0199.html");
    expect(defaultName("/a/..\u001b[2J/../x y\n<b>.jsonl", plain)).toBe("mortise-session-x-y-b-.html");
    expect(defaultName("/a/.jsonl", plain)).toBe("mortise-session-session.html");
    expect(defaultName(`/a/${"x".repeat(500)}.jsonl`, plain).length).toBeLessThan(200);
    fc.assert(
      fc.property(fc.string(), (name) => {
        expect(defaultName(name, plain)).toMatch(/^mortise-session-[\w.-]+\.html$/);
      }),
      { numRuns: 300 },
    );
  });
});
