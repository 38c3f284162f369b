// public-bugs 28 e: the daemon alone is ended by force. The watcher over its commands (extensions/shell/_lifeline.ts) does what the
// daemon cannot do any more; it is there only when a command was started, and ends with the daemon's orderly end.
import { randomInt } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type DaemonProcess, processesWith } from "../support/process.ts";
import { hasTerminal } from "../support/terminal.ts";
import { ask, eventually, isAlive, prompt, request, sessionFiles, sleep, useProcesses } from "./_support.ts";

const use = useProcesses();
const patience = { timeout: 60_000 };
/** HUP at once, TERM after half a second, KILL after two; a busy machine gets more. */
const END_LIMIT_MS = 10_000;

const call = (command: string) => `call bash ${JSON.stringify({ command })}`;

function newMark(): string {
  const mark = String(randomInt(1e8));
  // Whatever a failure leaves.
  use.later(() => {
    for (const line of processesWith(`.${mark}`)) process.kill(Number.parseInt(line, 10), "SIGKILL");
  });
  return mark;
}

/** Watchers whose input comes from the daemon. */
const watchersOf = (daemon: DaemonProcess) =>
  processesWith("mortise-lifeline").filter((line) => line.includes(`MORTISE_RUN=${daemon.child.pid}.`));
const count = (daemon: DaemonProcess) => watchersOf(daemon).length;

async function kill(daemon: DaemonProcess): Promise<void> {
  daemon.child.kill("SIGKILL");
  expect(await daemon.exited).toBe("SIGKILL");
}

describe("case 28 e: after kill -9 of the daemon", () => {
  it.each(["rpc", "rpc-ui"] as const)("a command of the model gets HUP first, in mode %s", patience, async (mode) => {
    const mark = newMark();
    const daemon = use.start({ mode });
    const told = join(daemon.home, "told");
    const script = `trap 'echo HUP >> ${told}; exit' HUP; trap 'echo TERM >> ${told}; exit' TERM; sleep 811.${mark} & wait`;
    daemon.send({ id: "p", type: "prompt", message: call(`test -t 1 && echo tty > ${told}.tty; bash -c "${script}"`) });
    await eventually("it runs", () => processesWith(`sleep 811.${mark}`).length > 1);
    await kill(daemon);
    await eventually("it ended", () => processesWith(`.${mark}`).length === 0, END_LIMIT_MS);
    // The kernel hangs up the terminal as well: it may be told twice before it has ended.
    expect(readFileSync(told, "utf8")).toMatch(/^(HUP\n)+$/);
    expect(existsSync(`${told}.tty`)).toBe(mode === "rpc" && hasTerminal);
  });

  it(
    "what ignores HUP and TERM, is stopped, left in the background, or in a session of its own, ends too",
    patience,
    async () => {
      const mark = newMark();
      const daemon = use.start();
      await prompt(
        daemon,
        call(
          `sleep 812.${mark} >/dev/null 2>&1 & setsid sleep 813.${mark} & nohup sleep 814.${mark} >/dev/null 2>&1 & echo left`,
        ),
      );
      daemon.send({ id: "b1", type: "bash", command: `trap '' HUP TERM; sleep 815.${mark}; sleep 815.${mark}` });
      daemon.send({ id: "b2", type: "bash", command: `env -i sleep 816.${mark}; true` });
      daemon.send({ id: "b3", type: "bash", command: `sleep 817.${mark} & sleep 0.3; kill -STOP $!; wait` });
      for (let n = 812; n <= 817; n++)
        await eventually(`${n} runs`, () => processesWith(`sleep ${n}.${mark}`).length > 0, 15_000);
      const watchers = watchersOf(daemon).map((line) => Number.parseInt(line, 10));
      expect(watchers).toHaveLength(1);
      await kill(daemon);
      await eventually("they ended", () => processesWith(`.${mark}`).length === 0, END_LIMIT_MS);
      await eventually("the watcher ended", () => watchers.every((pid) => !isAlive(pid)), END_LIMIT_MS);
    },
  );

  it("commands of another daemon run on", patience, async () => {
    const mark = newMark();
    const [one, other] = [use.start(), use.start()];
    one.send({ id: "b", type: "bash", command: `sleep 818.${mark}` });
    other.send({ id: "b", type: "bash", command: `sleep 819.${mark}` });
    await eventually("both run", () => [818, 819].every((n) => processesWith(`sleep ${n}.${mark}`).length > 0));
    await kill(one);
    await eventually("its command ended", () => processesWith(`sleep 818.${mark}`).length === 0, END_LIMIT_MS);
    // Longer than the watcher's last resort takes.
    await sleep(2500);
    expect(processesWith(`sleep 819.${mark}`).length).toBeGreaterThan(0);
    expect((await request(other, "abort_bash"))["success"]).toBe(true);
  });

  it("its lock and its temporary folder stay, and the next daemon takes the session over", patience, async () => {
    const mark = newMark();
    const temp = join("/tmp", `mortise-28k-${mark}`);
    mkdirSync(temp);
    use.later(() => rmSync(temp, { recursive: true, force: true }));
    const daemon = use.start({ env: { TMPDIR: temp } });
    daemon.send({ id: "p", type: "prompt", message: call(`sleep 820.${mark}`) });
    await eventually("it runs", () => processesWith(`sleep 820.${mark}`).length > 0, 15_000);
    await ask(daemon, "bash", { command: "true" });
    const [file = ""] = sessionFiles(daemon.home);
    await kill(daemon);
    await eventually("it ended", () => processesWith(`.${mark}`).length === 0, END_LIMIT_MS);
    expect(existsSync(`${file}.lock`)).toBe(true);
    expect(readdirSync(temp)).toEqual([expect.stringMatching(/^mortise-shell-/)]);
    const again = use.start({ home: daemon.home, args: ["--session", file] });
    expect((await ask(again, "get_state"))["sessionFile"]).toBe(file);
    expect(await again.end()).toBe(0);
    expect(existsSync(`${file}.lock`)).toBe(false);
  });
});

describe("the watcher", () => {
  it("is not there before the first command, is one for all of them, and ends with the daemon", patience, async () => {
    const daemon = use.start();
    await prompt(daemon, "Hello");
    expect(count(daemon)).toBe(0);
    for (const text of ["one", "two", "three"]) await ask(daemon, "bash", { command: `echo ${text}` });
    expect(count(daemon)).toBe(1);
    expect(await daemon.end()).toBe(0);
    await eventually("it ended", () => count(daemon) === 0, END_LIMIT_MS);
  });

  it("does not touch what a command left in the background while the daemon lives", patience, async () => {
    const mark = newMark();
    const daemon = use.start();
    await ask(daemon, "bash", { command: `sleep 821.${mark} >/dev/null 2>&1 &` });
    for (let n = 0; n < 3; n++) await ask(daemon, "bash", { command: "true" });
    expect(processesWith(`sleep 821.${mark}`)).toHaveLength(1);
    expect(await daemon.end()).toBe(0);
    expect(processesWith(`.${mark}`)).toEqual([]);
  });

  it("that was ended itself is started again with the next command", patience, async () => {
    const mark = newMark();
    const daemon = use.start();
    await ask(daemon, "bash", { command: "true" });
    for (const line of watchersOf(daemon)) process.kill(Number.parseInt(line, 10), "SIGKILL");
    await eventually("it is gone", () => count(daemon) === 0);
    // The daemon hears of the end while this one runs.
    await ask(daemon, "bash", { command: "true" });
    daemon.send({ id: "b", type: "bash", command: `sleep 822.${mark}` });
    await eventually("there is one", () => count(daemon) === 1 && processesWith(`sleep 822.${mark}`).length > 0, 15_000);
    await kill(daemon);
    await eventually("the command ended", () => processesWith(`.${mark}`).length === 0, END_LIMIT_MS);
  });
});
