// The Shell service through the bash tool and the RPC commands, with real processes.
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Credentials, z } from "mortise/extension";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import bash from "../../../builtin-tools/bash.ts";
import abortBash from "../../../extensions/shell/abort-bash.ts";
import rpcBash from "../../../extensions/shell/bash.ts";
import { type Bench, bench, textOf } from "../../builtin-tools/_support.ts";
import { hasTerminal } from "../../support/terminal.ts";

let b: Bench;
afterEach(() => b.close());

/** Command lines of living processes that match. */
function living(pattern: string): string[] {
  const lines = execFileSync("ps", ["-eo", "stat=,args="], { encoding: "utf8" }).split("\n");
  return lines.filter((line) => line.includes(pattern) && !line.trimStart().startsWith("Z"));
}

async function until(condition: () => boolean, ms = 4000): Promise<void> {
  const deadline = Date.now() + ms;
  while (!condition() && Date.now() < deadline) await delay(20);
  expect(condition()).toBe(true);
}

const rpc = (command: string) => Promise.resolve(rpcBash.run(b.ctx, { command }));

/** Decimals of the seconds that this file's processes sleep: others of the machine sleep as well. */
const OWN = `${process.pid}${Date.now() % 1000}7`;

const treeScript = `#!/bin/bash
sleep 901.${OWN} &
bash -c "trap '' TERM INT HUP; sleep 902.${OWN}; sleep 902.${OWN}" &
setsid sleep 903.${OWN} &
wait
`;

describe.each(["rpc", "rpc-ui"] as const)("bash tool in %s", (mode) => {
  beforeEach(() => {
    b = bench({ mode });
  });

  test.each([
    ["11.1", `sleep 70.${OWN} & echo front`, "front"],
    ["11.2", `sleep 70.${OWN} <&- >/dev/null & echo front`, "front"],
    ["11.3", `setsid sleep 70.${OWN} & echo front`, "front"],
    ["11.4", "(while :; do echo tick; sleep 0.1; done) & sleep 0.5; echo front", "front"],
    ["11.5", `nohup sh -c 'sleep 70.${OWN}; echo late' & echo front`, "front"],
    ["11.6", `yes | head -c 3000000; sleep 70.${OWN} & echo tail-marker`, "tail-marker"],
  ])("case %s: returns when the shell exits and names what goes on", async (_name, command, expected) => {
    const started = performance.now();
    const result = await b.call(bash, { command, timeout: 20 });
    expect(performance.now() - started).toBeLessThan(5000);
    expect(result.isError).toBeUndefined();
    expect(textOf(result)).toContain(`\n${expected}\n`.trimStart());
    expect(textOf(result)).toMatch(/still running in the background and will be ended with the daemon: \d+ \(/);
    const next = await b.call(bash, { command: "echo next" });
    expect(textOf(next)).toBe("next");
    await b.close();
    expect(living(`sleep 70.${OWN}`)).toEqual([]);
  });

  test.each([
    ["13.1", 'read -r x; echo "got:$x"', "got:"],
    ["13.2", "cat", "(no output)"],
    ["13.3", 'cat <<E >/dev/null\nE\nread -r y; echo "y=$y"', "y="],
    ["13.4", "python3 -c 'input(\"Proceed? \")'", "EOFError"],
    ["13.5", "ssh -o StrictHostKeyChecking=ask -o ConnectTimeout=2 127.0.0.1 true; true", ""],
    ["13.6", "less /etc/passwd", "root:"],
    ["13.6 editor", "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty; echo done", "done"],
    ["13.6 tty", "(exec </dev/tty) 2>/dev/null || echo no terminal", "no terminal"],
  ])("case %s: a command that wants input gets none and ends", async (_name, command, expected) => {
    const started = performance.now();
    const result = await b.call(bash, { command, timeout: 30 });
    expect(performance.now() - started).toBeLessThan(5000);
    expect(textOf(result)).toContain(expected);
  });

  test("case 12 B: abort ends the whole tree, TERM-ignoring and own-session children included", async () => {
    writeFileSync(join(b.cwd, "tree.sh"), treeScript);
    chmodSync(join(b.cwd, "tree.sh"), 0o755);
    const controller = new AbortController();
    const running = b.call(bash, { command: "echo started; ./tree.sh" }, controller.signal);
    await until(() => living(OWN).length >= 3);
    controller.abort();
    controller.abort();
    const result = await running;
    expect(result).toMatchObject({ isError: true, details: { cancelled: true } });
    expect(textOf(result)).toBe("started\n\n[Command aborted]");
    // The result comes at once, the kill goes on behind it.
    await until(() => living(OWN).length === 0, 20_000);
  });

  test("case 12 C: a time-out keeps the output and ends the tree", async () => {
    writeFileSync(join(b.cwd, "tree.sh"), treeScript);
    chmodSync(join(b.cwd, "tree.sh"), 0o755);
    const result = await b.call(bash, { command: "echo started; ./tree.sh", timeout: 1 });
    expect(textOf(result)).toMatch(/^started\n\n\[Command timed out after 1 seconds/);
    expect(living(OWN)).toEqual([]);
    const zombies = execFileSync("ps", ["-o", "stat=", "--ppid", String(process.pid)], { encoding: "utf8" });
    expect(zombies).not.toContain("Z");
  });

  test("case 2.4: a character written in two halves arrives whole", async () => {
    const result = await b.call(bash, { command: "printf '\\360\\237'; sleep 0.2; printf '\\247\\255\\n'" });
    expect(textOf(result)).toBe("🧭");
    for (const update of b.updates) expect(textOf(update)).not.toContain("\ufffd");
  });

  test("case 17.2, 17.3: bytes that are no text and escape sequences are reduced", async () => {
    const random = textOf(await b.call(bash, { command: "head -c 4096 /dev/urandom" }));
    expect(random.isWellFormed()).toBe(true);
    expect(random).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/);
    expect(textOf(await b.call(bash, { command: "printf 'x\\0y\\n'" }))).toBe("xy");
    expect(textOf(await b.call(bash, { command: "printf '\\355\\240\\275\\n'" }))).toMatch(/^\ufffd+$/);
    const fancy = "printf '\\033[31mred\\033[0m\\033]0;title\\007\\033]8;;http://x\\007l\\033]8;;\\007\\rover\\bwrite\\n'";
    expect(textOf(await b.call(bash, { command: fancy }))).toBe("ovewrite");
  });

  test("case 17.4: 22 MB of lines stay bounded, and the file has them all (regression 55)", async () => {
    const result = await b.call(bash, { command: "seq 1 3000000" });
    const text = textOf(result);
    expect(Buffer.byteLength(text)).toBeLessThan(52_000);
    expect(text).toContain("\n3000000\n");
    const path = /Full output: ([^,\]]+)/.exec(text)?.[1] ?? "";
    expect(result.details).toMatchObject({ fullOutputPath: path, truncation: { totalLines: 3_000_000 } });
    const full = readFileSync(path, "utf8");
    expect(full.length).toBe(22_888_896);
    expect(full.endsWith("\n2999999\n3000000\n")).toBe(true);
    for (const update of b.updates) expect(Buffer.byteLength(textOf(update))).toBeLessThanOrEqual(50 * 1024);
  });

  test("the kept output is what the command wrote, byte for byte, and so are the counts", async () => {
    const wrote = `${"\\r\\n\\n\\r\\r\\nx\\ry\\t\\033[1mb".repeat(2)}\\r`;
    const expected = Buffer.from(`${"\r\n\n\r\r\nx\ry\t\x1b[1mb".repeat(2)}\r`.repeat(4000));
    const result = await b.call(bash, { command: `printf '${wrote}%.0s' {1..4000}` });
    expect(result.details).toMatchObject({ exitCode: 0, truncation: { totalBytes: expected.length } });
    expect(readFileSync(/Full output: ([^,\]]+)/.exec(textOf(result))?.[1] ?? "").equals(expected)).toBe(true);
  });

  test("exit codes, signals and syntax errors are told", async () => {
    expect(textOf(await b.call(bash, { command: "echo a; exit 3" }))).toBe("a\n\n[Command exited with code 3]");
    expect(await b.call(bash, { command: "kill -9 $$" })).toMatchObject({ isError: true, details: { exitCode: 137 } });
    expect(await b.call(bash, { command: "if" })).toMatchObject({ isError: true, details: { exitCode: 2 } });
    expect(await b.call(bash, { command: "false\ntrue" })).not.toHaveProperty("isError");
  });

  test("no output is lost at the exit", async () => {
    for (let round = 0; round < (process.env["MORTISE_SOAK"] ? 200 : 8); round++) {
      expect(textOf(await b.call(bash, { command: "seq 1 1500; echo END" }))).toMatch(/\n1499\n1500\nEND$/);
    }
  });
});

test.skipIf(!hasTerminal)("plain rpc gives a terminal without input, rpc-ui pipes", async () => {
  const command = "test -t 0 || printf 'in '; test -t 1 || printf 'out '; test -t 2 || printf err";
  b = bench({ mode: "rpc" });
  expect(textOf(await b.call(bash, { command }))).toBe("in ");
  // Nobody will ever press a key at it.
  expect(textOf(await b.call(bash, { command: "read -r key <&2 || echo nobody" }))).toMatch(/read error.*\nnobody$/);
  await b.close();
  b = bench({ mode: "rpc-ui" });
  expect(textOf(await b.call(bash, { command }))).toBe("in out err");
});

describe("environment", () => {
  test("asks nobody and holds no provider key", async () => {
    process.env["ANTHROPIC_API_KEY"] = "sk-ant-1";
    process.env["MY_OWN"] = "kept";
    process.env["SNEAKY"] = "secret-value-1";
    b = bench({ services: { [Credentials.name]: { secrets: () => ["secret-value-1"] } } });
    const text = textOf(await b.call(bash, { command: "env", env: { EXTRA: "1" } }));
    for (const name of ["ANTHROPIC_API_KEY", "MY_OWN", "SNEAKY"]) delete process.env[name];
    for (const line of ["PAGER=cat", "GIT_TERMINAL_PROMPT=0", "TERM=dumb", "NO_COLOR=1", "CI=1", "MY_OWN=kept", "EXTRA=1"]) {
      expect(text.split("\n")).toContain(line);
    }
    expect(text).not.toMatch(/sk-ant-1|secret-value-1|__mortise=/);
  });

  test("a waiting shell never serves an old environment or directory", async () => {
    b = bench();
    const command = 'echo "$(pwd)|$CHANGED"; ls';
    mkdirSync(join(b.cwd, "d"));
    const dir = join(b.cwd, "d");
    await b.call(bash, { command, cwd: "d" });
    await delay(50);
    process.env["CHANGED"] = "yes";
    expect(textOf(await b.call(bash, { command, cwd: "d" }))).toBe(`${dir}|yes`);
    delete process.env["CHANGED"];
    await delay(50);
    // The same name, another directory.
    rmSync(dir, { recursive: true });
    mkdirSync(dir);
    writeFileSync(join(dir, "new"), "");
    expect(textOf(await b.call(bash, { command, cwd: "d" }))).toBe(`${dir}|\nnew`);
  });

  test("a missing directory is an error that names it", async () => {
    b = bench();
    expect(await b.call(bash, { command: "true", cwd: "nowhere" })).toMatchObject({
      isError: true,
      content: [{ text: `Cannot run the command: "${join(b.cwd, "nowhere")}" is not a directory` }],
    });
  });
});

describe("shells that wait", () => {
  beforeEach(() => {
    b = bench({ mode: "rpc" });
  });

  test("are there for any number of commands, one after another and at once", async () => {
    for (let round = 0; round < 40; round++) expect(await rpc(`exit ${round}`)).toMatchObject({ exitCode: round });
    const many = Array.from({ length: 40 }, (_, index) => rpc(`echo ${index}; exit ${index}`));
    for (const [index, answer] of (await Promise.all(many)).entries()) {
      expect(answer).toMatchObject({ exitCode: index, output: `${index}\n` });
    }
  });

  test("start nothing when the command is aborted before it got one", async () => {
    const controller = new AbortController();
    const running = b.call(bash, { command: "touch started" }, controller.signal);
    controller.abort();
    expect(await running).toMatchObject({ isError: true, details: { cancelled: true } });
    await rpc("true");
    expect(await rpc("ls")).toMatchObject({ output: "" });
  });
});

describe("RPC bash", () => {
  beforeEach(() => {
    b = bench({ mode: "rpc" });
  });

  test("answers with counts and records the run", async () => {
    const answer = await rpc("echo hello; exit 4");
    expect(rpcBash.result?.parse(answer)).toEqual({
      output: "hello\n",
      exitCode: 4,
      cancelled: false,
      truncated: false,
      totalLines: 1,
      totalBytes: 6,
      outputLines: 1,
      outputBytes: 6,
      workingDir: b.cwd,
    });
    expect(b.recorded).toMatchObject([{ role: "bashExecution", command: "echo hello; exit 4", output: "hello\n", exitCode: 4 }]);
  });

  test("keeps the directory, whatever ends the shell", async () => {
    mkdirSync(join(b.cwd, "sub dir/deep"), { recursive: true });
    await rpc("cd 'sub dir'; exit 1");
    expect(await rpc("pwd; cd deep; false")).toMatchObject({ output: `${realpathSync(join(b.cwd, "sub dir"))}\n` });
    expect(await rpc("set -x; cd .")).toMatchObject({ output: "++ cd .\n", workingDir: join(b.cwd, "sub dir/deep") });
    rmSync(join(b.cwd, "sub dir"), { recursive: true });
    expect(await rpc("pwd")).toMatchObject({ output: `${b.cwd}\n` });
  });

  test("case 12 A: abort_bash ends every run and succeeds without any", async () => {
    writeFileSync(join(b.cwd, "tree.sh"), treeScript);
    chmodSync(join(b.cwd, "tree.sh"), 0o755);
    const runs = [rpc("./tree.sh"), rpc(`sleep 904.${OWN}`)];
    await until(() => ["901", "902", "903", "904"].every((time) => living(`sleep ${time}.${OWN}`).length > 0));
    abortBash.run(b.ctx, {});
    abortBash.run(b.ctx, {});
    const second = rpc("echo ok");
    for (const answer of await Promise.all(runs)) {
      expect(answer).toMatchObject({ cancelled: true, output: expect.stringMatching(/^\[Command cancelled\]\n/) });
      expect(answer).toHaveProperty("exitCode", undefined);
    }
    expect(await second).toMatchObject({ output: "ok\n" });
    expect(living(OWN)).toEqual([]);
  });

  test("regression 52: ending one command leaves another's children alone", async () => {
    const controller = new AbortController();
    const victim = b.call(bash, { command: `sleep 905.${OWN}` }, controller.signal);
    const other = rpc(`sleep 1.${OWN} & sleep 1.${OWN}; echo survived`);
    await until(() => living(`sleep 905.${OWN}`).length > 0 && living(`sleep 1.${OWN}`).length > 1);
    controller.abort();
    await victim;
    expect(await other).toMatchObject({ output: "survived\n", exitCode: 0 });
  });

  test("the tool's runs are not ended by abort_bash", async () => {
    const running = b.call(bash, { command: "sleep 0.3; echo done" });
    abortBash.run(b.ctx, {});
    expect(textOf(await running)).toBe("done");
  });

  test("killAll ends runs as cancelled", async () => {
    const running = rpc(`sleep 906.${OWN}`);
    await until(() => living(`sleep 906.${OWN}`).length > 0);
    await b.shell.killAll();
    expect(await running).toMatchObject({ cancelled: true });
  });
});

test("disposing leaves no process, no file and no descriptor behind", () => {
  // In a process of its own: others of this one open descriptors, start shells and make temporary files at the same time.
  const folder = mkdtempSync(join(tmpdir(), "mortise-own-"));
  const script = fileURLToPath(new URL("_disposing.ts", import.meta.url));
  const report = execFileSync(process.execPath, ["--import", "tsx", script], {
    encoding: "utf8",
    env: { ...process.env, TMPDIR: folder },
  });
  const { descriptors, children, files } = z
    .object({ descriptors: z.array(z.number()).length(2), children: z.array(z.string()), files: z.array(z.string()) })
    .parse(JSON.parse(report));
  expect(living("sleep 907.7")).toEqual([]);
  expect(children).toEqual([]);
  expect(files).toEqual([]);
  expect(descriptors[1]).toBeLessThanOrEqual((descriptors[0] ?? 0) + 1);
  rmSync(folder, { recursive: true });
});
