// Approval of tool calls as a host sees it.
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { type StartOptions, startDaemon, type TestDaemon } from "mortise/testing";
import { afterEach, describe, expect, test } from "vitest";
import type { Frame } from "../../../protocol/frame.ts";

let daemon: TestDaemon | undefined;
afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
});

/** A daemon whose dialogs are answered with `answers` in turn; undefined leaves one open. */
async function start(config: string, answers: readonly (string | undefined)[] = [], more: StartOptions = {}) {
  const asked: Frame[] = [];
  const select = (request: Frame) => {
    const answer = answers[asked.length];
    asked.push(request);
    return answer === undefined ? undefined : answer === "cancel" ? { cancelled: true } : { value: answer };
  };
  const d = await startDaemon({ watch: false, answers: { select }, ...more, files: { "config.yml": config, ...more.files } });
  daemon = d;
  return { d, asked, call: (name: string, args: Record<string, unknown>) => d.callTool(name, args) };
}
const ask = "tools:\n  approvalMode: ask\n";

describe("Modes", () => {
  test("yolo asks nothing", async () => {
    const { asked, call } = await start("");
    expect(await call("bash", { command: "echo hi" })).toMatchObject({ isError: false, text: "hi" });
    expect(asked).toEqual([]);
  });

  test("ask lets reading pass and asks for the rest with the options of the protocol", async () => {
    const { d, asked, call } = await start(ask, ["Approve", "Deny", "cancel"], { files: { "cwd/a.txt": "text" } });
    expect(await call("read", { path: "a.txt" })).toMatchObject({ isError: false });
    expect(await call("ls", {})).toMatchObject({ isError: false });
    expect(asked).toEqual([]);
    expect(await call("bash", { command: "echo approved" })).toMatchObject({ isError: false, text: "approved" });
    expect(asked[0]).toMatchObject({ method: "select", title: "Allow bash?\necho approved", timeout: 300_000 });
    expect(asked[0]?.["options"]).toEqual(["Approve", "Approve for this session", "Always in this project", "Deny"]);
    expect(await call("write", { path: "b.txt", content: "x" })).toMatchObject({
      isError: true,
      text: "Tool call denied by user: write",
    });
    expect(await call("bash", { command: "touch c" })).toMatchObject({ isError: true, text: "Tool call denied by user: bash" });
    expect(asked).toHaveLength(3);
    expect(existsSync(join(d.cwd, "b.txt")) || existsSync(join(d.cwd, "c"))).toBe(false);
    expect(d.frames.filter((frame) => frame.type === "extension_error")).toEqual([]);
  });

  test("auto-edit also lets edits inside the project pass, but not where files run unasked", async () => {
    const { d, asked, call } = await start("tools:\n  approvalMode: auto-edit\n", ["Deny", "Deny", "Deny", "Deny", "Deny"]);
    symlinkSync("/tmp", join(d.cwd, "out"));
    expect(await call("write", { path: "src/a.txt", content: "one" })).toMatchObject({ isError: false });
    expect(await call("edit", { path: "src/a.txt", oldText: "one", newText: "two" })).toMatchObject({ isError: false });
    expect(asked).toEqual([]);
    for (const path of ["../outside.txt", "out/escaped-by-link.txt", ".git/hooks/pre-commit", ".mortise/extensions/x.ts"]) {
      expect(await call("write", { path, content: "x" }), path).toMatchObject({ isError: true });
    }
    expect(await call("bash", { command: "true" })).toMatchObject({ isError: true });
    expect(asked).toHaveLength(5);
  });

  test("plan blocks whatever changes something without asking, and tells the model so before", async () => {
    const { d, asked, call } = await start("tools:\n  approvalMode: plan\n  approval:\n    write: allow\n");
    expect(await call("ls", {})).toMatchObject({ isError: false });
    for (const [name, args] of [
      ["write", { path: "a", content: "" }],
      ["bash", { command: "ls" }],
    ] as const) {
      expect(await call(name, args)).toMatchObject({
        isError: true,
        text: `Tool call denied: in plan mode only reading is possible, and ${name} is more than that`,
      });
    }
    // A tool that only sometimes changes something decides by its arguments.
    expect(await call("job", { op: "list" })).toMatchObject({ isError: false, text: "No background jobs" });
    expect(await call("job", { op: "wait" })).toMatchObject({ isError: false });
    expect(await call("job", { op: "cancel", ids: ["job-1"] })).toMatchObject({
      isError: true,
      text: "Tool call denied: in plan mode only reading is possible, and job is more than that",
    });
    expect(asked).toEqual([]);
    const { systemPrompt } = await d.ask("get_state");
    expect(JSON.stringify(systemPrompt)).toContain("Plan mode");
  });

  test("a web address is asked for: it carries data away", async () => {
    const { asked, call } = await start(ask, ["Deny"]);
    expect(await call("read", { path: "http://127.0.0.1:9/?secret" })).toMatchObject({
      isError: true,
      text: "Tool call denied by user: read",
    });
    expect(asked[0]).toMatchObject({ title: "Allow read?\nhttp://127.0.0.1:9/?secret" });
  });
});

describe("Rules", () => {
  test("deny holds in every mode and comes first", async () => {
    const rules =
      'tools:\n  approval:\n    "bash(rm *)": deny\n    "write(secrets/**)": deny\n    "read(.env)": deny\n    bash: allow\n';
    const { d, asked, call } = await start(rules, [], { files: { "cwd/.env": "KEY=1", "cwd/secrets/x": "1" } });
    symlinkSync("secrets", join(d.cwd, "harmless"));
    expect(await call("bash", { command: "echo ok; rm x" })).toMatchObject({
      isError: true,
      text: "Tool call denied by the rule bash(rm *) of tools.approval",
    });
    expect(await call("bash", { command: "echo ok" })).toMatchObject({ isError: false });
    for (const path of ["secrets/y", "./a/../secrets/y", "harmless/y"]) {
      mkdirSync(join(d.cwd, "a"), { recursive: true });
      expect(await call("write", { path, content: "" }), path).toMatchObject({ isError: true });
    }
    for (const path of [".env", ".env:1", "@.env", join(d.cwd, ".env"), `file://${d.cwd}/.env`]) {
      expect(await call("read", { path }), path).toMatchObject({ isError: true, text: expect.stringContaining("read(.env)") });
    }
    const patch = "--- a/secrets/x\n+++ b/secrets/x\n@@ -1 +1 @@\n-1\n+2\n";
    expect(await call("edit", { patch })).toMatchObject({ isError: false });
    expect(asked).toEqual([]);
  });

  test("a patch is judged by the file it names, in every form", async () => {
    const { d, asked, call } = await start('tools:\n  approvalMode: auto-edit\n  approval:\n    "edit(secrets/**)": deny\n', [
      "Deny",
    ]);
    d.write("cwd/secrets/x", "1\n");
    d.write("outside", "1\n");
    const hunk = "@@ -1 +1 @@\n-1\n+2\n";
    for (const header of ["--- a/secrets/x\n+++ b/secrets/x\n", "*** Begin Patch\n*** Update File: secrets/x\n"]) {
      const answer = await call("edit", { patch: header + hunk });
      expect(answer, header).toMatchObject({ isError: true, text: expect.stringContaining("edit(secrets/**)") });
    }
    expect(asked).toEqual([]);
    const outside = await call("edit", { patch: `*** Update File: ${join(d.home, "outside")}\n${hunk}` });
    expect(outside).toMatchObject({ isError: true });
    expect(asked).toHaveLength(1);
  });

  test("prompt asks in yolo mode too, deeper patterns before wider permissions", async () => {
    const rules = 'tools:\n  approval:\n    "bash(git *)": allow\n    "bash(git push*)": prompt\n    bash: ask\n';
    const { asked, call } = await start(rules, ["Deny", "Deny"]);
    expect(await call("bash", { command: "git --version" })).toMatchObject({ isError: false });
    expect(asked).toEqual([]);
    expect(await call("bash", { command: "git push origin" })).toMatchObject({ isError: true });
    expect(await call("bash", { command: "git --version; id" })).toMatchObject({ isError: true });
    expect(asked).toHaveLength(2);
  });

  test("allow lets pass what the mode would ask for, as far as it reaches", async () => {
    const rules = `${ask}  approval:\n    "bash(echo *)": allow\n    "write(src/**)": allow\n`;
    const { asked, call } = await start(rules, ["Deny", "Deny", "Deny"]);
    expect(await call("bash", { command: "echo a && echo b" })).toMatchObject({ isError: false, text: "a\nb" });
    expect(await call("write", { path: "src/deep/a.txt", content: "" })).toMatchObject({ isError: false });
    expect(asked).toEqual([]);
    for (const [name, args] of [
      ["bash", { command: "echo a; id" }],
      ["bash", { command: "echo $(id)" }],
      ["write", { path: "src/../b.txt", content: "" }],
    ] as const) {
      expect(await call(name, args)).toMatchObject({ isError: true, text: `Tool call denied by user: ${name}` });
    }
    expect(asked).toHaveLength(3);
  });

  test("a gate that blocks comes before: nobody is asked for a call that does not run", async () => {
    const gate =
      "import { defineHook, toolDecide } from 'mortise/extension';\nexport default defineHook(toolDecide, () => ({ block: true, reason: 'no' }));\n";
    const { asked, call } = await start(ask, ["Approve"], { files: { "extensions/gate.ts": gate } });
    expect(await call("bash", { command: "true" })).toMatchObject({ isError: true, text: "no" });
    expect(asked).toEqual([]);
  });
});

describe("Answers", () => {
  test("for the session cover the same commands until the session changes", async () => {
    const { d, asked, call } = await start(ask, ["Approve for this session", "Deny", "Deny"]);
    expect(await call("bash", { command: "echo a; echo b" })).toMatchObject({ isError: false });
    expect(await call("bash", { command: "echo b && echo a" })).toMatchObject({ isError: false });
    expect(asked).toHaveLength(1);
    expect(await call("bash", { command: "echo a; echo c" })).toMatchObject({ isError: true });
    await d.ask("new_session");
    expect(await call("bash", { command: "echo a; echo b" })).toMatchObject({ isError: true });
    expect(asked).toHaveLength(3);
  });

  test("for the project are stored outside of it and hold in the next process", async () => {
    const first = await start(ask, ["Always in this project", "Always in this project"]);
    const { home, cwd } = first.d;
    expect(await first.call("write", { path: "a.txt", content: "1" })).toMatchObject({ isError: false });
    expect(await first.call("bash", { command: "echo $(echo deep)" })).toMatchObject({ isError: false });
    const file = join(home, "approvals.json");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({
      version: 1,
      projects: {
        [cwd]: [
          { tool: "write", files: "project" },
          { tool: "bash", exact: "echo $(echo deep)" },
        ],
      },
    });
    const other = await startDaemon({ watch: false, files: { "config.yml": ask }, answers: { select: { value: "Deny" } } });
    expect(await other.callTool("write", { path: "a.txt", content: "1" })).toMatchObject({ isError: true });
    await other.stop();
    const copy = readFileSync(file, "utf8");
    await first.d.stop();
    daemon = undefined;
    mkdirSync(cwd, { recursive: true });
    const second = await start(ask, ["Deny", "Deny", "Deny"], { home, files: { "approvals.json": copy } });
    expect(await second.call("write", { path: "other.txt", content: "1" })).toMatchObject({ isError: false });
    expect(await second.call("bash", { command: "echo $(echo deep)" })).toMatchObject({ isError: false });
    expect(second.asked).toEqual([]);
    expect(await second.call("bash", { command: "echo $(echo deeper)" })).toMatchObject({ isError: true });
    expect(await second.call("write", { path: "../out.txt", content: "1" })).toMatchObject({ isError: true });
    expect(await second.call("write", { path: ".git/config", content: "1" })).toMatchObject({ isError: true });
  });

  test("nobody there means no", async () => {
    const { asked, call } = await start(ask, ["Approve"], { options: { noUi: true } });
    expect(await call("bash", { command: "true" })).toMatchObject({
      isError: true,
      text: "Tool call denied: bash needs approval (tools.approvalMode ask), and nobody can answer",
    });
    expect(asked).toEqual([]);
  });

  test("abort takes an open question back", async () => {
    const { d, asked } = await start(ask, [undefined]);
    d.send({ type: "prompt", message: 'call bash {"command":"touch ran"}' });
    await d.next("extension_ui_request");
    await d.ask("abort");
    await d.next("agent_end", { after: 0 });
    expect(asked).toHaveLength(1);
    expect(d.frames.some((frame) => frame["method"] === "cancel" && frame["targetId"] === asked[0]?.["id"])).toBe(true);
    expect(existsSync(join(d.cwd, "ran"))).toBe(false);
  });

  test("the person sees all of a command, hidden characters included", async () => {
    const { asked, call } = await start(ask, ["Deny"]);
    await call("bash", { command: "echo safe\u001b[2K\u202e; rm -rf x" });
    expect(asked[0]).toMatchObject({ title: "Allow bash?\necho safe\\u001b[2K\\u202e; rm -rf x" });
  });
});
