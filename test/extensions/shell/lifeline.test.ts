// The watcher where the system does not show the environment of processes: the groups it was told of end. What it does on Linux is
// test/cases/case-28-killed.test.ts.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it } from "vitest";
import { groupExists } from "../../../extensions/shell/_processes.ts";

/** A process that stands for the daemon: it holds two groups, lets go of one, and is killed by the test. */
const holder = `
const { Lifeline } = await import(process.argv[1]);
const lifeline = new Lifeline("none-has-this-mark.", true);
const [kept, dropped] = process.argv.slice(2).map(Number);
lifeline.hold(dropped);
lifeline.hold(kept);
lifeline.drop(dropped);
setInterval(() => {}, 1000);
process.stdout.write("held\\n");
`;

it("ends the groups that are held when the daemon's end comes, and no other", async () => {
  const start = () => spawn("sleep", ["823"], { detached: true, stdio: "ignore" });
  const [kept, dropped] = [start(), start()];
  try {
    const module = new URL("../../../extensions/shell/_lifeline.ts", import.meta.url).href;
    const args = ["--import", "tsx", "--input-type=module", "-e", holder, module, String(kept.pid), String(dropped.pid)];
    const daemon = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    await once(daemon.stdout, "data");
    const ended = once(kept, "exit");
    daemon.kill("SIGKILL");
    expect(await ended).toEqual([null, "SIGHUP"]);
    expect(groupExists(dropped.pid ?? 0)).toBe(true);
  } finally {
    for (const child of [kept, dropped]) child.kill("SIGKILL");
  }
});
