// The slash-command matrix on the built daemon, over what it advertises itself: each built-in command is completed once, as local,
// and text that is no command goes to the model as it is.
import { expect, it } from "vitest";
import { ask, prompt, textOf, useProcesses, wait } from "../../cases/_support.ts";
import type { DaemonProcess } from "../../support/process.ts";

const use = useProcesses();

interface Listed {
  name: string;
  aliases?: string[];
  source: string;
}

/** Sends it; dialogs that open are dismissed. Gives every frame up to its completion. */
async function run(daemon: DaemonProcess, id: string, message: string) {
  const after = daemon.frames.length;
  daemon.send({ id, type: "prompt", message });
  const isOver = (frame: { [field: string]: unknown }) =>
    frame["id"] === id &&
    (frame["type"] === "prompt_result" ||
      frame["success"] === false ||
      (frame["data"] as { agentInvoked?: boolean })?.agentInvoked === false);
  for (let from = after; ; ) {
    const isDialog = (frame: { type: string; [field: string]: unknown }) =>
      frame.type === "extension_ui_request" && /^(select|confirm|input|editor)$/.test(String(frame["method"]));
    const frame = await wait(daemon, (each) => isOver(each) || isDialog(each), from);
    from = daemon.frames.indexOf(frame) + 1;
    if (!isDialog(frame)) break;
    daemon.send({ type: "extension_ui_response", id: frame["id"], cancelled: true });
  }
  // Whatever came too much would be here by then.
  await ask(daemon, "get_state");
  return daemon.frames.slice(after);
}

it.each(["rpc", "rpc-ui"] as const)("every advertised built-in command, in mode %s", { timeout: 120_000 }, async (mode) => {
  const daemon = use.start({ mode });
  await wait(daemon, "available_commands_update");
  const { commands } = (await ask(daemon, "get_available_commands")) as { commands: Listed[] };
  const names = commands.filter(({ source }) => source === "builtin").flatMap(({ name, aliases = [] }) => [name, ...aliases]);
  expect(names).toEqual(
    expect.arrayContaining(["model", "models", "thinking", "compact", "export", "handoff", "jobs", "login", "help"]),
  );
  for (const [index, name] of names.entries()) {
    for (const words of ["", " zzz-nothing"]) {
      const id = `s${index}${words}`;
      const frames = await run(daemon, id, `/${name}${words}`);
      const own = frames.filter((frame) => frame["id"] === id);
      const [answer, result, ...more] = own;
      expect([name, answer?.type, answer?.["success"], more.length]).toEqual([name, "response", true, 0]);
      if (result === undefined) expect(answer?.["data"]).toEqual({ agentInvoked: false });
      else {
        expect(answer).not.toHaveProperty("data");
        expect(result).toEqual({ type: "prompt_result", id, agentInvoked: false });
      }
      const types = frames.map(({ type }) => type);
      expect([name, types.filter((type) => /^(agent_start|agent_end|extension_error)$/.test(type))]).toEqual([name, []]);
      const output = types.indexOf("command_output");
      expect([name, output >= 0, output < frames.indexOf(result ?? (answer as never))]).toEqual([name, true, true]);
    }
  }
  for (const message of ["/zzz", "/zzz with words", "/usr/bin/env node"]) {
    const frames = await prompt(daemon, message);
    const [asked] = frames.filter(({ type }) => type === "message_end").map((frame) => frame["message"]);
    expect(textOf(asked)).toBe(message);
    expect(frames.filter(({ type }) => type === "prompt_result")).toEqual([]);
  }
});
