// Case 27: keys, tokens and passwords stay where they came from. The rules are in docs/runtime.md, "Redaction".
import { execFileSync } from "node:child_process";
import { chmodSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { PIXEL } from "../anthropic/_services.ts";
import { SessionFile } from "../extensions/export/_session.ts";
import { startFakeAnthropic } from "../support/fake-anthropic.ts";
import { ask, PATIENCE_MS, prompt, request, useProcesses, wait } from "./_support.ts";

const use = useProcesses();
const CANARY = {
  stored: "sk-live-CANARY1-0123456789",
  environment: "sk-env-CANARY2-0123456789",
  refresh: "refresh-CANARY3-0123456789",
  /** As it stands in the address; `proxySent` is what it means. */
  proxy: "CANARY4%40-0123456789",
  proxySent: "CANARY4@-0123456789",
  models: "mine-CANARY6-0123456789",
  pasted: `ghp_CANARY5${"a1B2".repeat(6)}z`.padEnd(40, "Q").slice(0, 40),
};

// Commands get the proxy, because they need it, and the host's own `bash` shows what it asked for (docs/runtime.md, "Redaction"):
// the password in its address is the one exception, so it is left out of what is printed here.
const ENV = "env | grep -vi _proxy";

const LEAKY = `import { defineCommand, defineSlashCommand, defineTool, z } from "mortise/extension";
const leak = () => {
  throw new Error("environment: " + JSON.stringify(process.env));
};
export default [
  defineSlashCommand({ name: "leak", description: "Throws what it knows", run: leak }),
  defineTool({ name: "leak_tool", description: "Throws what it knows", params: z.object({}), run: leak }),
  defineCommand({
    name: "leak_command",
    group: "Leaks",
    summary: "Throws what it knows.",
    concurrency: "serial",
    params: z.object({}),
    example: { params: {}, failure: "No" },
    run: leak,
  }),
];
`;

/** Files below a folder that hold a text, by name. */
function filesWith(folder: string, text: string): string[] {
  try {
    return execFileSync("grep", ["-rlaF", "--", text, folder], { encoding: "utf8" }).trim().split("\n");
  } catch {
    return [];
  }
}

describe("case 27", () => {
  it("no secret of the daemon leaves its place; an export masks what looks like one", { timeout: 2 * PATIENCE_MS }, async () => {
    const fake = await startFakeAnthropic();
    use.later(() => fake.close());
    const daemon = use.start({
      model: "anthropic/claude-haiku-4-5",
      args: ["--log-level", "debug"],
      env: {
        ANTHROPIC_BASE_URL: fake.url,
        OPENAI_API_KEY: CANARY.environment,
        HTTPS_PROXY: `http://u:${CANARY.proxy}@127.0.0.1:1/`,
        https_proxy: `http://u:${CANARY.proxy}@127.0.0.1:1/`,
        NO_PROXY: "127.0.0.1",
      },
      files: {
        "auth.json": JSON.stringify({
          anthropic: { type: "api_key", key: CANARY.stored },
          openrouter: { type: "oauth", access: "access-0123456789", refresh: CANARY.refresh, expires: 4_000_000_000_000 },
        }),
        "config.yml": "retry:\n  enabled: false\n",
        "models.yml": `providers:\n  mine: { baseUrl: "http://127.0.0.1:1/v1", api: openai-completions, apiKey: ${CANARY.models}, models: [{ id: m }] }\n`,
        "extensions/leaky.ts": LEAKY,
        "extensions/broken.ts": 'throw new Error("loaded with " + JSON.stringify(process.env));\n',
      },
    });
    chmodSync(`${daemon.home}/auth.json`, 0o600);
    await wait(daemon, (frame) => frame.type === "available_commands_update");
    fake.script(
      {
        toolCalls: [
          { name: "bash", arguments: { command: "env; tr '\\0' '\\n' < /proc/$PPID/environ" } },
          { name: "leak_tool", arguments: {} },
          { name: "read", arguments: { path: `${daemon.home}/models.yml` } },
          { name: "read", arguments: { path: `${daemon.home}/auth.json` } },
          { name: "bash", arguments: { command: `cat ${daemon.home}/auth.json; cat ~/auth.json >&2; sleep 0.3` } },
          { name: "grep", arguments: { pattern: "CANARY", path: daemon.home } },
        ],
      },
      { text: "Looked" },
    );
    const looked = await prompt(daemon, `My token is ${CANARY.pasted}, mind it`);
    const ended = looked.filter((frame) => frame.type === "tool_execution_end");
    expect(ended).toHaveLength(6);
    for (const frame of ended) expect(JSON.stringify(frame), String(frame["toolName"])).toContain("[redacted]");
    // What went into the background comes back beside the results of tools.
    const held = `until [ -e go ]; do sleep 0.05; done; cat ${daemon.home}/auth.json; env`;
    fake.script(
      { toolCalls: [{ name: "bash", arguments: { command: held, async: true } }] },
      { text: "Started" },
      { text: "Seen" },
    );
    await prompt(daemon, "in the background");
    const woken = daemon.frames.length;
    daemon.write("cwd/go", "");
    const told = await wait(
      daemon,
      (frame) => frame.type === "message_end" && JSON.stringify(frame).includes("async-result"),
      woken,
    );
    expect(JSON.stringify(told)).toMatch(/\[redacted\].*\[redacted\]/);
    await wait(daemon, "agent_end", woken);
    const { output: environment } = await ask(daemon, "bash", { command: ENV });
    expect(environment).toContain("MORTISE_HOME=");
    expect(environment).not.toContain("OPENAI_API_KEY");
    fake.script({
      failure: {
        status: 401,
        message: `Bad headers: x-api-key: ${CANARY.stored}, authorization: Bearer ${CANARY.environment} ${CANARY.refresh}`,
      },
    });
    const refused = await prompt(daemon, "again");
    expect(JSON.stringify(refused.at(-1))).toMatch(/401.*x-api-key: \[redacted\]/);
    // Everything that fails: the way through the proxy, commands and set-up of extensions, and the list of what failed.
    await ask(daemon, "set_model", { provider: "openai", modelId: "gpt-5.1" });
    expect(JSON.stringify((await prompt(daemon, "through the proxy")).at(-1))).toMatch(/ECONNREFUSED 127\.0\.0\.1:1/);
    const thrown = daemon.frames.length;
    await request(daemon, "prompt", { message: "/leak" });
    const reported = await wait(daemon, "extension_error", thrown);
    const failed = await request(daemon, "leak_command");
    const listed = await ask(daemon, "get_extensions");
    for (const each of [reported, failed, listed]) expect(JSON.stringify(each)).toContain('OPENAI_API_KEY\\":\\"[redacted]');
    await ask(daemon, "set_session_name", { name: `About ${CANARY.pasted}` });
    await ask(daemon, "get_state");
    await ask(daemon, "get_session_stats");
    const exported = await ask(daemon, "export_html", { outputPath: "out.html" });
    expect(exported["path"]).toBe("out.html");
    const title = readFileSync(`/proc/${daemon.child.pid}/cmdline`, "utf8");
    daemon.child.kill("SIGABRT");
    await daemon.exited;

    const output = daemon.stdout() + daemon.stderr();
    const own: Record<string, string[]> = {
      stored: ["auth.json"],
      refresh: ["auth.json"],
      models: ["models.yml"],
      environment: [],
      proxy: [],
      proxySent: [],
    };
    for (const [name, allowed] of Object.entries(own)) {
      const text = CANARY[name as keyof typeof CANARY];
      expect(around(output, text), `${name} in the output`).toBe("");
      expect(title.includes(text), `${name} in the title of the process`).toBe(false);
      const found = filesWith(daemon.home, text).map((file) => file.slice(daemon.home.length + 1));
      expect(found, `${name} in files`).toEqual(allowed);
    }
    // The stored session keeps what was written; the export does not.
    const [session] = filesWith(`${daemon.home}/sessions`, CANARY.pasted);
    expect(session).toBeDefined();
    expect(filesWith(daemon.cwd, CANARY.pasted)).toEqual([]);
  });

  it("an export masks every field and its own name; pictures and the stored session stay as they are", async () => {
    const daemon = use.start();
    await wait(daemon, "ready");
    const secret = CANARY.pasted;
    // Bytes behind the end of a picture do no harm, and theirs look like a key of a cloud.
    const bytes = Buffer.from(PIXEL, "base64");
    const whole = Buffer.concat([bytes, Buffer.alloc((3 - (bytes.length % 3)) % 3)]);
    const picture = `${whole.toString("base64")}/AKIAABCDEFGHIJKLMNO1/AA`;
    const file = new SessionFile({ cwd: `/work/${secret}`, title: secret });
    const first = file.user(`My token is ${secret}`);
    file.assistant([
      { type: "thinking", thinking: `They use ${secret}` },
      { type: "text", text: `I will use ${secret}` },
      {
        type: "toolCall",
        id: "c1",
        name: "bash",
        arguments: { command: `curl -H token:${secret}`, [secret]: [{ [secret]: secret }] },
      },
    ]);
    file.result("c1", "bash", `sent ${secret}`, { details: { diff: `+1 ${secret}` } });
    file.message({ role: "user", content: [{ type: "image", data: picture, mimeType: "image/png" }] });
    file.message({
      role: "bashExecution",
      command: `echo ${secret}`,
      output: secret,
      exitCode: 0,
      cancelled: false,
      truncated: false,
    });
    file.add({
      type: "compaction",
      summary: secret,
      shortSummary: secret,
      firstKeptEntryId: first,
      tokensBefore: 1,
      details: { readFiles: [secret] },
    });
    file.add({ type: "branch_summary", summary: secret, fromId: first });
    file.add({ type: "custom", customType: secret, data: { [secret]: secret } });
    file.add({ type: "custom_message", customType: "note", content: secret, display: true, details: { secret } });
    file.add({ type: "session_info", name: `About ${secret}` });
    file.add({ type: "label", targetId: first, label: secret });
    file.user("end");
    const stored = file.write(join(daemon.home, "cloned", `${secret}.jsonl`));
    const before = readFileSync(stored);
    await ask(daemon, "switch_session", { sessionPath: stored });
    const exported = await ask(daemon, "export_html");
    expect(String(exported["path"])).not.toContain(secret);
    const page = readFileSync(join(daemon.cwd, String(exported["path"]).split("/").at(-1) ?? ""), "utf8");
    expect(page).not.toContain(secret);
    expect(page.split("[masked]").length).toBeGreaterThan(20);
    expect(page).toContain(picture);
    expect(readFileSync(stored).equals(before)).toBe(true);
  });
});

/** What stands around a secret, without the rest of a long output; "" when it is not there. */
function around(output: string, secret: string): string {
  const at = output.indexOf(secret);
  return at === -1 ? "" : output.slice(Math.max(0, at - 600), at + secret.length + 300);
}
