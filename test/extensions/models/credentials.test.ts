// public-bugs 25: the credential file, its modes, its writers and what happens to it in a crash.
import { type ChildProcess, spawn } from "node:child_process";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  watch,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import type { Credential } from "mortise/extension";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { AuthFile } from "../../../extensions/models/_auth-file.ts";

const repository = fileURLToPath(new URL("../../..", import.meta.url));
let bundles: string;
let childScript: string;
beforeAll(async () => {
  // Bundled once: evaluating the sources in each child would take longer than the tests.
  bundles = mkdtempSync(join(tmpdir(), "mortise-auth-bundle-"));
  childScript = join(bundles, "child.mjs");
  await build({
    entryPoints: [fileURLToPath(new URL("./_auth-child.ts", import.meta.url))],
    outfile: childScript,
    bundle: true,
    platform: "node",
    format: "esm",
    tsconfig: join(repository, "tsconfig.json"),
    logLevel: "silent",
  });
});
afterAll(() => rmSync(bundles, { recursive: true, force: true }));
const children = new Set<ChildProcess>();
let root: string;
let home: string;
let reports: string[];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "mortise-auth-"));
  home = join(root, "home");
  reports = [];
});
afterEach(() => {
  for (const child of children) child.kill("SIGKILL");
  children.clear();
  rmSync(root, { recursive: true, force: true });
});

const open = () =>
  new AuthFile({ home, report: (level, text) => reports.push(`${level}: ${text}`), otherSecrets: () => ["other"] });
const path = () => join(home, "auth.json");
const mode = (of: string) => lstatSync(of).mode & 0o777;
const key = (text: string): Credential => ({ type: "api_key", key: text });
const content = () => JSON.parse(readFileSync(path(), "utf8")) as Record<string, unknown>;

interface Ran {
  child: ChildProcess;
  /** It knows the credential as it was and wants another. */
  asked: Promise<void>;
  output: Promise<string>;
}
function run(action: string, argument: string, shell = 'exec "$@"'): Ran {
  const args = ["-c", shell, "sh", process.execPath, childScript, home, action, argument];
  const child = spawn("/bin/sh", args, { cwd: repository, stdio: ["ignore", "pipe", "pipe"] });
  children.add(child);
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk;
  });
  const output = new Promise<string>((resolve) => child.on("close", () => resolve(text)));
  const asked = new Promise<void>((resolve) =>
    child.stderr.on("data", (chunk: Buffer) => String(chunk).includes("asked") && resolve()),
  );
  return { child, asked, output };
}

describe("modes", () => {
  it.each(["000", "022"])("are 0600 and 0700 at every moment, whatever the umask (%s)", async (mask) => {
    mkdirSync(home, { recursive: true, mode: 0o700 });
    const loose: string[] = [];
    const names = new Set<string>();
    const watcher = watch(home, (_event, name) => {
      if (!name?.startsWith("auth")) return;
      names.add(name.replace(/\d+\.[0-9a-f]+/, "*"));
      const stat = lstatSync(join(home, name), { throwIfNoEntry: false });
      if (stat && name.startsWith("auth.json") && (stat.mode & 0o077) !== 0) loose.push(`${name} ${stat.mode.toString(8)}`);
    });
    const { output } = run("set", "new", `umask ${mask}; exec "$@"`);
    expect(await output).toBe("stored");
    watcher.close();
    expect(loose).toEqual([]);
    expect([...names]).toContain("auth.json.*.tmp");
    expect(mode(path())).toBe(0o600);
    expect(mode(home)).toBe(0o700);
    expect(Object.keys(content())).toEqual(["big"]);
    expect(readdirSync(home)).toEqual(["auth.json"]);
  });

  it("of a new home are right from the start", async () => {
    const file = open();
    await file.set("a", key("one"));
    expect(await file.remove("a")).toBe(true);
    expect(await file.remove("a")).toBe(false);
    expect([mode(home), mode(path())]).toEqual([0o700, 0o600]);
  });

  it("are tightened when they are loose, and that is told once", async () => {
    mkdirSync(home, { recursive: true });
    chmodSync(home, 0o755);
    writeFileSync(path(), JSON.stringify({ a: key("one") }));
    chmodSync(path(), 0o644);
    const file = open();
    expect(file.get("a")).toEqual(key("one"));
    expect(mode(path())).toBe(0o600);
    await file.set("b", key("two"));
    await file.set("c", key("three"));
    expect(mode(home)).toBe(0o700);
    expect(reports.filter((text) => text.includes("0644"))).toHaveLength(1);
    expect(reports.filter((text) => text.includes("0755"))).toHaveLength(1);
  });

  it("leave the target of a symbolic link alone", async () => {
    const target = join(root, "target.json");
    mkdirSync(home, { recursive: true, mode: 0o700 });
    writeFileSync(target, JSON.stringify({ a: key("one") }));
    symlinkSync(target, path());
    const file = open();
    expect(file.get("a")).toEqual(key("one"));
    await file.set("b", key("two"));
    expect(JSON.parse(readFileSync(target, "utf8"))).toEqual({ a: key("one") });
    expect(lstatSync(path()).isFile()).toBe(true);
    expect(mode(path())).toBe(0o600);
    expect(content()).toEqual({ a: key("one"), b: key("two") });
  });
});

describe("content", () => {
  it("of a corrupt file is kept, told without quoting it, and never replaced by an empty one", async () => {
    mkdirSync(home, { recursive: true, mode: 0o700 });
    const corrupt = '{"anthropic":{"type":"api_key","key":"CANARY1"';
    writeFileSync(path(), corrupt, { mode: 0o600 });
    const file = open();
    expect(file.get("anthropic")).toBeUndefined();
    expect(file.list()).toEqual([]);
    expect(reports).toEqual([
      expect.stringMatching(/^error: Cannot read the credentials in .*auth\.json: not valid JSON.*left as it is/),
    ]);
    expect(readFileSync(path(), "utf8")).toBe(corrupt);
    await file.set("openai", key("two"));
    const backup = readdirSync(home).find((name) => name.startsWith("auth.json.broken-"));
    expect(readFileSync(join(home, String(backup)), "utf8")).toBe(corrupt);
    expect(mode(join(home, String(backup)))).toBe(0o600);
    expect(content()).toEqual({ openai: key("two") });
    expect(reports.join()).not.toContain("CANARY");
  });

  it("that we do not understand survives a write, and another daemon's entries do", async () => {
    mkdirSync(home, { recursive: true, mode: 0o700 });
    writeFileSync(path(), JSON.stringify({ future: { type: "passkey", id: 7 } }), { mode: 0o600 });
    const [one, two] = [open(), open()];
    await Promise.all([one.set("a", key("1")), two.set("b", key("2")), one.set("c", key("3")), two.set("d", key("4"))]);
    expect(Object.keys(content()).sort()).toEqual(["a", "b", "c", "d", "future"]);
    expect(one.list().sort()).toEqual(["a", "b", "c", "d"]);
    expect(reports.filter((text) => text.includes("future"))).not.toHaveLength(0);
  });

  it("gives its secrets for redaction", async () => {
    const file = open();
    await file.set("a", key("one"));
    await file.set("b", { type: "oauth", access: "acc", refresh: "ref", expires: 1 });
    expect(new Set(file.secrets())).toEqual(new Set(["other", "one", "acc", "ref"]));
  });
});

/** A token service whose refresh tokens work once. */
async function tokenService(hold?: Promise<void>) {
  let valid = "r0";
  let renewals = 0;
  let arrived: () => void = () => {};
  const request = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    arrived();
    await hold;
    const { refresh } = JSON.parse(Buffer.concat(chunks).toString()) as { refresh: string };
    if (refresh !== valid) return response.writeHead(400).end();
    renewals++;
    valid = `r${renewals}`;
    response.end(JSON.stringify({ type: "oauth", access: `a${renewals}`, refresh: valid, expires: Date.now() + 3_600_000 }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    request,
    get renewals() {
      return renewals;
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

const expired: Credential = { type: "oauth", access: "a0", refresh: "r0", expires: 1 };

describe("several daemons", () => {
  it("that refresh at the same moment spend the refresh token once and both end with the new one", async () => {
    await open().set("service", expired);
    let go: () => void = () => {};
    const service = await tokenService(
      new Promise((resolve) => {
        go = resolve;
      }),
    );
    try {
      const [one, two] = [run("refresh", service.url), run("refresh", service.url)];
      await Promise.all([one.asked, two.asked, service.request]);
      go();
      const results = (await Promise.all([one.output, two.output])).map((text) => JSON.parse(text) as { access: string });
      expect(results.map(({ access }) => access)).toEqual(["a1", "a1"]);
      expect(service.renewals).toBe(1);
      expect(content()).toMatchObject({ service: { access: "a1", refresh: "r1" } });
    } finally {
      service.close();
    }
  });

  it("survive the death of one in the middle of a refresh", async () => {
    await open().set("service", expired);
    const service = await tokenService(new Promise(() => {}));
    try {
      const dying = run("refresh", service.url);
      await service.request;
      dying.child.kill("SIGKILL");
      await dying.output;
      expect(content()).toEqual({ service: expired });
      const file = open();
      await file.set("other", key("two"));
      expect(content()).toEqual({ service: expired, other: key("two") });
      expect(mode(path())).toBe(0o600);
    } finally {
      service.close();
    }
  });
});

it("keeps the old credentials when the disk takes no more", async () => {
  await open().set("a", key("one"));
  // A limit on file sizes instead of a full disk: the write fails in the same place. The signal is ignored, so it is an error.
  const { output } = run("set", "new", 'trap "" XFSZ; ulimit -f 1; exec "$@"');
  expect(await output).toMatch(/^failed: .*Cannot store credentials in .*EFBIG/);
  expect(content()).toEqual({ a: key("one") });
  expect(readdirSync(home)).toEqual(["auth.json"]);
  expect(statSync(path()).mode & 0o777).toBe(0o600);
});
