// public-bugs 13: a command that wants input gets none, in either mode, and the host's input stays the host's.
import { randomInt } from "node:crypto";
import { expect, it } from "vitest";
import { patience, useRigs } from "../builtin-tools/_built.ts";
import { processesWith } from "../support/process.ts";
import { ask, eventually, wait } from "./_support.ts";

const { open } = useRigs();

/** What waits for input would run into the time limit of 30 s. */
const LIMIT_MS = 12_000;

it.each(["rpc", "rpc-ui"] as const)("nothing can wait for a person or read frames, with %s (case 13)", patience, async (mode) => {
  const rig = await open({ mode });
  const { daemon } = rig;
  const commands: [command: string, expected: string | RegExp][] = [
    ['read -r x; echo "got:$x"', "got:"],
    ["cat", "(no output)"],
    ['cat <<E >/dev/null\nprotocol\nE\nread -r y; echo "y=$y"', "y="],
    ["python3 -c 'input(\"Proceed? \")'", /EOFError/],
    ["git clone https://127.0.0.1:9/x.git", /fatal|unable to access/i],
    ["ssh -o StrictHostKeyChecking=ask 127.0.0.1 true", /./],
    ["sudo -k; sudo true", /./],
    ["less /etc/passwd", /^root:/],
    ["git init -q . && git -c user.name=a -c user.email=a@b commit --allow-empty -q; echo rc=$?", /rc=\d/],
    ["(exec </dev/tty) 2>/dev/null && echo reachable || echo no terminal", "no terminal"],
    [`git -c credential.helper= -c core.askPass= credential fill <<< $'protocol=https\\nhost=x.test\\n'; echo rc=$?`, /rc=[1-9]/],
  ];
  for (const [index, [command, expected]] of commands.entries()) {
    const after = rig.begin(["bash", { command, timeout: 30 }]);
    await wait(daemon, "tool_execution_start", after);
    const started = performance.now();
    expect(await ask(daemon, "get_state")).toHaveProperty("isStreaming");
    await ask(daemon, "set_session_name", { name: `frame-${index}` });
    await wait(daemon, "agent_end", after);
    expect(performance.now() - started, command).toBeLessThan(LIMIT_MS);
    const [result] = rig.results(after);
    expect(result?.text, command).not.toMatch(/get_state|set_session_name|frame-\d|timed out/);
    if (typeof expected === "string") expect(result?.text, command).toBe(expected);
    else expect(result?.text, command).toMatch(expected);
  }
});

it("abort ends a command that reads (case 13)", patience, async () => {
  const rig = await open();
  const mark = randomInt(1e8);
  const command = `exec 0< <(sleep 71.${mark}); read -r x; echo "got:$x"`;
  const after = rig.begin(["bash", { command, timeout: 30 }]);
  await eventually("it waits", () => processesWith(`sleep 71.${mark}`).length === 1);
  await ask(rig.daemon, "abort");
  await wait(rig.daemon, "agent_end", after);
  expect(rig.results(after)).toMatchObject([{ isError: true, details: { cancelled: true } }]);
  await eventually("the tree has ended", () => processesWith(`sleep 71.${mark}`).length === 0);
});
