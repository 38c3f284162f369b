// Every measurement in one run, printed as a Markdown table: `npm run bench`, `npm run bench -- start stream` for some of them.
// Figures are ratios against bare Node and against aims; a shared machine makes absolute times worthless.
import { availableParallelism, loadavg, totalmem } from "node:os";
import {
  bareMemory,
  bareNode,
  cpuSeconds,
  Host,
  makeBox,
  median,
  now,
  quantile,
  residentMiB,
  startModelServer,
} from "./_driver.ts";
import { extensions, kept, saves } from "./reload.ts";
import { figureOf, measureSession, SESSION_SIZES, SESSION_WINDOWS } from "./session.ts";

interface Row {
  what: string;
  figure: string;
  aim: string;
}

const rows: Row[] = [];
const wanted = process.argv.slice(2);
const runs = wanted.length === 0 || wanted.includes("all") ? undefined : new Set(wanted);
const add = (what: string, figure: string, aim: string) => {
  rows.push({ what, figure, aim });
  process.stderr.write(`${what}: ${figure}\n`);
};
const ms = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} ms`;

const OFFLINE = ["--model", "offline/echo", "--no-session"];

async function start(): Promise<void> {
  const box = makeBox();
  const bare: number[] = [];
  const ready: number[] = [];
  const state: number[] = [];
  const memory: number[] = [];
  for (let index = 0; index < 9; index++) {
    bare.push(await bareNode());
    const host = new Host(box, OFFLINE);
    const first = host.line('"type":"ready"').then(() => ready.push(now() - host.startedAt));
    const answer = host.ask("get_state").then(() => state.push(now() - host.startedAt));
    await Promise.all([first, answer]);
    if (index < 3) {
      await new Promise((resolve) => setTimeout(resolve, 1000));
      memory.push(residentMiB(host.pid));
    }
    await host.end();
  }
  const base = median(bare);
  add("bare `node`, first line", ms(base), "");
  add("spawn → `ready`", `${ms(median(ready))} (bare + ${(median(ready) - base).toFixed(0)})`, "bare + 20 ms");
  add(
    "spawn → answer of the first `get_state`",
    `${ms(median(state))} (bare + ${(median(state) - base).toFixed(0)})`,
    "bare + 100 ms",
  );
  const rest = await bareMemory();
  add(
    "memory at rest",
    `${median(memory).toFixed(0)} MiB (bare ${rest.toFixed(0)} + ${(median(memory) - rest).toFixed(0)})`,
    "bare + 35 MiB",
  );
  box.remove();
}

async function withModel(
  files: Record<string, string>,
  run: (host: Host, server: Awaited<ReturnType<typeof startModelServer>>) => Promise<void>,
) {
  const server = await startModelServer();
  const box = makeBox(files);
  const host = new Host(box, ["--model", "anthropic/claude-sonnet-4-5"], {
    ANTHROPIC_API_KEY: "sk-bench",
    ANTHROPIC_BASE_URL: server.url,
  });
  await host.ask("get_state");
  try {
    await run(host, server);
  } finally {
    await host.end();
    server.close();
    box.remove();
  }
}

async function turns(): Promise<void> {
  await withModel({}, async (host) => {
    for (let index = 0; index < 5; index++) await host.turn("warm up");
    const one: number[] = [];
    for (let index = 0; index < 60; index++) one.push(await host.turn("hi"));
    add(
      "one-delta turn, prompt → `agent_end`",
      `${ms(median(one))} p50, ${ms(quantile(one, 0.95))} p95`,
      "<= 0.6 x best peer (6.5 ms quiet)",
    );
  });
  await withModel({}, async (host, server) => {
    server.script.call = { command: "true" };
    for (let index = 0; index < 5; index++) await host.turn("warm up");
    const tool: number[] = [];
    for (let index = 0; index < 40; index++) tool.push(await host.turn("run it"));
    add("tool turn (`bash true`, PTY)", `${ms(median(tool))} p50`, "<= 0.5 x best peer (19 ms quiet)");
  });
  await withModel({}, async (host) => {
    await host.ask("bash", { command: "true" });
    const bash: number[] = [];
    for (let index = 0; index < 60; index++) {
      const began = now();
      await host.ask("bash", { command: "true" });
      bash.push(now() - began);
    }
    add("RPC `bash true`", `${ms(median(bash))} p50`, "<= 3 ms p50");
  });
}

async function state(): Promise<void> {
  await withModel({}, async (host) => {
    const count = 20_000;
    let bytes = 0;
    for (let round = 0; round < 2; round++) {
      const before = host.bytes;
      const last = host.line(`"id":"s${round}-${count - 1}"`);
      const began = now();
      for (let index = 0; index < count; index++) host.send({ id: `s${round}-${index}`, type: "get_state" });
      await last;
      const took = now() - began;
      bytes = (host.bytes - before) / count;
      if (round === 1)
        add(
          "`get_state`, pipelined",
          `${Math.round((count / took) * 1000).toLocaleString("en")}/s at ${(bytes / 1024).toFixed(1)} kB`,
          ">= 15,000/s",
        );
    }
  });
}

async function stream(): Promise<void> {
  for (const mode of ["full", "delta"] as const) {
    for (const deltas of [5000, 20_000]) {
      await withModel({}, async (host, server) => {
        await host.ask("set_message_updates", { mode });
        await host.turn("warm up");
        server.script.deltas = deltas;
        server.script.text = "twenty characters!! ";
        const bytes = host.bytes;
        const cpu = cpuSeconds(host.pid);
        const took = await host.turn("stream");
        const perByte = (host.bytes - bytes) / (deltas * server.script.text.length);
        const figure = `${Math.round((deltas / took) * 1000).toLocaleString("en")}/s, ${perByte.toFixed(1)} bytes a byte of text, ${(cpuSeconds(host.pid) - cpu).toFixed(2)} s CPU, ${residentMiB(host.pid).toFixed(0)} MiB`;
        add(
          `${deltas.toLocaleString("en")} deltas, ${mode} updates`,
          figure,
          mode === "full" ? ">= 20,000/s, <= 100 bytes" : ">= 20,000/s, <= 8 bytes",
        );
      });
    }
  }
}

async function session(): Promise<void> {
  for (const entries of SESSION_SIZES) {
    for (const [name, window] of Object.entries(SESSION_WINDOWS)) {
      add(
        `session of ${entries.toLocaleString("en")} entries, ${name === "fits" ? "window for all of it" : "window of 200,000"}`,
        figureOf(await measureSession(entries, window)),
        entries === 20_000 ? "opens <= 500 ms, turn <= 50 ms, loop <= 50 ms" : "",
      );
    }
  }
}

const all: Record<string, () => Promise<void>> = {
  start,
  extensions: () => extensions(add),
  turns,
  state,
  stream,
  session,
  reload: async () => {
    await saves(add);
    await kept(add);
  },
};
process.stderr.write(
  `${availableParallelism()} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, load ${loadavg()[0]?.toFixed(1)}, Node ${process.version}\n`,
);
for (const [name, run] of Object.entries(all)) if (runs === undefined || runs.has(name)) await run();
console.log(
  `| what | mortise | aim |\n|---|---|---|\n${rows.map((row) => `| ${row.what} | ${row.figure} | ${row.aim} |`).join("\n")}`,
);
console.log(
  `\n${new Date().toISOString().slice(0, 10)}, Node ${process.version}, ${availableParallelism()} cores shared; \`npm run bench\`.`,
);
