// public-bugs 25, the part about tokens that expire: the daemon renews a login whose refresh token works once. A login flow of
// an extension in the home talks to a token service on loopback, and the model service takes its tokens only.
import { spawn } from "node:child_process";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  watch,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { startFakeOpenAI } from "../support/fake-openai.ts";
import { BIN, type DaemonProcess } from "../support/process.ts";
import { ask, eventually, prompt, request, useProcesses, wait } from "./_support.ts";

const { start, later } = useProcesses();
const mode = (path: string) => lstatSync(path).mode & 0o777;
const expired = { type: "oauth", access: "access-0-old", refresh: "refresh-0-old", expires: 1 };
const OLD = `${JSON.stringify({ house: expired, openai: { type: "api_key", key: "sk-kept-1" } })}\n`;

/** A token service: each refresh token works once, and a second use of one is counted and refused. */
async function tokenService() {
  const state = { valid: expired.refresh, renewals: 0, refused: 0, asked: 0, hold: Promise.resolve() };
  const issue = () => {
    const serial = ++state.renewals;
    state.valid = `refresh-${serial}-new`;
    return { access: `access-${serial}-new`, refresh: state.valid, expires: Date.now() + 3_600_000 };
  };
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const { refresh, code } = JSON.parse(Buffer.concat(chunks).toString()) as { refresh?: string; code?: string };
    state.asked++;
    await state.hold;
    if (code === "let me in" || refresh === state.valid) return response.end(JSON.stringify(issue()));
    state.refused++;
    response.writeHead(400).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  later(() => {
    server.closeAllConnections();
    server.close();
  });
  return Object.assign(state, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, issue });
}
type TokenService = Awaited<ReturnType<typeof tokenService>>;

const flow = (url: string) => `import { defineLoginFlow } from "mortise/extension";
async function tokens(body, signal) {
  const response = await fetch("${url}", { method: "POST", signal, body: JSON.stringify(body) });
  if (!response.ok) throw new Error("The token service refused with status " + response.status);
  return { type: "oauth", ...(await response.json()) };
}
export default defineLoginFlow({
  name: "house",
  displayName: "House",
  run: async (ctx) => tokens({ code: await ctx.prompt({ title: "Code" }) }, ctx.signal),
  refresh: (current, signal) => tokens({ refresh: current.refresh }, signal),
});
`;

/** A home whose login of "house" has expired, the services behind it, and daemons on it. */
async function place(files: { auth?: string; authMode?: number; homeMode?: number } = {}) {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "mortise-renewal-")));
  later(() => rmSync(home, { recursive: true, force: true }));
  const tokens = await tokenService();
  const models = await startFakeOpenAI();
  later(() => models.close());
  const revoked = new Set([`Bearer ${expired.access}`]);
  models.otherwise(({ headers: { authorization = "" } }) =>
    /^Bearer access-\d+-new$/.test(authorization) && !revoked.has(authorization)
      ? { text: `fine with ${authorization.slice(7)}` }
      : { failure: { status: 401, message: "Token expired" } },
  );
  mkdirSync(join(home, "extensions"));
  writeFileSync(join(home, "extensions/house.ts"), flow(tokens.url));
  writeFileSync(
    join(home, "models.yml"),
    `providers:\n  house:\n    baseUrl: ${models.url}/v1\n    api: openai-completions\n    models: [{ id: one }]\n`,
  );
  const auth = join(home, "auth.json");
  writeFileSync(auth, files.auth ?? OLD);
  chmodSync(auth, files.authMode ?? 0o600);
  chmodSync(home, files.homeMode ?? 0o700);
  const daemon = (mask = "022", limits = "") =>
    start({
      home,
      model: "house/one",
      // Nothing listens there: a key that cannot be checked is stored all the same.
      env: { ANTHROPIC_BASE_URL: "http://127.0.0.1:9", ANTHROPIC_API_KEY: "", OPENAI_API_KEY: "" },
      command: ["/bin/sh", "-c", `umask ${mask}; ${limits} exec "$@"`, "sh", process.execPath, BIN],
    });
  const stored = () => JSON.parse(readFileSync(auth, "utf8")) as Record<string, Record<string, unknown>>;
  return { home, auth, tokens, models, revoked, daemon, stored };
}

/** Holds the answers of the token service back until the function is called. */
function hold(tokens: TokenService): () => void {
  let go: () => void = () => {};
  tokens.hold = new Promise<void>((resolve) => {
    go = resolve;
  });
  later(() => go());
  return () => go();
}

async function answer(daemon: DaemonProcess): Promise<string> {
  await prompt(daemon, "go");
  return String((await ask(daemon, "get_last_assistant_text"))["text"]);
}

async function login(daemon: DaemonProcess, providerId: string, line: string) {
  const after = daemon.frames.length;
  const done = request(daemon, "login", { providerId });
  const question = await wait(daemon, (frame) => frame["method"] === "input", after);
  daemon.send({ type: "extension_ui_response", id: question["id"], value: line });
  return done;
}

async function logout(daemon: DaemonProcess, provider: string): Promise<void> {
  const response = await request(daemon, "prompt", { message: `/logout ${provider}` });
  expect(response).toMatchObject({ success: true });
  await wait(daemon, (frame) => frame.type === "prompt_result" && frame["id"] === response["id"], 0);
}

/** What a process of its own sees in the home: name, mode, mode of the home. */
async function watchModes(home: string): Promise<[string, number, number][]> {
  const script = fileURLToPath(new URL("./_mode-watcher.mjs", import.meta.url));
  const watcher = spawn(process.execPath, [script, home], { stdio: ["ignore", "pipe", "inherit"] });
  later(() => watcher.kill("SIGKILL"));
  const seen: [string, number, number][] = [];
  await new Promise<void>((resolve) => {
    createInterface({ input: watcher.stdout }).on("line", (line) => {
      if (line === "ready") resolve();
      else seen.push(JSON.parse(line) as [string, number, number]);
    });
  });
  return seen;
}

const leftovers = (home: string) => readdirSync(home).filter((name) => name.startsWith("auth") && name !== "auth.json");

it.each([
  { mask: "000", authMode: 0o644, homeMode: 0o755 },
  { mask: "022", authMode: 0o600, homeMode: 0o700 },
])(
  "an expired token is renewed, then a second login and a logout, all private at every moment (case 25, umask $mask)",
  async ({ mask, authMode, homeMode }) => {
    const { home, auth, tokens, models, daemon: open, stored } = await place({ authMode, homeMode });
    const seen = await watchModes(home);
    const daemon = open(mask);
    expect(await answer(daemon)).toBe("fine with access-1-new");
    expect(models.requests).toHaveLength(1);
    expect(stored()).toMatchObject({
      house: { access: "access-1-new", refresh: "refresh-1-new" },
      openai: { key: "sk-kept-1" },
    });
    expect(await login(daemon, "anthropic", "sk-test-123")).toMatchObject({ success: true });
    expect(await login(daemon, "house", "let me in")).toMatchObject({ success: true });
    expect(await answer(daemon)).toBe("fine with access-2-new");
    await logout(daemon, "house");
    expect(Object.keys(stored())).toEqual(["openai", "anthropic"]);
    expect(await daemon.end()).toBe(0);
    expect(tokens).toMatchObject({ renewals: 2, refused: 0 });

    await eventually("the watcher saw the renewals", () => seen.filter(([name]) => name === "auth.json").length > 3);
    const own = seen.filter(([name]) => name.startsWith("auth"));
    expect(own.filter(([, file]) => file !== 0o600)).toEqual([]);
    // Reading tightens a loose file before anything is written; from the first write on the directory is private too.
    expect(own.filter(([name, , directory]) => name !== "auth.json" && directory !== 0o700)).toEqual([]);
    expect([mode(auth), mode(home)]).toEqual([0o600, 0o700]);
    expect(leftovers(home)).toEqual([]);
    const told = daemon.frames.filter((frame) => frame.type === "notice" && String(frame["message"]).includes("0644"));
    expect(told).toHaveLength(authMode === 0o644 ? 1 : 0);
    for (const secret of ["refresh-0-old", "refresh-1-new", "refresh-2-new", "sk-kept-1"]) {
      expect(daemon.stdout() + daemon.stderr(), secret).not.toContain(secret);
    }
  },
  60_000,
);

it("auth.json as a symbolic link: its target is read, and never written or chmodded (case 25)", async () => {
  const { home, auth, daemon: open, stored } = await place();
  const elsewhere = realpathSync(mkdtempSync(join(tmpdir(), "mortise-elsewhere-")));
  later(() => rmSync(elsewhere, { recursive: true, force: true }));
  const target = join(elsewhere, "target.json");
  writeFileSync(target, OLD);
  chmodSync(target, 0o640);
  rmSync(auth);
  symlinkSync(target, auth);
  const daemon = open("000");
  expect(await answer(daemon)).toBe("fine with access-1-new");
  expect(await login(daemon, "anthropic", "sk-test-123")).toMatchObject({ success: true });
  await logout(daemon, "openai");
  expect(await daemon.end()).toBe(0);
  expect([lstatSync(auth).isFile(), mode(auth), mode(home)]).toEqual([true, 0o600, 0o700]);
  expect(stored()).toMatchObject({ house: { access: "access-1-new" }, anthropic: { key: "sk-test-123" } });
  expect(stored()).not.toHaveProperty("openai");
  expect([readFileSync(target, "utf8"), mode(target)]).toEqual([OLD, 0o640]);
  expect(readdirSync(elsewhere)).toEqual(["target.json"]);
  const told = daemon.frames.filter((frame) => frame.type === "notice" && String(frame["message"]).includes("symbolic link"));
  expect(told).toHaveLength(1);
}, 60_000);

it("two daemons that renew at the same moment spend each refresh token once, and both go on (case 25)", async () => {
  const { home, tokens, revoked, daemon: open, stored } = await place();
  const go = hold(tokens);
  const daemons = [open(), open()];
  await Promise.all(daemons.map((daemon) => ask(daemon, "get_state")));
  const answers = daemons.map(answer);
  for (const daemon of daemons) await wait(daemon, (frame) => frame.type === "response" && frame["command"] === "prompt", 0);
  await eventually("one of them asks for a token", () => tokens.asked > 0);
  go();
  expect(await Promise.all(answers)).toEqual(["fine with access-1-new", "fine with access-1-new"]);
  expect(tokens).toMatchObject({ asked: 1, renewals: 1, refused: 0 });
  expect(stored()).toMatchObject({ house: { refresh: "refresh-1-new" }, openai: { key: "sk-kept-1" } });

  // The service takes the token back before its time: both are refused, both renew.
  revoked.add("Bearer access-1-new");
  for (const text of await Promise.all(daemons.map(answer))) expect(text).toMatch(/^fine with access-[23]-new$/);
  expect(tokens.refused).toBe(0);
  expect(stored()["house"]).toMatchObject({ refresh: tokens.valid });
  expect(leftovers(home)).toEqual([]);
}, 60_000);

it("kill -9 while the token service is asked: the old credentials are there, and the next daemon renews (case 25)", async () => {
  const { home, auth, tokens, daemon: open, stored } = await place();
  hold(tokens);
  const dying = open();
  expect(await request(dying, "prompt", { message: "go" })).toMatchObject({ success: true });
  await eventually("a token is asked for", () => tokens.asked > 0);
  // The request of the dying daemon is answered for nobody; its refresh token counts as spent only once it is.
  dying.child.kill("SIGKILL");
  await dying.exited;
  expect(readFileSync(auth, "utf8")).toBe(OLD);
  expect(mode(auth)).toBe(0o600);
  tokens.hold = Promise.resolve();
  const next = open();
  expect(await answer(next)).toBe("fine with access-1-new");
  expect(stored()).toMatchObject({ house: { access: "access-1-new" }, openai: { key: "sk-kept-1" } });
  expect(leftovers(home)).toEqual([]);
}, 60_000);

it("kill -9 while the renewed token is written: the file holds the old credentials or the new ones, whole (case 25)", async () => {
  const { home, auth, tokens, daemon: open, stored } = await place();
  const dying = open();
  await ask(dying, "get_state");
  const watcher = watch(home, (_event, name) => {
    if (name?.endsWith(".tmp")) dying.child.kill("SIGKILL");
  });
  later(() => watcher.close());
  dying.send({ id: "p", type: "prompt", message: "go" });
  expect(await dying.exited).toBe("SIGKILL");
  watcher.close();
  expect(["access-0-old", "access-1-new"]).toContain(stored()["house"]?.["access"]);
  expect(stored()).toMatchObject({ openai: { key: "sk-kept-1" } });
  expect(mode(auth)).toBe(0o600);
  expect(leftovers(home).map((name) => mode(join(home, name)) & 0o077)).toEqual(leftovers(home).map(() => 0));

  // A token that was spent and not kept cannot be had back: that is said, and a login mends it.
  const next = open();
  tokens.valid = "refresh-of-nobody";
  if (stored()["house"]?.["access"] === "access-0-old") {
    next.send({ id: "late", type: "prompt", message: "go" });
    const failure = await wait(next, (frame) => frame["id"] === "late" && frame["success"] === false, 0);
    expect(failure["error"]).toMatch(/^Cannot renew the login of house: .*status 400\. Log in again/);
    expect(next.stdout() + next.stderr()).not.toContain("refresh-0-old");
  }
  expect(await login(next, "house", "let me in")).toMatchObject({ success: true });
  expect(await answer(next)).toMatch(/^fine with access-\d-new$/);
}, 60_000);

it("a disk that is full when the renewed token is written keeps the old credentials (case 25)", async () => {
  // A file may be 50 KB here: the session fits, the credentials do not.
  const auth = `${JSON.stringify({ ...(JSON.parse(OLD) as object), bulk: { type: "api_key", key: "k".repeat(100_000) } })}\n`;
  const full = await place({ auth });
  const daemon = full.daemon("022", "trap '' XFSZ; ulimit -f 100;");
  daemon.send({ id: "p", type: "prompt", message: "go" });
  const failure = await wait(daemon, (frame) => frame["id"] === "p" && frame["success"] === false, 0);
  expect(failure["error"]).toContain("Cannot store credentials");
  expect(JSON.stringify(failure)).not.toMatch(/refresh-\d|access-\d/);
  expect(readFileSync(full.auth, "utf8")).toBe(auth);
  expect([mode(full.auth), leftovers(full.home)]).toEqual([0o600, []]);
  expect(await ask(daemon, "get_state")).toMatchObject({ isStreaming: false });
}, 60_000);
