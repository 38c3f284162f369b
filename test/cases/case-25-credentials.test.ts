// public-bugs 25, from outside: modes of what a daemon writes, and what a failure leaves. Tokens that expire are in
// case-25-refresh.test.ts; the file's own rules are tested one by one in test/extensions/models/credentials.test.ts.
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  watch,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { BIN, type DaemonProcess } from "../support/process.ts";
import { ask, prompt, request, useProcesses, wait } from "./_support.ts";

const { start, later } = useProcesses();
const mode = (path: string) => lstatSync(path).mode & 0o777;

function emptyHome(): string {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "mortise-credentials-")));
  later(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

/** Through a shell that first sets a umask or a limit. */
const through = (shell: string) => ["/bin/sh", "-c", `${shell}; exec "$@"`, "sh", process.execPath, BIN] as const;

/** Nothing listens there: a key that cannot be checked is stored all the same. */
const env = {
  OPENAI_BASE_URL: "http://127.0.0.1:9/v1",
  ANTHROPIC_BASE_URL: "http://127.0.0.1:9",
  OPENAI_API_KEY: "",
  ANTHROPIC_API_KEY: "",
};

async function login(daemon: DaemonProcess, providerId: string, key: string) {
  const after = daemon.frames.length;
  const done = request(daemon, "login", { providerId });
  const question = await wait(daemon, (frame) => frame["method"] === "input", after);
  daemon.send({ type: "extension_ui_response", id: question["id"], value: key });
  return done;
}

it.each(["000", "022"])(
  "everything below the home is private with umask %s, at every moment (case 25)",
  async (mask) => {
    const home = emptyHome();
    chmodSync(home, 0o755);
    const loose: string[] = [];
    const watcher = watch(home, (_event, name) => {
      if (name === null) return;
      const stat = lstatSync(join(home, name), { throwIfNoEntry: false });
      if (stat?.isFile() && (stat.mode & 0o077) !== 0) loose.push(`${name} ${(stat.mode & 0o777).toString(8)}`);
    });
    later(() => watcher.close());
    const daemon = start({ home, command: through(`umask ${mask}`), env });
    expect(await login(daemon, "openai", "sk-test-123")).toMatchObject({ success: true });
    expect(await login(daemon, "anthropic", "sk-test-456")).toMatchObject({ success: true });
    await prompt(daemon, "hello");
    const { path } = await ask(daemon, "export_html");
    expect(mode(String(path))).toBe(0o600);
    const slash = await request(daemon, "prompt", { message: "/logout openai" });
    expect(slash).toMatchObject({ success: true });
    await wait(daemon, (frame) => frame.type === "prompt_result" && frame["id"] === slash["id"], 0);
    expect(await daemon.end()).toBe(0);

    expect(JSON.parse(readFileSync(join(home, "auth.json"), "utf8"))).toEqual({
      anthropic: { type: "api_key", key: "sk-test-456" },
    });
    expect(loose).toEqual([]);
    expect(mode(home)).toBe(0o700);
    const own = readdirSync(home, { recursive: true, encoding: "utf8" }).filter((name) => /^(auth|sessions|logs)/.test(name));
    const open = own
      .filter((name) => (mode(join(home, name)) & 0o077) !== 0)
      .map((name) => `${name} ${mode(join(home, name)).toString(8)}`);
    expect(open).toEqual([]);
    expect(own.filter((name) => name.startsWith("auth"))).toEqual(["auth.json"]);
    expect(own.some((name) => name.endsWith(".jsonl"))).toBe(true);
  },
  60_000,
);

it("a loose file is tightened, and that is told once (case 25)", async () => {
  const home = emptyHome();
  writeFileSync(join(home, "auth.json"), JSON.stringify({ openai: { type: "api_key", key: "sk-old-1" } }), { mode: 0o644 });
  chmodSync(join(home, "auth.json"), 0o644);
  const daemon = start({ home, env });
  await ask(daemon, "get_login_providers");
  expect(await login(daemon, "anthropic", "sk-test-456")).toMatchObject({ success: true });
  expect(await daemon.end()).toBe(0);
  expect(mode(join(home, "auth.json"))).toBe(0o600);
  const told = daemon.frames.filter((frame) => frame.type === "notice" && String(frame["message"]).includes("0644"));
  expect(told).toHaveLength(1);
  expect(Object.keys(JSON.parse(readFileSync(join(home, "auth.json"), "utf8")) as object)).toEqual(["openai", "anthropic"]);
}, 60_000);

it("a disk that is full keeps the old credentials, and the daemon alive (case 25)", async () => {
  const home = emptyHome();
  const text = `${JSON.stringify({ openai: { type: "api_key", key: "sk-old-1" } })}\n`;
  writeFileSync(join(home, "auth.json"), text, { mode: 0o600 });
  // No file may grow: every write to one fails, as on a full disk.
  const daemon = start({ home, env, command: through("trap '' XFSZ; ulimit -f 0") });
  await ask(daemon, "get_state");
  const response = await login(daemon, "anthropic", "sk-test-456");
  expect(response).toMatchObject({ success: false, error: expect.stringContaining("Cannot store credentials") });
  expect(JSON.stringify(response)).not.toContain("sk-test-456");
  expect(readFileSync(join(home, "auth.json"), "utf8")).toBe(text);
  expect(readdirSync(home).filter((name) => name.startsWith("auth"))).toEqual(["auth.json"]);
  expect(await ask(daemon, "get_state")).toMatchObject({ isStreaming: false });
}, 60_000);

it("a corrupt file is named, kept, and never replaced by an empty one (case 25)", async () => {
  const home = emptyHome();
  const broken = '{"openai": {"type": "api_key", "key": "sk-half';
  writeFileSync(join(home, "auth.json"), broken, { mode: 0o600 });
  const daemon = start({ home, env });
  await ask(daemon, "get_login_providers");
  const notice = await wait(daemon, (frame) => frame.type === "notice" && String(frame["message"]).includes("auth.json"), 0);
  expect(notice).toMatchObject({ level: "error" });
  expect(JSON.stringify(notice)).not.toContain("sk-half");
  expect(readFileSync(join(home, "auth.json"), "utf8")).toBe(broken);
  expect(await login(daemon, "openai", "sk-new-1")).toMatchObject({ success: true });
  const kept = readdirSync(home).filter((name) => name.startsWith("auth.json.broken-"));
  expect(kept).toHaveLength(1);
  expect(readFileSync(join(home, String(kept[0])), "utf8")).toBe(broken);
  expect(statSync(join(home, String(kept[0]))).mode & 0o777).toBe(0o600);
  expect(JSON.parse(readFileSync(join(home, "auth.json"), "utf8"))).toEqual({ openai: { type: "api_key", key: "sk-new-1" } });
  expect(existsSync(join(home, "auth.lock"))).toBe(false);
}, 60_000);

it("two daemons that log in at the same moment both keep their credential (case 25)", async () => {
  const home = emptyHome();
  const daemons = [start({ home, env }), start({ home, env })];
  for (const daemon of daemons) await ask(daemon, "get_state");
  const [one, two] = daemons as [DaemonProcess, DaemonProcess];
  const answers = await Promise.all([login(one, "openai", "sk-a-1"), login(two, "anthropic", "sk-b-1")]);
  expect(answers).toMatchObject([{ success: true }, { success: true }]);
  expect(JSON.parse(readFileSync(join(home, "auth.json"), "utf8"))).toEqual({
    openai: { type: "api_key", key: "sk-a-1" },
    anthropic: { type: "api_key", key: "sk-b-1" },
  });
}, 60_000);
