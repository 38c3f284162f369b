// public-bugs 15: no change of a file is lost, whoever makes it and whenever the daemon dies.
import {
  appendFileSync,
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  watch,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { patience, useRigs } from "../builtin-tools/_built.ts";
import { ROOT } from "../support/process.ts";
import { SOAK, wait } from "./_support.ts";

const { open } = useRigs();
const numbers = Array.from({ length: 100 }, (_, index) => `${index + 1}\n`).join("");

it("three edits of one message, under three names, are all on disk (case 15 A)", patience, async () => {
  const { daemon, turn } = await open({ files: { "cwd/nums.txt": numbers, "cwd/sub/x": "" } });
  symlinkSync("nums.txt", join(daemon.cwd, "link.txt"));
  const results = await turn(
    ["edit", { path: "nums.txt", oldText: "\n12\n", newText: "\ntwelve\n" }],
    ["edit", { path: "./sub/../nums.txt", oldText: "\n34\n", newText: "\nthirty-four\n" }],
    ["edit", { path: "link.txt", oldText: "\n56\n", newText: "\nfifty-six\n" }],
  );
  expect(results.map((result) => [result.isError, result.text])).toEqual(results.map(() => [false, expect.any(String)]));
  const expected = numbers
    .replace("\n12\n", "\ntwelve\n")
    .replace("\n34\n", "\nthirty-four\n")
    .replace("\n56\n", "\nfifty-six\n");
  expect(readFileSync(join(daemon.cwd, "nums.txt"), "utf8")).toBe(expected);
});

it.runIf(existsSync(join(ROOT, "builtin-tools/task.ts")))(
  "two subagents with fifty edits each of one file lose none (case 15 B)",
  patience,
  async () => {
    const lines = Array.from({ length: 101 }, (_, index) => `line ${index} here\n`).join("");
    const rig = await open({ files: { "cwd/shared.txt": lines, "config.yml": "async:\n  enabled: false\n" } });
    const { daemon, fake } = rig;
    let serial = 0;
    fake.otherwise((request) => {
      const body = request.body as { messages: { role: string; content: unknown }[]; tools?: { name: string }[] };
      const text = JSON.stringify(body.messages);
      const part = /EVEN NUMBERS/.test(text) && /ODD NUMBERS/.test(text) ? "parent" : /EVEN NUMBERS/.test(text) ? 0 : 1;
      const id = () => `toolu_sub_${++serial}`;
      if (part === "parent") return { text: "Both are done" };
      const done = text.split('"tool_result"').length - 1;
      if (done < 50) {
        const number = 2 * done + part;
        const args = { path: "shared.txt", oldText: `line ${number} here`, newText: `line ${number} done` };
        return { toolCalls: [{ id: id(), name: "edit", arguments: args }] };
      }
      const yields = body.tools?.some((tool) => tool.name === "yield") === true && done === 50;
      return yields ? { toolCalls: [{ id: id(), name: "yield", arguments: { result: { data: "ready" } } }] } : { text: "ready" };
    });
    const tasks = [
      { name: "Even", task: "EVEN NUMBERS" },
      { name: "Odd", task: "ODD NUMBERS" },
    ];
    fake.script({ toolCalls: [{ id: "toolu_parent", name: "task", arguments: { context: "Edit shared.txt", tasks } }] });
    const after = daemon.frames.length;
    daemon.send({ type: "prompt", message: "Change all lines" });
    await wait(daemon, "agent_end", after);
    expect(readFileSync(join(daemon.cwd, "shared.txt"), "utf8")).toBe(
      lines.replaceAll(" here", " done").replace("line 100 done", "line 100 here"),
    );
  },
);

it("changes from outside survive an edit, stop a stale one, and are named by write (case 15 C)", patience, async () => {
  const { daemon, call } = await open({ files: { "cwd/nums.txt": numbers } });
  const file = join(daemon.cwd, "nums.txt");
  await call("read", { path: "nums.txt" });
  appendFileSync(file, "101\n");
  writeFileSync(file, readFileSync(file, "utf8").replace("\n10\n", "\nten from outside\n"));
  expect(await call("edit", { path: "nums.txt", oldText: "\n60\n", newText: "\nsixty\n" })).toMatchObject({ isError: false });
  const between = numbers.replace("\n10\n", "\nten from outside\n").replace("\n60\n", "\nsixty\n");
  expect(readFileSync(file, "utf8")).toBe(`${between}101\n`);
  const stale = await call("edit", { path: "nums.txt", oldText: "\n9\n10\n11\n", newText: "\n9\nX\n11\n" });
  expect(stale).toMatchObject({ isError: true, text: expect.stringMatching(/not found|does not (occur|stand)|no match/i) });
  expect(readFileSync(file, "utf8")).toBe(`${between}101\n`);
  const written = await call("write", { path: "nums.txt", content: numbers });
  expect(written).toMatchObject({ isError: false, details: { changedSinceRead: true } });
  expect(written.text).toContain("Warning: the file had changed since it was read");
});

it("a kill in the middle of a write leaves the old or the new file, whole (case 15 D)", patience, async () => {
  const size = 20 * 1024 * 1024;
  const rounds = SOAK ? 10 : 2;
  for (let round = 0; round < rounds; round++) {
    const old = `${"o".repeat(size - 1)}\n`;
    const { daemon, begin } = await open({ files: { "cwd/big.txt": old } });
    const file = join(daemon.cwd, "big.txt");
    chmodSync(file, 0o640);
    // The first sign of the new file, at a different moment each round.
    const seen = new Promise<void>((resolve) => {
      const watcher = watch(daemon.cwd, () => {
        watcher.close();
        setTimeout(resolve, round);
      });
    });
    begin(["write", { path: "big.txt", content: `${"n".repeat(size - 1)}\n` }]);
    await seen;
    daemon.child.kill("SIGKILL");
    await daemon.exited;
    const content = readFileSync(file, "utf8");
    expect(content.length).toBe(size);
    expect(["o", "n"]).toContain(content[0]);
    expect(content === `${content[0]?.repeat(size - 1)}\n`).toBe(true);
    expect(statSync(file).mode & 0o7777).toBe(0o640);
    for (const name of readdirSync(daemon.cwd)) expect(name).toMatch(/^(big\.txt|\.[0-9a-f]{16}\.mortise-tmp)$/);
  }
});
