import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text as readAll } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Bundle, bundle } from "./bundle.ts";

const WAYS = [
  ..."console info table write callback end after-destroy writeSync fs-writeSync fs-write fs-writev".split(" "),
  ..."writeFileSync appendFileSync createWriteStream execSync execFileSync spawnSync cat-done spawn".split(" "),
  ..."spawn-stream slot-3 fork worker worker-write".split(" "),
];

let program: Bundle;
beforeAll(() => {
  program = bundle(new URL("guarded-process.ts", import.meta.url));
});
afterAll(() => program.remove());

function start(action: string, stdio: StdioOptions = ["pipe", "pipe", "pipe"]): ChildProcess {
  return spawn(process.execPath, [program.file, action], { stdio });
}

function checkFrames(stdout: string, input: readonly string[]): void {
  const frames = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(frames[0]).toEqual({ type: "ready" });
  expect(frames.filter((frame) => frame.type === "line").map((frame) => frame.text)).toEqual(input);
  const report = frames.find((frame) => frame.type === "report");
  expect(report).toMatchObject({ returned: true, called: true, stolen: "", piped: "piped\n" });
}

function checkStray(stderr: string): void {
  expect(WAYS.filter((way) => !stderr.includes(`via-${way}`))).toEqual([]);
}

describe("claimStdio", () => {
  it("public bug 4: with pipes, only frames reach stdout, all else reaches stderr, and stdin is not consumed", async () => {
    const child = start("print");
    child.stdin?.write('{"a":1}\n{"b":2}\n');
    const out = readAll(child.stdout ?? process.stdin);
    const err = readAll(child.stderr ?? process.stdin);
    child.stdout?.on("data", (chunk) => {
      if (String(chunk).includes('"report"')) child.stdin?.end("{}");
    });
    const [code] = await once(child, "close");
    checkFrames(await out, ['{"a":1}', '{"b":2}', "{}"]);
    checkStray(await err);
    expect(code).toBe(0);
  });

  it("public bug 4: the same with files as stdin, stdout and stderr", async () => {
    const path = (name: string) => join(program.folder, name);
    writeFileSync(path("in"), '{"a":1}\n{"b":2}');
    const fds = [openSync(path("in"), "r"), openSync(path("out"), "a"), openSync(path("err"), "a")];
    const child = start("print", fds);
    for (const fd of fds) closeSync(fd);
    const [code] = await once(child, "exit");
    checkFrames(readFileSync(path("out"), "utf8"), ['{"a":1}', '{"b":2}']);
    checkStray(readFileSync(path("err"), "utf8"));
    expect(code).toBe(0);
  });

  it("public bug 4: the same with the pipes of a shell", async () => {
    const command = `printf '{"a":1}\\n' | "$0" "$1" print 2>"$2" | cat`;
    const child = spawn("sh", ["-c", command, process.execPath, program.file, join(program.folder, "err2")], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    checkFrames(await readAll(child.stdout), ['{"a":1}']);
    checkStray(readFileSync(join(program.folder, "err2"), "utf8"));
  });

  it("public bug 5 A: everything reaches a reader that is slow, although the input has ended; exit code 0", async () => {
    const child = start("flood");
    const exited = once(child, "exit");
    child.stdin?.end();
    // Without this listener Node itself reads on, and throws away, once the process has exited.
    child.stdout?.on("readable", () => {});
    const parts: Buffer[] = [];
    while (!child.stdout?.readableEnded) {
      await new Promise((resolve) => setTimeout(resolve, 2));
      const part: unknown = child.stdout?.read(16_384) ?? child.stdout?.read();
      if (part instanceof Buffer) parts.push(part);
    }
    const received = Buffer.concat(parts).toString("utf8");
    const [code] = await exited;
    expect(code).toBe(0);
    expect(received.endsWith("}\n")).toBe(true);
    const frames = received
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(frames.map((frame) => frame.id ?? frame.type)).toEqual([
      "ready",
      ...Array.from({ length: 128 }, (_, n) => `e${n}`),
      "big",
    ]);
    expect(frames.at(-1).data).toHaveLength(400_000);
  });

  it("public bug 5: gives up in bounded time when nobody reads at all", async () => {
    const child = start("unread");
    child.stdout?.pause();
    child.stdin?.end();
    const err = readAll(child.stderr ?? process.stdin);
    const [code] = await once(child, "exit");
    child.stdout?.destroy();
    expect(code).toBe(4);
    expect(await err).toContain("delivered: false");
  });

  it("public bug 6: a broken stderr neither crashes nor loops, and frames go on", async () => {
    const child = start("serve");
    child.stderr?.destroy();
    const out = readAll(child.stdout ?? process.stdin);
    for (let n = 0; n < 50; n += 1) {
      child.stdin?.write(`{"n":${n}}\n`);
      await new Promise((resolve) => setImmediate(resolve));
    }
    child.stdin?.end();
    const [code] = await once(child, "exit");
    expect(code).toBe(0);
    expect((await out).trimEnd().split("\n")).toHaveLength(51);
  });

  it("public bug 6: a lost stdout is noticed once and ends the program although stdin stays open", async () => {
    const child = start("printForEver");
    let err = "";
    child.stderr?.on("data", (chunk) => {
      err += chunk;
    });
    child.stdout?.once("data", () => child.stdout?.destroy());
    const [code] = await once(child, "close");
    expect(code).toBe(3);
    expect(err.match(/closed: /g)).toHaveLength(1);
  });
});
