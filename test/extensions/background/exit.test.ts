// The built daemon ends while conversations stream in the background: they may finish for five seconds, after a signal as well as
// after the end of input; a second signal leaves four, a third none (docs/runtime.md "Shutdown").
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ask, sessionLines, sleep, useProcesses, wait } from "../../cases/_support.ts";
import type { FakeReply } from "../../support/fake-provider.ts";
import type { DaemonProcess } from "../../support/process.ts";

const use = useProcesses();
const patience = { timeout: 60_000 };
/** 5 s by the seed; what comes behind (hooks, open connections, a busy machine) gets a few more. */
const GRACE_MS = 5000;
const endings = [
  ["the end of input", 0, (daemon: DaemonProcess) => daemon.child.stdin?.end()],
  ["SIGTERM", 143, (daemon: DaemonProcess) => daemon.child.kill("SIGTERM")],
  ["SIGINT", 130, (daemon: DaemonProcess) => daemon.child.kill("SIGINT")],
  ["SIGHUP", 129, (daemon: DaemonProcess) => daemon.child.kill("SIGHUP")],
] as const;

/** A daemon whose first conversation streams in the background. */
async function detached(reply: FakeReply) {
  const service = await use.service();
  service.otherwise(reply);
  const daemon = use.start(service.daemon);
  await wait(daemon, "available_commands_update");
  daemon.send({ id: "p", type: "prompt", message: "Go on" });
  await wait(daemon, "message_update");
  const { background } = (await ask(daemon, "new_session", { background: true })) as { background: { sessionFile: string } };
  return { daemon, file: background.sessionFile, from: daemon.frames.length };
}

function lastAnswer(file: string) {
  const messages = sessionLines(file).flatMap((line) => (line["type"] === "message" ? [line["message"]] : []));
  return messages.at(-1) as { role: string; stopReason: string; content: unknown };
}

describe("a turn that goes on in the background", () => {
  it.each(endings)("finishes within the grace after %s", patience, async (_name, code, end) => {
    let finish: () => void = () => {};
    const hold = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const { daemon, file, from } = await detached({ text: ["half ", "and the last words"], hold, holdAfter: 2 });
    end(daemon);
    // It goes on while the daemon is ending already.
    await sleep(500);
    expect(daemon.child.exitCode).toBe(null);
    finish();
    expect(await daemon.exited).toBe(code);
    expect(lastAnswer(file)).toMatchObject({ role: "assistant", stopReason: "stop" });
    expect(readFileSync(file, "utf8")).toContain("and the last words");
    expect(daemon.frames.slice(from).filter(({ type }) => /^(agent|turn|message)_/.test(type))).toEqual([]);
  });

  it("is stopped after five seconds, and its session is whole", patience, async () => {
    const forever: FakeReply = { text: ["half ", "never"], hold: new Promise(() => {}), holdAfter: 2 };
    const runs = endings.slice(0, 2).map(async ([, code, end]) => {
      const { daemon, file } = await detached(forever);
      const began = performance.now();
      end(daemon);
      expect(await daemon.exited).toBe(code);
      const took = performance.now() - began;
      expect(took).toBeGreaterThan(GRACE_MS - 200);
      expect(took).toBeLessThan(GRACE_MS + 4000);
      expect(lastAnswer(file)).toMatchObject({ role: "assistant", stopReason: "aborted" });
      expect(readFileSync(file, "utf8")).toContain("half ");
    });
    await Promise.all(runs);
  });

  it("has four seconds at most after a second signal, and none after a third", patience, async () => {
    const forever: FakeReply = { text: ["half ", "never"], hold: new Promise(() => {}), holdAfter: 2 };
    const { daemon } = await detached(forever);
    daemon.child.kill("SIGTERM");
    await sleep(100);
    daemon.child.kill("SIGTERM");
    await sleep(500);
    expect(daemon.child.exitCode).toBe(null);
    const third = performance.now();
    daemon.child.kill("SIGTERM");
    expect(await daemon.exited).toBe(143);
    expect(performance.now() - third).toBeLessThan(2000);

    const { daemon: other } = await detached(forever);
    const first = performance.now();
    other.child.kill("SIGINT");
    await sleep(100);
    other.child.kill("SIGINT");
    expect(await other.exited).toBe(130);
    const took = performance.now() - first;
    expect(took).toBeGreaterThan(3900);
    expect(took).toBeLessThan(GRACE_MS + 2000);
  });
});
