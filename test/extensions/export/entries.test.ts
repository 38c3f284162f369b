// What entries of every kind look like on an exported page, sound and damaged: files of other programs and of other people hold
// what the types do not promise, and an export of them must not fail.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { SessionEntry, SessionHeader } from "../../../core/extension.ts";
import { isEntry } from "../../../core/session/entry.ts";
import { startDaemon } from "../../../core/testing.ts";
import { renderEntry } from "../../../extensions/export/_entry.ts";
import { loadHighlight } from "../../../extensions/export/_highlight.ts";
import { Images } from "../../../extensions/export/_images.ts";
import { loadMarkdown } from "../../../extensions/export/_markdown.ts";
import { maskDeep, TOO_DEEP } from "../../../extensions/export/_mask.ts";
import { renderPage } from "../../../extensions/export/_page.ts";
import { friendly, PNG } from "./_session.ts";

type Json = Readonly<Record<string, unknown>>;

const tools = async () => {
  const highlight = await loadHighlight();
  return { highlight, markdown: await loadMarkdown(highlight), images: new Images(), calls: new Map<string, string>() };
};
const entry = (fields: Json) =>
  ({ id: "x", parentId: null, timestamp: "2026-01-02T03:04:05.000Z", ...fields }) as unknown as SessionEntry;
const message = (fields: Json) => entry({ type: "message", message: { timestamp: 1, ...fields } });
const usage = { input: 1, output: 1, cacheRead: 1, cacheWrite: 1, totalTokens: 4, cost: { total: 1 } };
const answer = (content: readonly Json[], fields: Json = {}) =>
  message({ role: "assistant", content, usage, provider: "p", model: "m", stopReason: "stop", duration: 3, ...fields });
const result = (toolCallId: string, toolName: string, fields: Json = {}) =>
  message({ role: "toolResult", toolCallId, toolName, content: [{ type: "text", text: "out" }], isError: false, ...fields });

const SOUND: readonly SessionEntry[] = [
  entry({ type: "model_change", provider: "a", modelId: "b", model: "a/b" }),
  entry({ type: "thinking_level_change", thinkingLevel: "x" }),
  entry({ type: "label", targetId: "u", label: "x" }),
  entry({ type: "session_info", name: "x" }),
  entry({ type: "title_change", title: "t" }),
  entry({ type: "custom", customType: "slot:todos", data: [{ name: "n", tasks: [{ content: "c", status: "pending" }] }] }),
  entry({ type: "custom_message", customType: "c", content: "x", display: true, details: 1 }),
  entry({
    type: "compaction",
    summary: "s",
    firstKeptEntryId: "u",
    tokensBefore: 1,
    details: { readFiles: ["a"], modifiedFiles: ["b"] },
  }),
  entry({ type: "branch_summary", summary: "s", fromId: "u" }),
  entry({ type: "subagent_spawn", agentId: "a", sessionFile: "x", agentName: "n", status: "s", task: "t" }),
  entry({ type: "never_seen", foo: { bar: 1 } }),
  message({ role: "user", content: [{ type: "text", text: "x" }], steering: true }),
  answer(
    [
      { type: "text", text: "x" },
      { type: "thinking", thinking: "x" },
      { type: "toolCall", id: "c", name: "n", arguments: { path: "x", edits: [{ oldText: "a", newText: "b" }] } },
    ],
    { stopReason: "error", errorMessage: "e" },
  ),
  result("c", "n", { content: [{ type: "image", data: PNG, mimeType: "image/png" }], details: { diff: "x", patch: "y" } }),
  message({ role: "bashExecution", command: "c", output: "o", exitCode: 1, cancelled: false, truncated: true }),
  message({ role: "custom", customType: "c", content: "x", display: true }),
  message({ role: "compactionSummary", summary: "s", tokensBefore: 1 }),
  message({ role: "pythonExecution", code: "c", output: "o" }),
  message({ role: "alien", content: "x" }),
];
const WRONG: readonly unknown[] = [null, 5, {}, [null], { toString: 1 }, "x"];

/** The value with each of its members replaced by each wrong one, and left out. */
function* mutations(value: unknown): Generator<unknown> {
  if (typeof value !== "object" || value === null) return;
  for (const [key, member] of Object.entries(value)) {
    const put = (other: unknown) => (Array.isArray(value) ? value.with(Number(key), other) : { ...value, [key]: other });
    for (const wrong of [...WRONG, undefined]) yield put(wrong);
    for (const mutated of mutations(member)) yield put(mutated);
  }
}

it("shows every entry, whatever is wrong with it", async () => {
  // A session does not open with what is no entry.
  const mutated = SOUND.flatMap((sound) => [...mutations(sound)]).map((each, index) => ({ ...(each as Json), id: `${index}` }));
  const entries = mutated.filter(isEntry);
  expect(entries.length).toBeGreaterThan(500);
  const material = {
    parents: entries.map((_, index) => index - 1),
    leaf: entries.length - 1,
    labels: new Map(),
    systemPrompt: [],
  };
  const header: SessionHeader = { type: "session", id: "0199a", timestamp: "", cwd: "" };
  const more = { header, name: undefined, toolSchemas: [], todos: [], subagents: [], downloadName: "x.jsonl" };
  const page = (await renderPage({ ...material, ...more, entries }, await tools())).join("");
  expect(page.match(/<article /g)).toHaveLength(entries.length);
});

it("exports what is nested deeper than anything means to be", async () => {
  const deep = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
  expect(JSON.stringify(maskDeep(JSON.parse(deep(20_000)), (text) => text))).toContain(TOO_DEEP);
  const d = await startDaemon({ watch: false, env: {} });
  try {
    const file = friendly();
    file.add({ type: "custom", customType: "deep", data: "HERE" });
    const path = file.write(join(d.home, "deep.jsonl"));
    writeFileSync(
      path,
      `${file.lines
        .map((line) => JSON.stringify(line))
        .join("\n")
        .replace('"HERE"', deep(20_000))}\n`,
    );
    await d.ask("switch_session", { sessionPath: path });
    expect(await d.ask("export_html", { outputPath: "deep.html" })).toEqual({ path: "deep.html" });
  } finally {
    await d.stop();
  }
});

it("says how an answer ended that was no whole one", async () => {
  const shown = await tools().then((all) => (fields: Json) => renderEntry(answer([], fields), all));
  expect(shown({ stopReason: "aborted" }).body.text).toContain('<p class="failure">Aborted</p>');
  expect(shown({ stopReason: "error", errorMessage: "529 busy" })).toMatchObject({ line: "Failed: 529 busy", failed: true });
  expect(shown({ stopReason: "length" }).line).toContain("Cut off");
  expect(shown({ stopReason: "stop" }).body.text).not.toContain("failure");
});

it("says of a result what was called, and shows texts and changes of a call in lines", async () => {
  const all = await tools();
  const args = { path: "src/a.ts", content: "const a = 1;\nconst b = 2;", mode: 7 };
  const edits = { path: "b.ts", edits: [{ oldText: "a\nb", newText: "c" }] };
  const calls = [
    { type: "toolCall", id: "1", name: "write", arguments: args },
    { type: "toolCall", id: "2", name: "edit", arguments: edits },
    { type: "toolCall", id: "3", name: "read", arguments: { path: "<b>" } },
  ];
  const { text } = renderEntry(answer(calls), all).body;
  expect(text).toContain('<span class="hljs-keyword">const</span> b');
  expect(text).toContain('<span class="removed">-a\n</span><span class="removed">-b\n</span><span class="added">+c\n</span>');
  expect(text).toContain('<span class="hljs-attr">&quot;mode&quot;</span>');
  expect(renderEntry(result("1", "write"), all)).toMatchObject({ hint: "src/a.ts", line: "write: src/a.ts" });
  expect(renderEntry(result("3", "read"), all).hint).toBe("<b>");
  expect(renderEntry(result("unknown", "read"), all).line).toBe("read: out");
});

it("leads from the record of a subagent to its transcript, whatever its id", async () => {
  const { body, title } = renderEntry(entry({ type: "subagent_spawn", agentId: 'A "b" ü\ud800' }), await tools());
  expect(title).toBe('Subagent A "b" ü\ud800');
  const id = "agent:A%20%22b%22%20%C3%BC%EF%BF%BD";
  expect(body.text).toContain(`href="#${encodeURIComponent(id)}"`);
});
