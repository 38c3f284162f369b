// Long sessions: what opening one costs, what a turn in it costs, and how long the event loop is held: `npx tsx test/bench/session.ts`,
// with numbers of entries as arguments for some sizes only. Two kinds of model: one whose window holds everything, one that has to
// compact first.
import { Host, makeBox, median, now, residentMiB, startModelServer } from "./_driver.ts";

/** A session of short messages with a tool call in every fourth answer, as one line per entry. */
export function sessionText(entries: number, cwd: string): string {
  const lines: unknown[] = [{ type: "session", version: 3, id: "0193bench", timestamp: new Date().toISOString(), cwd }];
  for (let index = 0; index < entries; index++) {
    const id = index.toString(16).padStart(8, "0");
    const parentId = index === 0 ? null : (index - 1).toString(16).padStart(8, "0");
    lines.push({ type: "message", id, parentId, timestamp: new Date(index).toISOString(), message: messageAt(index) });
  }
  return `${lines.map((line) => JSON.stringify(line)).join("\n")}\n`;
}

const usage = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};

function messageAt(index: number): Record<string, unknown> {
  const text = `Message ${index}: ${"some words of ordinary length ".repeat(8)}`;
  const content = [{ type: "text", text }];
  const toolCallId = `toolu_${index - (index % 4)}`;
  const answer = { api: "anthropic-messages", provider: "bench", model: "m", usage, timestamp: index };
  switch (index % 4) {
    case 0:
      return { role: "user", content, timestamp: index };
    case 1: {
      const call = { type: "toolCall", id: toolCallId, name: "bash", arguments: { command: `grep -rn word${index} src` } };
      return { role: "assistant", content: [...content, call], stopReason: "toolUse", ...answer };
    }
    case 2:
      return { role: "toolResult", toolCallId, toolName: "bash", content, isError: false, timestamp: index };
    default:
      return { role: "assistant", content, stopReason: "stop", ...answer };
  }
}

/**
 * Tells the longest time the event loop was held since it was last asked, in ms: by the clock, and in CPU time of the main thread,
 * which says the same on a busy machine.
 */
const PROBE = `import { readFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { defineExtension, defineSlashCommand } from "mortise/extension";
const cpu = () => Number(readFileSync("/proc/thread-self/schedstat", "utf8").split(" ")[0]) / 1e6;
const delay = monitorEventLoopDelay({ resolution: 1 });
let last = cpu();
let longest = 0;
const lag = defineSlashCommand({ name: "lag", description: "Lag", run: (ctx) => {
  ctx.output("lag " + (delay.max / 1e6).toFixed(1) + " " + longest.toFixed(1));
  delay.reset();
  longest = 0;
} });
export default defineExtension({ name: "probe", contributes: [lag], setup(scope) {
  delay.enable();
  const timer = setInterval(() => {
    const now = cpu();
    longest = Math.max(longest, now - last);
    last = now;
  }, 1);
  scope.own(() => clearInterval(timer));
} });
`;

/** Milliseconds, by the clock and in CPU time. */
interface Held {
  clock: number;
  cpu: number;
}

export interface SessionFigures {
  openMs: number;
  openHeld: Held;
  firstTurnMs: number;
  firstHeld: Held;
  turnMs: number;
  turnHeld: Held;
  /** Longest time the loop was held and microseconds a delta took, over a turn of `DELTAS` deltas. */
  streamHeld: Held;
  deltaUs: number;
  residentMiB: number;
  /** What streaming took of memory. */
  grownMiB: number;
}

const DELTAS = 5000;

/** @param window tokens of the model: small ones make the first turn compact. */
export async function measureSession(entries: number, window: number): Promise<SessionFigures> {
  const server = await startModelServer();
  const box = makeBox({
    "extensions/probe.ts": PROBE,
    "models.yml": JSON.stringify({
      providers: {
        bench: { baseUrl: server.url, api: "anthropic-messages", auth: "none", models: [{ id: "m", contextWindow: window }] },
      },
    }),
  });
  const file = box.write("big.jsonl", sessionText(entries, box.cwd));
  const host = new Host(box, ["--model", "bench/m"]);
  const lag = async () => {
    const output = host.line('"command_output"');
    host.send({ type: "prompt", message: "/lag" });
    const [, clock, cpu] = /lag ([\d.]+) ([\d.]+)/.exec(await output) ?? [];
    return { clock: Number(clock), cpu: Number(cpu) };
  };
  try {
    await host.ask("get_state");
    await host.turn("warm up");
    await lag();
    const began = now();
    await host.ask("switch_session", { sessionPath: file });
    const openMs = now() - began;
    const openHeld = await lag();
    const firstTurnMs = await host.turn("hi");
    const firstHeld = await lag();
    const next: number[] = [];
    for (let index = 0; index < 7; index++) {
      next.push(await host.turn("hi"));
      await host.ask("get_state");
    }
    const turnHeld = await lag();
    server.script.deltas = DELTAS;
    const before = residentMiB(host.pid);
    // Without what a turn costs however short its answer is.
    const deltaUs = ((await host.turn("stream")) - median(next)) * (1000 / DELTAS);
    const streamHeld = await lag();
    return {
      openMs,
      openHeld,
      firstTurnMs,
      firstHeld,
      turnMs: median(next),
      turnHeld,
      streamHeld,
      deltaUs,
      residentMiB: residentMiB(host.pid),
      grownMiB: residentMiB(host.pid) - before,
    };
  } finally {
    await host.end();
    server.close();
    box.remove();
  }
}

export const SESSION_SIZES = [100, 1000, 20_000];
/** Tokens: one holds every session here, in one the largest has to be compacted. */
export const SESSION_WINDOWS = { fits: 20_000_000, compacts: 200_000 };

export function figureOf({
  openMs,
  firstTurnMs,
  turnMs,
  deltaUs,
  residentMiB: mib,
  grownMiB,
  ...figures
}: SessionFigures): string {
  const ms = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} ms`;
  const held = [figures.openHeld, figures.firstHeld, figures.turnHeld, figures.streamHeld];
  const most = ms(Math.max(...held.map(({ clock }) => clock)));
  const cpu = ms(Math.max(...held.map((each) => each.cpu)));
  return [
    `opens in ${ms(openMs)}`,
    `first turn ${ms(firstTurnMs)}`,
    `next ${ms(turnMs)}`,
    `${deltaUs.toFixed(0)} µs a delta`,
    `loop held ${most} at most (${cpu} of CPU)`,
    `${mib.toFixed(0)} MiB, ${grownMiB.toFixed(0)} more than before the deltas`,
  ].join(", ");
}

if (process.argv[1]?.endsWith("session.ts")) {
  const sizes = process.argv.slice(2).map(Number).filter(Number.isInteger);
  for (const entries of sizes.length > 0 ? sizes : SESSION_SIZES) {
    for (const [name, window] of Object.entries(SESSION_WINDOWS)) {
      process.stdout.write(`${entries} entries, ${name}: ${figureOf(await measureSession(entries, window))}\n`);
    }
  }
}
