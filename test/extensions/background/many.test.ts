// Many conversations of the built daemon attached and detached at random: nothing of a detached one reaches stdout, every session
// file is complete, and the memory they took comes back. 200 steps when MORTISE_SOAK is set.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import type { Frame } from "../../../protocol/frame.ts";
import { ask, eventually, SOAK, sessionFiles, sessionLines, textOf, useProcesses, wait } from "../../cases/_support.ts";
import type { DaemonProcess } from "../../support/process.ts";

const use = useProcesses();
const STEPS = SOAK ? 200 : 16;
const WORDS = SOAK ? 40 : 12;
const DELAY_MS = SOAK ? 250 : 100;
/** What a conversation that is gone may leave behind. */
const LEFT_BYTES = 40_000;
const ONCE_BYTES = 1_000_000;

/** Says how much is in use after a collection. */
const heap = `import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { defineSlashCommand } from "mortise/extension";
export default defineSlashCommand({ name: "heap", description: "Collects and measures", run(ctx) {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc");
  gc(); gc();
  ctx.output(String(process.memoryUsage().heapUsed));
} });
`;

async function heapUsed(daemon: DaemonProcess): Promise<number> {
  const after = daemon.frames.length;
  daemon.send({ id: `heap-${after}`, type: "prompt", message: "/heap" });
  const output = await wait(daemon, "command_output", after);
  return Number(output["text"]);
}

/** The host's side: which conversation it drives, and from which frame on. */
class Host {
  readonly attachedFrom: { at: number; marker: string }[] = [];
  readonly #daemon: DaemonProcess;
  readonly #markers = new Map<string, string>();
  #count = 0;

  constructor(daemon: DaemonProcess) {
    this.#daemon = daemon;
  }

  async step(choice: number): Promise<void> {
    const state = await ask(this.#daemon, "get_state");
    if (state["isStreaming"] !== true) await this.#prompt(String(state["sessionFile"]));
    const { sessions } = (await ask(this.#daemon, "get_background_sessions")) as { sessions: { sessionFile: string }[] };
    const target = sessions[choice % Math.max(1, sessions.length)];
    if (choice < 50 || target === undefined) await this.leave();
    else {
      await ask(this.#daemon, "switch_session", { sessionPath: target.sessionFile });
      this.#attach(this.#markers.get(target.sessionFile) ?? "");
    }
  }

  /** Turns to a new session. */
  async leave(): Promise<void> {
    await ask(this.#daemon, "new_session", { background: true });
    this.#attach("");
  }

  /** Frames that hold the text of a conversation which the host did not drive when they came. */
  strays(): string[] {
    return this.#daemon.frames.flatMap((frame: Frame, at) => {
      const marker = frame.type === "response" ? undefined : /<(c\d+)-/.exec(JSON.stringify(frame))?.[1];
      if (marker === undefined) return [];
      const now = this.attachedFrom.findLast((each) => each.at <= at)?.marker;
      // It changes hands a moment before the response says so.
      const next = this.attachedFrom.find((each) => each.at > at)?.marker;
      return marker === now || marker === next ? [] : [`${frame.type} of ${marker} while ${now} was attached`];
    });
  }

  #attach(marker: string): void {
    this.attachedFrom.push({ at: this.#daemon.frames.length, marker });
  }

  async #prompt(file: string): Promise<void> {
    const marker = this.#markers.get(file) ?? `c${++this.#count}`;
    this.#markers.set(file, marker);
    this.#attach(marker);
    const after = this.#daemon.frames.length;
    const words = Array.from({ length: WORDS }, (_, index) => `<${marker}-${index}>`);
    await ask(this.#daemon, "prompt", { message: `delay ${DELAY_MS}\n${words.join(" ")}` });
    await wait(this.#daemon, "message_update", after);
  }
}

/** Locks of sessions that are open. */
const locks = (daemon: DaemonProcess) =>
  readdirSync(join(daemon.home, "sessions"), { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".lock"));

async function round(daemon: DaemonProcess, host: Host, choices: readonly number[]): Promise<void> {
  const from = new Set(sessionFilesOf(daemon));
  for (const choice of choices) await host.step(choice);
  await host.leave();
  for (let busy = true; busy; ) busy = ((await ask(daemon, "get_background_sessions"))["sessions"] as unknown[]).length > 0;
  await eventually("no session is open but the one that is driven", () => locks(daemon).length <= 1);
  expect(host.strays()).toEqual([]);
  const files = sessionFilesOf(daemon).filter((file) => !from.has(file));
  expect(files.length).toBeGreaterThan(choices.length / 4);
  for (const file of files) {
    const messages = sessionLines(file).flatMap((line) => (line["type"] === "message" ? [line["message"]] : []));
    expect(messages.length % 2).toBe(0);
    for (let at = 0; at < messages.length; at += 2) {
      const [asked, answered] = [messages[at], messages[at + 1]] as { role: string; stopReason?: string }[];
      expect(answered).toMatchObject({ role: "assistant", stopReason: "stop" });
      expect(textOf(asked)).toContain(textOf(answered).trim());
      expect(textOf(answered)).toContain(`-${WORDS - 1}>`);
    }
  }
}

function sessionFilesOf(daemon: DaemonProcess): string[] {
  try {
    return sessionFiles(daemon.home);
  } catch {
    // No session has been kept yet.
    return [];
  }
}

it(`${STEPS} conversations attached and detached at random`, { timeout: 600_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(99), { minLength: STEPS, maxLength: STEPS }), async (choices) => {
      const config = "session:\n  backgroundLimit: 1000\n";
      const daemon = use.start({ files: { "config.yml": config, "extensions/heap.ts": heap } });
      await wait(daemon, (frame) => frame.type === "available_commands_update" && JSON.stringify(frame).includes('"heap"'));
      const host = new Host(daemon);
      await round(daemon, host, choices.slice(0, 10));
      const before = await heapUsed(daemon);
      await round(daemon, host, choices);
      const left = (await heapUsed(daemon)) - before;
      if (SOAK) console.log(`${STEPS} steps left ${Math.round(left / 1024)} KiB`);
      // What the process keeps once, whatever the number, is no leak.
      expect(left).toBeLessThan(LEFT_BYTES * STEPS + ONCE_BYTES);
      expect(await daemon.end()).toBe(0);
    }),
    { numRuns: 1, endOnFailure: true },
  );
});
