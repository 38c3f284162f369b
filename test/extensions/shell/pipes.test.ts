// Commands over pipes on the built daemon: the shells that a nursery starts, those behind a program of their own, and what their
// stdout is.
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ask, prompt, textOf, useProcesses } from "../../cases/_support.ts";
import type { DaemonProcess } from "../../support/process.ts";

const use = useProcesses();
/** The first command starts a shell, later ones find a shell that waits. */
const ROUNDS = 4;
const byName = "echo one >/dev/stderr; echo two >/dev/stdout; echo three >/proc/self/fd/1; exit 3";

const bash = (daemon: DaemonProcess, command: string) => ask(daemon, "bash", { command });

describe.each(["rpc", "rpc-ui"] as const)("in %s", (mode) => {
  it("stdout and stderr can be opened by name, as scripts do", async () => {
    const daemon = use.start({ mode });
    for (let round = 0; round < ROUNDS; round++) {
      const { output, exitCode } = await bash(daemon, byName);
      expect([String(output).split("\n").sort(), exitCode]).toEqual([["", "one", "three", "two"], 3]);
      const frames = await prompt(daemon, `call bash ${JSON.stringify({ command: byName })}`);
      const end = frames.find((frame) => frame.type === "tool_execution_end");
      for (const word of ["one", "two", "three"]) expect(JSON.stringify(end)).toContain(word);
      expect(JSON.stringify(end)).not.toContain("No such device");
    }
  });

  it("shells that wait are like the first one, which is started when it is needed: no descriptor, trap or job more", async () => {
    const daemon = use.start({ mode });
    const command =
      'echo "$0 $# $SHLVL $- $BASH_SUBSHELL $PWD"; trap; jobs; ls -m /proc/$$/fd; ps -o pgid=,sid= -p $$ | tr -s " " "\\n" | uniq | wc -w; kill -INT $$';
    const runs: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const frames = await prompt(daemon, `call bash ${JSON.stringify({ command })}`);
      runs.push(textOf(frames.find((frame) => frame.type === "tool_execution_end")?.["result"]));
    }
    expect(runs[0]).toMatch(/^\S+ 0 \d+ \S+ 0 \//);
    expect(runs[0]).toContain("130");
    expect(runs.slice(1)).toEqual(runs.slice(0, -1));
  });

  it("so they can behind the program of the sandbox, from the first command on", async () => {
    const daemon = use.start({
      mode,
      files: {
        "config.yml": "tools:\n  sandbox: workspace-write\n",
        // Stands for bubblewrap: runs its last arguments.
        "cwd/bin/bwrap": '#!/bin/bash\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n',
      },
      env: { PATH: `/proc/self/cwd/bin:${process.env["PATH"]}` },
    });
    chmodSync(join(daemon.cwd, "bin/bwrap"), 0o755);
    const command = `${byName.replace("exit 3", "sleep 60 & exit 3")}`;
    for (let round = 0; round < ROUNDS; round++) {
      const frames = await prompt(daemon, `call bash ${JSON.stringify({ command })}`);
      const end = JSON.stringify(frames.find((frame) => frame.type === "tool_execution_end"));
      for (const word of ["one", "two", "three", "code 3", "1 process is still running"]) expect(end).toContain(word);
      expect(end).not.toContain("No such device");
    }
    expect(await daemon.end()).toBe(0);
  });

  it("commands answer when the one who waits for their end has been killed", async () => {
    const daemon = use.start({ mode });
    const command = `test $PPID = ${daemon.child.pid} && exit 0; echo before; kill -9 $PPID; sleep 0.2; echo after`;
    for (let round = 0; round < ROUNDS; round++) {
      const { output, cancelled } = await bash(daemon, command);
      expect([output === "" || output === "before\nafter\n", cancelled]).toEqual([true, false]);
      expect(await bash(daemon, "echo next")).toMatchObject({ output: "next\n", exitCode: 0 });
    }
  });

  it("a code that is told late is waited for", async () => {
    const daemon = use.start({ mode });
    const late = "(sleep 1.6; kill -CONT $PPID) >/dev/null 2>&1 & kill -STOP $PPID; exit 7";
    for (let round = 0; round < 2; round++) {
      const { exitCode } = await bash(daemon, `test $PPID = ${daemon.child.pid} && exit 7; ${late}`);
      expect(exitCode).toBe(7);
    }
  });

  it("many at once each have their own output and code", async () => {
    const daemon = use.start({ mode });
    const runs = Array.from({ length: 70 }, (_, index) => bash(daemon, `echo ${index}; exit ${index}`));
    for (const [index, answer] of (await Promise.all(runs)).entries()) {
      expect(answer).toMatchObject({ output: `${index}\n`, exitCode: index });
    }
  });
});
