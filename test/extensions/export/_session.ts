// Session files written by hand: a hostile one (public-bugs 23) and a friendly one to look at.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

export const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const usage = {
  input: 1200,
  output: 340,
  cacheRead: 5000,
  cacheWrite: 10,
  totalTokens: 6550,
  cost: { input: 0.01, output: 0.02, cacheRead: 0, cacheWrite: 0, total: 0.03 },
};

type Fields = Record<string, unknown>;

export class SessionFile {
  readonly lines: Fields[] = [];
  #last: string | null = null;
  #count = 0;

  constructor(header: Fields = {}) {
    this.lines.push({ type: "session", version: 3, id: "0199a", timestamp: "2026-01-02T03:04:05.000Z", cwd: "/work", ...header });
  }
  /** Adds an entry below the last one, or below `parentId`. Gives its id. */
  add(fields: Fields, parentId: string | null = this.#last): string {
    const id = typeof fields["id"] === "string" ? fields["id"] : `e${String(++this.#count).padStart(7, "0")}`;
    const timestamp = new Date(Date.UTC(2026, 0, 2, 3, 4, this.lines.length)).toISOString();
    this.lines.push({ timestamp, ...fields, id, parentId });
    this.#last = id;
    return id;
  }
  message(message: Fields, more: Fields = {}, parentId?: string | null): string {
    return this.add(
      { type: "message", message: { timestamp: 1, ...message }, ...more },
      ...(parentId === undefined ? [] : [parentId]),
    );
  }
  user(text: string, more: Fields = {}, parentId?: string | null): string {
    return this.message({ role: "user", content: [{ type: "text", text }] }, more, parentId);
  }
  assistant(content: unknown[], message: Fields = {}): string {
    return this.message({
      role: "assistant",
      content,
      api: "a",
      provider: "anthropic",
      model: "claude",
      usage,
      stopReason: "stop",
      ...message,
    });
  }
  result(toolCallId: string, toolName: string, text: string, more: Fields = {}): string {
    return this.message({ role: "toolResult", toolCallId, toolName, content: [{ type: "text", text }], isError: false, ...more });
  }
  write(path: string): string {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${this.lines.map((line) => JSON.stringify(line)).join("\n")}\n`);
    return path;
  }
}

const M = "PWN(1)";
export const ATTACKS = [
  `<img src=x onerror=${M}>`,
  `</script><script>${M}</script>`,
  `"><svg onload=${M}>`,
  `[x](javascript:${M})`,
  `[x](JaVa\tScript:${M})`,
  `[x](java&#115;cript:${M})`,
  `<javascript:${M}>`,
  `[x](data:text/html,<script>${M}</script>)`,
  `[x](vbscript:${M}) [y][z]\n\n[z]: javascript:${M}`,
  `![i](x" onerror="${M})`,
  `![i](https://example.invalid/x.png" onerror="${M})`,
  '```"><script>PWN(1)</script>\ncode</code></pre><script>PWN(1)</script>\n```',
  `\`\`\`html\n<script>${M}</script><img src=x onerror=${M}>\n\`\`\``,
  `<details ontoggle=${M} open><summary>s</summary></details>`,
  `<style>@import 'https://example.invalid/x.css'</style><link rel=stylesheet href=https://example.invalid/y.css>`,
  `<pre><<img src=x onerror=${M}></pre> <iframe srcdoc="<script>${M}</script>"></iframe> <base href=https://example.invalid/>`,
  `<a href="javascript:${M}" onclick="${M}">a</a> <form action=javascript:${M}><button>b</button></form> <math><mtext></mtext></math>`,
  `| a<img src=x onerror=${M}> | b |\n|---|---|\n| <svg/onload=${M}> | [x](javascript:${M}) |`,
  `# <img src=x onerror=${M}>\n> <script>${M}</script>\n- [ ] <script>${M}</script>`,
  `\u2028${M}\u2029 <!--<script>${M}-->`,
  `{{constructor.constructor('${M}')()}} \${${M}} ' onmouseover=${M} x='`,
  `https://example.invalid/?q="onmouseover=${M}" www.example.invalid/<script>`,
  `$<img src=x onerror=${M}>_x$ $$<script>${M}</script>$$ \\(<svg onload=${M}>\\)\n\n\\[<script>${M}</script>\\]\n`,
  `[![i](javascript:${M})](https://example.invalid/a) [![i](https://example.invalid/b)](javascript:${M}) [a [b](https://example.invalid/c) d](https://example.invalid/e)`,
  `[x]: <javascript:${M}> "onclick=${M}"\n\n[x] [y][x] ![z][x] <vbscript:${M}> <data:text/html,${M}>`,
  `<div style="background:url(https://example.invalid/z.png)" onmouseover=${M}>\n\n**b**\n\n</div>\n<object data=x></object><meta http-equiv=refresh content=0;url=https://example.invalid>`,
  `\u202etxt.exe\u2066 \ud800 lone \udfff &lt;script&gt;${M}&lt;/script&gt; &#60;img src=x onerror=${M}&#62; <!-- ${M} -->`,
  `\`\`\`__proto__\n${M}\n\`\`\`\n\n\`\`\`constructor\n<b>\n\`\`\`\n\n\`\`\`xml" onclick="${M}\n<script>${M}</script>\n\`\`\``,
];

/** Each attack in each field of a session. */
export function hostile(): SessionFile {
  const all = ATTACKS.join("\n\n");
  const short = `"><img src=x onerror=${M}></script><script>${M}</script>`;
  const file = new SessionFile({ id: short, cwd: `/${all}`, parentSession: all, title: all });
  file.user(all, { id: `${short}1` });
  for (const attack of ATTACKS) file.user(attack);
  file.add({ type: "session_info", name: all });
  const call = {
    type: "toolCall",
    id: "c1",
    name: short,
    arguments: { [all]: all, path: all, command: all, nested: [{ [short]: all }] },
  };
  file.assistant([{ type: "thinking", thinking: all }, { type: "text", text: all }, call], {
    provider: short,
    model: all,
    errorMessage: all,
    stopReason: short,
  });
  file.result("c1", short, all, { details: { diff: `+1 ${all}\n-2 ${all}`, patch: all } });
  file.message({
    role: "toolResult",
    toolCallId: "c1",
    toolName: all,
    content: [
      { type: "image", data: PNG, mimeType: `image/png" onerror="${M}` },
      { type: "image", data: `x" onerror="${M}`, mimeType: "image/png" },
      { type: "image", data: "PHN2Zy8+", mimeType: "image/svg+xml" },
    ],
    isError: true,
  });
  file.message({ role: "user", content: [{ type: "image", data: PNG, mimeType: "image/png" }] });
  file.message({
    role: "bashExecution",
    command: all,
    output: all,
    exitCode: 1,
    cancelled: false,
    truncated: true,
    fullOutputPath: all,
  });
  const kept = file.user("kept");
  file.add({
    type: "compaction",
    summary: all,
    shortSummary: all,
    firstKeptEntryId: kept,
    tokensBefore: 1,
    details: { readFiles: [all], modifiedFiles: [short] },
  });
  file.add({ type: "branch_summary", summary: all, fromId: short });
  file.add({
    type: "custom",
    customType: "slot:todos",
    data: [
      {
        name: all,
        tasks: [
          { content: all, status: "pending" },
          { content: short, status: "abandoned" },
        ],
      },
    ],
  });
  file.add({ type: "custom", customType: short, data: { [short]: all } });
  file.add({ type: "custom_message", customType: short, content: all, display: true, details: { all } });
  file.add({ type: short, [short]: all });
  file.message({ role: short, content: all });
  file.add({ type: "subagent_spawn", agentId: short, agentName: all, status: all, task: all, sessionFile: `../${short}.jsonl` });
  for (const id of ["__proto__", "constructor", "tree", 'a" onclick="PWN(1)', "\u202egnp", "\ud800", " "]) {
    const call = { type: "toolCall", id, name: id, arguments: JSON.parse('{"__proto__":{"command":"PWN(1)"},"toString":1}') };
    file.assistant([call], { provider: id, stopReason: "aborted" });
    file.result(id, id, short, { details: { diff: short } });
    file.add({ type: "label", targetId: file.user(short, { id }), label: short });
  }
  file.add({ type: "model_change", provider: short, modelId: all });
  file.add({ type: "thinking_level_change", thinkingLevel: all });
  file.add({ type: "label", targetId: kept, label: short });
  file.add({ type: "label", targetId: `${short}1`, label: all });
  file.user("end");
  return file;
}

/** A session as people have them: branches, tools, a compaction, todos. */
export function friendly(): SessionFile {
  const file = new SessionFile();
  file.add({ type: "model_change", provider: "anthropic", modelId: "claude" });
  file.add({ type: "session_info", name: "Parser: lists in lists", source: "user" });
  const first = file.user(
    "Please fix the parser so that **nested lists** work. See `src/parser.ts` and https://example.com/spec?a=1&b=2",
  );
  file.assistant([
    { type: "thinking", thinking: "The user wants nested lists.\n\nI should read the parser first." },
    { type: "text", text: "I'll read the parser first." },
    { type: "toolCall", id: "c1", name: "read", arguments: { path: "src/parser.ts", limit: 40 } },
    { type: "toolCall", id: "c2", name: "bash", arguments: { command: "npm test -- --grep 'nested lists'" } },
  ]);
  file.result(
    "c1",
    "read",
    Array.from({ length: 40 }, (_, line) => `${line + 1}: const value${line} = parse(input.slice(${line}));`).join("\n"),
  );
  file.result("c2", "bash", "\u001b[31m1 failing\u001b[0m\n  nested lists: expected 2 levels, found 1", { isError: true });
  file.add({
    type: "custom",
    customType: "slot:todos",
    data: [
      {
        name: "Fix",
        tasks: [
          { content: "Read the parser", status: "completed" },
          { content: "Track the indent", status: "in_progress" },
          { content: "Add a test", status: "pending" },
        ],
      },
    ],
  });
  file.assistant([
    { type: "text", text: "The indent is lost. I change it:" },
    {
      type: "toolCall",
      id: "c3",
      name: "edit",
      arguments: { path: "src/parser.ts", edits: [{ oldText: "indent = 0", newText: "indent = depth(line)" }] },
    },
  ]);
  file.result("c3", "edit", "Edited src/parser.ts in 1 place, first at line 12", {
    details: {
      diff: " 11 function item(line) {\n-12   const indent = 0;\n+12   const indent = depth(line);\n 13   return { indent };\n 14 }",
    },
  });
  const answer = file.assistant([
    {
      type: "text",
      text: "## Done\n\nNested lists work now:\n\n1. the indent is read from the line,\n2. each level opens a `list` of its own.\n\n```ts\nexport function depth(line: string): number {\n  // Two spaces are one level.\n  return Math.floor(line.search(/\\S/) / 2);\n}\n```\n\n| input | before | now |\n|---|---|---|\n| `- a` | 1 | 1 |\n| `  - b` | 1 | 2 |\n\n> Tabs count as two spaces.\n\n- [x] fixed\n- [ ] documented",
    },
  ]);
  file.add({ type: "label", targetId: answer, label: "works" });
  file.user("Now the same for quotes");
  file.message({
    role: "user",
    content: [
      { type: "text", text: "Look at this picture" },
      { type: "image", data: PNG, mimeType: "image/png" },
    ],
  });
  const abandoned = file.message(
    { role: "assistant", content: [{ type: "text", text: "Quotes are done differently." }], stopReason: "aborted" },
    { id: "ünï-漢字" },
  );
  file.add({ type: "branch_summary", summary: "Tried quotes by recursion; too slow.", fromId: abandoned }, answer);
  const again = file.user("Do it with a stack instead");
  file.message({
    role: "bashExecution",
    command: "git status --short",
    output: " M src/parser.ts",
    exitCode: 0,
    cancelled: false,
    truncated: false,
  });
  file.add({
    type: "compaction",
    summary: "## Goal\nNested lists and quotes in the parser.\n\n## Progress\nDone: lists.",
    firstKeptEntryId: again,
    tokensBefore: 171_234,
    details: { readFiles: ["src/lexer.ts"], modifiedFiles: ["src/parser.ts"] },
  });
  file.assistant([{ type: "text", text: "Quotes use a stack now." }]);
  file.user("Thanks, ä ö ü 😀 漢字", {}, first);
  file.assistant([{ type: "text", text: "You are welcome." }], { stopReason: "error", errorMessage: "Overloaded" });
  return file;
}
