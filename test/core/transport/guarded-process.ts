// Claims its stdio, then prints in every way an extension could. Only frames may reach fd 1.
import childProcess, { execFileSync, execSync, fork, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import fs, {
  appendFileSync,
  createReadStream,
  createWriteStream,
  openSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { writeFile } from "node:fs/promises";
import { Worker } from "node:worker_threads";
import { readInput } from "../../../core/kernel/transport/input.ts";
import { Outbound } from "../../../core/kernel/transport/outbound.ts";
import { claimStdio } from "../../../core/kernel/transport/stdio-guard.ts";

const claimed = claimStdio();
const lines: string[] = [];
let inputIsOver = () => {};
const inputEnded = new Promise<void>((resolve) => {
  inputIsOver = resolve;
});
const out = new Outbound(claimed.stdout, {
  unsentBytes: claimed.unsentBytes,
  onClosed: (error) => {
    process.stderr.write(`closed: ${error.message}\n`);
    claimed.stdin.destroy();
  },
});
const actions: Record<string, () => unknown> = { print, printForEver, flood, unread, serve: () => {} };

out.send({ type: "ready" });
readInput(claimed.stdin, {
  onLine: (text) => {
    lines.push(text);
    out.send({ type: "line", text });
    if (process.argv[2] === "serve") console.error("x".repeat(100));
  },
  onError: (error) => out.send({ type: "bad", message: error.message }),
  onEnd: () => {
    inputIsOver();
  },
});
await actions[process.argv[2] ?? "print"]?.();
await inputEnded;
const delivered = await out.end(500);
console.error(`delivered: ${delivered}`);
if (!delivered) process.exit(out.closed ? 3 : 4);

async function print(): Promise<void> {
  console.log("via-console");
  console.info("via-info");
  console.table([{ a: "via-table" }]);
  const returned = process.stdout.write("\x1b]9;via-write\x07");
  const called = await new Promise((resolve) => process.stdout.write("via-callback", () => resolve(true)));
  process.stdout.end("via-end\n");
  process.stdout.destroy();
  process.stdout.write("via-after-destroy\n");
  writeSync(1, "via-writeSync\n");
  fs.writeSync(1, "via-fs-writeSync\n");
  await new Promise((resolve) => fs.write(1, "via-fs-write\n", resolve));
  await new Promise((resolve) => fs.writev(1, [Buffer.from("via-fs-writev\n")], resolve));
  writeFileSync(1, "via-writeFileSync\n");
  appendFileSync(1, "via-appendFileSync\n");
  const stream = createWriteStream("", { fd: 1 });
  stream.end("via-createWriteStream\n");
  await once(stream, "close");
  for (const path of ["/dev/stdout", "/proc/self/fd/1", `/proc/${process.pid}/fd/1`]) {
    try {
      writeFileSync(path, `via${path}\n`);
      await writeFile(path, `via-promises${path}\n`);
      fs.closeSync(openSync(path, "a"));
    } catch (error) {
      // A socket cannot be opened by its path; then nothing reaches stdout this way either.
      if (!(error instanceof Error && "code" in error && error.code === "ENXIO")) throw error;
    }
  }
  execSync("echo via-execSync", { stdio: "inherit" });
  execFileSync("echo", ["via-execFileSync"], { stdio: ["inherit", "inherit", "inherit"] });
  spawnSync("echo", ["via-spawnSync"], { stdio: [0, 1, 2] });
  childProcess.spawnSync("sh", ["-c", "cat; echo via-cat-done"], { stdio: "inherit" });
  await once(spawn("echo", ["via-spawn"], { stdio: "inherit" }), "exit");
  await once(spawn("echo", ["via-spawn-stream"], { stdio: ["ignore", process.stdout, "ignore"] }), "exit");
  await once(spawn("sh", ["-c", "echo via-slot-3 >&3"], { stdio: ["ignore", "ignore", "ignore", 1] }), "exit");
  const forked = new URL("forked.mjs", import.meta.url);
  writeFileSync(forked, "console.log('via-fork')");
  await once(fork(forked), "exit");
  await once(new Worker("console.log('via-worker'); process.stdout.write('via-worker-write\\n')", { eval: true }), "exit");

  let stolen = readFileSync(0, "utf8");
  stolen += fs.readSync(0, Buffer.alloc(10)) === 0 ? "" : "readSync";
  for await (const chunk of process.stdin) stolen += chunk;
  for await (const chunk of createReadStream("", { fd: 0 })) stolen += chunk;
  try {
    stolen += readFileSync("/dev/stdin", "utf8");
  } catch {}
  out.send({ type: "report", returned, called, stolen, piped: execSync("echo piped").toString() });
}

/** Public bug 5 A: answers of all sizes, queued at once, when the input has ended already. */
async function flood(): Promise<void> {
  await inputEnded;
  for (let n = 0; n < 128; n += 1) out.send({ type: "response", id: `e${n}`, success: true, data: "x".repeat(2_000) });
  out.send({ type: "response", id: "big", success: true, data: "ü".repeat(400_000) });
}

async function unread(): Promise<void> {
  await inputEnded;
  for (let n = 0; n < 20; n += 1) out.send({ type: "event", data: "x".repeat(100_000) });
}

function printForEver(): void {
  const timer = setInterval(() => {
    console.error("noise");
    process.stdout.write("noise");
    out.send({ type: "tick" });
  }, 1);
  claimed.stdin.once("close", () => clearInterval(timer));
  claimed.stdin.once("end", () => clearInterval(timer));
}
