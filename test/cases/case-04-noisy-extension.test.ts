// public-bugs 4, agent-semantics 12.8: whatever an extension prints, stdout carries frames and nothing else.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { collect } from "../../docs/collect.ts";
import { ask, useProcesses, wait } from "./_support.ts";

const { start, service } = useProcesses();

const noisy = `
import { execSync, spawnSync } from "node:child_process";
import { appendFileSync, writeSync } from "node:fs";
import { join } from "node:path";
const log = join(process.env.MORTISE_HOME, "calls.txt");
function noise(from) {
  console.log("plain " + from); console.info("info"); console.table([{ a: 1 }]);
  const answer = process.stdout.write("\\x1b]9;ready\\x07", () => appendFileSync(log, from + " callback\\n"));
  appendFileSync(log, from + " " + typeof answer + "\\n");
  writeSync(1, "raw without newline");
  execSync("echo from-child " + from, { stdio: "inherit" });
  spawnSync("sh", ["-c", "echo from-sync-child"], { stdio: ["ignore", 1, 2] });
}
noise("load");
export default function (pi) {
  let timer;
  let dots = 0;
  pi.on("agent_start", () => { noise("agent_start"); timer = setInterval(() => { dots++; process.stdout.write("."); }, 1); });
  pi.on("agent_end", () => { clearInterval(timer); appendFileSync(log, "dots " + dots + "\\n"); noise("agent_end"); });
}
`;

it.each(["rpc", "rpc-ui"] as const)(
  "keeps stdout parsable while an extension prints at load, on events and on a timer, with %s (case 4, item 8)",
  async (mode) => {
    const fake = await service();
    fake.script({ text: Array.from({ length: 500 }, (_, index) => `word ${index} `), delayMs: 1 });
    const daemon = start({ ...fake.daemon, mode, files: { "extensions/noisy.ts": noisy } });
    daemon.send({ id: "n1", type: "prompt", message: "hi" });
    await wait(daemon, "agent_end");
    // Handlers of the event run after its frame; the last thing they print is in the log when this is answered.
    await ask(daemon, "get_state");
    expect(await daemon.end()).toBe(0);

    const known = new Set<unknown>([
      "response",
      "extension_ui_request",
      ...collect("event").map(({ definition }) => definition.name),
    ]);
    const lines = daemon.stdout().split("\n");
    expect(lines.pop()).toBe("");
    for (const line of lines) expect(known).toContain((JSON.parse(line) as { type: unknown }).type);
    expect(daemon.frames[0]?.type).toBe("ready");
    expect(daemon.frames.filter((frame) => frame.type === "agent_end")).toHaveLength(1);
    expect(
      daemon.frames.filter((frame) => frame.type === "extension_error" && String(frame["extensionPath"]).includes("noisy")),
    ).toEqual([]);

    const logs = join(daemon.home, "logs");
    const logged = readdirSync(logs).map((name) => readFileSync(join(logs, name), "utf8"));
    const elsewhere = daemon.stderr() + logged.join("");
    for (const text of ["info", "(index)", "9;ready", "raw without newline", "from-sync-child"])
      expect(elsewhere).toContain(text);
    const calls = readFileSync(join(daemon.home, "calls.txt"), "utf8");
    for (const from of ["load", "agent_start", "agent_end"]) {
      expect(elsewhere).toContain(`plain ${from}`);
      expect(elsewhere).toContain(`from-child ${from}`);
      expect(calls).toContain(`${from} boolean`);
      expect(calls).toContain(`${from} callback`);
    }
    // The timer ran while the answer streamed, and none of its dots is lost.
    const dots = Number(/^dots (\d+)$/m.exec(calls)?.[1]);
    expect(dots).toBeGreaterThan(20);
    expect(elsewhere.match(/\./g)?.length).toBeGreaterThanOrEqual(dots);
  },
);
