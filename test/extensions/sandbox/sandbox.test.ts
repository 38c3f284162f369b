// The model's commands inside bubblewrap, where it is installed and may make namespaces.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type StartOptions, startDaemon, type TestDaemon } from "mortise/testing";
import { afterEach, describe, expect, test } from "vitest";
import { builtins } from "../../../core/loader/builtins.generated.ts";

let daemon: TestDaemon | undefined;
afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
});

async function start(mode: string, more: StartOptions = {}, extra = "") {
  daemon = await startDaemon({
    watch: false,
    ...more,
    files: { "config.yml": `tools:\n  sandbox: ${mode}\n${extra}`, "cwd/kept.txt": "kept\n", ...more.files },
  });
  return daemon;
}
const bash = (d: TestDaemon, command: string, more: Record<string, unknown> = {}) => d.callTool("bash", { command, ...more });

function works(): string | undefined {
  try {
    execFileSync("bwrap", ["--ro-bind", "/", "/", "--unshare-pid", "--unshare-net", "--proc", "/proc", "--dev", "/dev", "true"], {
      stdio: "pipe",
    });
    return undefined;
  } catch (error) {
    return String(error).split("\n")[0];
  }
}
const reason = works();
if (reason !== undefined) console.warn(`Tests of the sandbox are skipped: ${reason}`);

describe.skipIf(reason !== undefined).each(["rpc", "rpc-ui"] as const)("With %s", (mode) => {
  test("workspace-write: the project may be written, nothing else, and what others run may not", async () => {
    const d = await start("workspace-write", {
      options: { mode },
      files: { "cwd/.git/config": "[core]\n", "cwd/.git/hooks/x": "", "auth.json": '{"secret":1}' },
    });
    const outside = join(d.home, "outside.txt");
    expect(await bash(d, "echo new > sub.txt && cat sub.txt kept.txt")).toMatchObject({ isError: false, text: "new\nkept" });
    expect(readFileSync(join(d.cwd, "sub.txt"), "utf8")).toBe("new\n");
    for (const target of [
      "/etc/mortise-test",
      ".git/hooks/pre-commit",
      ".git/config",
      join(process.env["HOME"] ?? "/root", "mortise-test"),
    ]) {
      const result = await bash(d, `echo x >> '${target}'`);
      expect(result.isError, target).toBe(true);
      expect(result.text).toMatch(/Read-only file system|Permission denied/);
    }
    // The home lies in /tmp here: written to the scratch space, not to the file.
    await bash(d, `echo x > '${outside}'`);
    expect(existsSync(outside)).toBe(false);
    expect((await bash(d, `cat '${join(d.home, "auth.json")}'`)).text).not.toContain("secret");
    // Scratch space works and is gone afterwards.
    expect(await bash(d, "echo t > /tmp/mortise-scratch && cat /tmp/mortise-scratch")).toMatchObject({ text: "t" });
    expect(await bash(d, "ls /tmp/mortise-scratch")).toMatchObject({ isError: true });
    expect(existsSync("/tmp/mortise-scratch")).toBe(false);
  });

  test("read-only: nothing may be written but scratch space", async () => {
    const d = await start("read-only", { options: { mode } });
    expect(await bash(d, "cat kept.txt")).toMatchObject({ isError: false, text: "kept" });
    expect(await bash(d, "echo x > new.txt")).toMatchObject({ isError: true });
    expect(await bash(d, "rm kept.txt")).toMatchObject({ isError: true });
    expect(await bash(d, "echo x > /tmp/y && cat /tmp/y")).toMatchObject({ isError: false, text: "x" });
    expect(readFileSync(join(d.cwd, "kept.txt"), "utf8")).toBe("kept\n");
  });

  test("exit codes, output, time limit, abort and other directories are as without it", async () => {
    const d = await start("workspace-write", { options: { mode }, files: { "cwd/sub/x": "" } });
    expect(await bash(d, "echo out; echo err >&2; exit 7")).toMatchObject({
      isError: true,
      text: "out\nerr\n\n[Command exited with code 7]",
    });
    expect(await bash(d, "pwd", { cwd: "sub" })).toMatchObject({ text: join(d.cwd, "sub") });
    expect(await bash(d, "seq 1 5000; echo END")).toMatchObject({ isError: false, text: expect.stringContaining("\nEND\n") });
    expect((await bash(d, "echo started; sleep 60", { timeout: 1 })).text).toMatch(/^started\n\n\[Command timed out/);
    d.send({ type: "prompt", message: 'call bash {"command":"sleep 60"}' });
    await d.next("tool_execution_start", { after: d.frames.length });
    await d.ask("abort");
  });

  test("processes are apart: others cannot be seen or ended, and children end with the call", async () => {
    const d = await start("workspace-write", { options: { mode } });
    expect(await bash(d, `kill -0 ${process.pid}`)).toMatchObject({ isError: true });
    const started = performance.now();
    const result = await bash(d, "sleep 60 & echo front");
    expect(result).toMatchObject({ isError: false, text: "front" });
    expect(performance.now() - started).toBeLessThan(10_000);
  });

  test("the network is off unless it is switched on", async () => {
    const server = createServer((_request, response) => response.end("reached")).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as AddressInfo;
    const command = `exec 3<>/dev/tcp/127.0.0.1/${port} && printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3 && cat <&3`;
    try {
      const off = await start("workspace-write", { options: { mode } });
      expect(await bash(off, command)).toMatchObject({ isError: true });
      await off.stop();
      const on = await start("workspace-write", { options: { mode } }, "  sandboxNetwork: true\n");
      expect(await bash(on, command)).toMatchObject({ isError: false, text: expect.stringContaining("reached") });
    } finally {
      server.close();
    }
  });

  test("the host's own bash command is not the model's", async () => {
    const d = await start("read-only", { options: { mode } });
    expect(await d.ask("bash", { command: "echo mine > new.txt && cat new.txt" })).toMatchObject({
      exitCode: 0,
      output: "mine\n",
    });
  });
});

test("without bubblewrap every command is refused, with what is missing", async () => {
  const empty = await start("workspace-write", { env: { ...process.env, PATH: "/nowhere" } });
  const result = await bash(empty, "touch ran");
  expect(result).toMatchObject({ isError: true });
  expect(result.text).toBe(
    "Cannot run the command: tools.sandbox is workspace-write, but bubblewrap (bwrap) was not found in PATH; install it (package bubblewrap), or set tools.sandbox to off",
  );
  expect(existsSync(join(empty.cwd, "ran"))).toBe(false);
});

test("a bubblewrap that cannot work is a refusal, and works once it can", async () => {
  const bin = mkdtempSync(join(tmpdir(), "mortise-bwrap-"));
  try {
    const broken = "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n";
    writeFileSync(join(bin, "bwrap"), broken, { mode: 0o755 });
    const d = await start("workspace-write", { env: { ...process.env, PATH: bin } });
    const result = await bash(d, "touch ran");
    expect(result.text).toContain("bubblewrap does not work here (bwrap: No permissions to create new namespace)");
    expect(existsSync(join(d.cwd, "ran"))).toBe(false);
    // What stands for a working one runs its last arguments.
    writeFileSync(join(bin, "bwrap"), '#!/bin/bash\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n', { mode: 0o755 });
    expect(await bash(d, "echo works")).toMatchObject({ isError: false, text: "works" });
  } finally {
    rmSync(bin, { recursive: true, force: true });
  }
});

test("a setting that nobody fulfils never runs a command without it", async () => {
  const d = await start("workspace-write", { builtins: builtins.filter((unit) => unit.id !== "builtin:sandbox") });
  const result = await bash(d, "touch ran");
  expect(result).toMatchObject({ isError: true, text: expect.stringContaining("the sandbox extension is not loaded") });
  expect(existsSync(join(d.cwd, "ran"))).toBe(false);
});
