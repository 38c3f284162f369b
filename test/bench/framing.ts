// Frames in and out of a real process through real pipes. Run: npx tsx test/bench/framing.ts [frames]
// Prints rates; asserts nothing. Out: this program as a child floods its parent through Outbound. In: the parent floods the child.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { readInput } from "../../core/kernel/transport/input.ts";
import { Outbound } from "../../core/kernel/transport/outbound.ts";
import { chunkLines } from "../../protocol/chunk.ts";
import { FrameDecoder } from "../../protocol/decoder.ts";
import { LineSplitter } from "../../protocol/jsonl.ts";

const [role = "parent", amount = "200000"] = process.argv.slice(2);
const FRAMES = Number(amount);
const frame = (n: number) => ({ type: "message_update", n, delta: "some forty characters of streamed text.", at: 1_700_000_000 });

if (role === "out" || role === "out-turns") {
  const out = new Outbound(process.stdout);
  let sent = 0;
  const burst = role === "out" ? 1_000 : 1;
  const step = () => {
    for (let n = 0; n < burst && sent < FRAMES; n += 1, sent += 1) out.send(frame(sent));
    if (sent < FRAMES) setImmediate(step);
    else void out.end().then(() => process.stderr.write(`${Math.round(process.memoryUsage().rss / 1_048_576)} MiB\n`));
  };
  step();
} else if (role === "in") {
  let count = 0;
  readInput(process.stdin, {
    onLine: (line) => {
      if (JSON.parse(line).type !== "") count += 1;
    },
    onError: () => {},
    onEnd: () => process.stdout.write(`${count}\n`),
  });
} else {
  for (const way of ["out", "out-turns"]) await measureOut(way);
  await measureIn();
  measureLongLine();
  measureChunks();
}

function child(way: string) {
  const self = fileURLToPath(import.meta.url);
  return spawn(process.execPath, [...process.execArgv, self, way, String(FRAMES)], { stdio: ["pipe", "pipe", "pipe"] });
}

async function measureOut(way: string): Promise<void> {
  const writer = child(way);
  let lines = 0;
  let bytes = 0;
  let first = 0;
  const splitter = new LineSplitter({ onLine: () => (lines += 1), onProblem: () => {} });
  writer.stdout.on("data", (chunk: Buffer) => {
    first ||= performance.now();
    bytes += chunk.length;
    splitter.push(chunk);
  });
  let memory = "";
  writer.stderr.on("data", (text) => (memory += String(text)));
  await new Promise((resolve) => writer.once("close", resolve));
  report(`frames ${way}`, lines, performance.now() - first, `${(bytes / 1e6).toFixed(0)} MB, writer ${memory.trim()}`);
}

async function measureIn(): Promise<void> {
  const reader = child("in");
  await new Promise((resolve) => setTimeout(resolve, 700));
  const started = performance.now();
  const block = Buffer.from(Array.from({ length: 1_000 }, (_, n) => `${JSON.stringify(frame(n))}\n`).join(""));
  for (let n = 0; n < FRAMES; n += 1_000) {
    if (!reader.stdin.write(block)) await new Promise((resolve) => reader.stdin.once("drain", resolve));
  }
  reader.stdin.end();
  const [answer] = await new Promise<unknown[]>((resolve) => reader.stdout.once("data", (...args) => resolve(args)));
  report("frames in", Number(String(answer)), performance.now() - started, "parsed");
}

function measureLongLine(): void {
  const piece = Buffer.alloc(65_536, 0x61);
  const splitter = new LineSplitter({ onLine: () => {}, onProblem: () => {} });
  const started = performance.now();
  for (let n = 0; n < 1_000; n += 1) splitter.push(piece);
  splitter.push(Buffer.from("\n"));
  report("one line of 65 MB in 64 KB pieces", 1, performance.now() - started, "");
}

function measureChunks(): void {
  const json = JSON.stringify({ type: "response", data: "x".repeat(16_000_000) });
  const started = performance.now();
  const decoder = new FrameDecoder();
  for (const line of chunkLines(json, "rpc-1")) decoder.decode(line);
  report("one frame of 16 MB in chunks, both ways", 1, performance.now() - started, "");
}

function report(what: string, count: number, ms: number, more: string): void {
  console.log(`${what}: ${count} in ${ms.toFixed(0)} ms, ${Math.round((count / ms) * 1000)}/s ${more}`);
}
