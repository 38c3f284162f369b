// Subagents with a working tree of their own (agent.isolation.*).
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { TestDaemon } from "../../../core/testing.ts";
import { calls, noneLeft, type Play, says, spawns, start, taskResults } from "./_start.ts";

let daemon: TestDaemon | undefined;
let repo: string;
const git = (...args: string[]) =>
  execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@t", ...args], { cwd: repo, encoding: "utf8" });

beforeEach(() => {
  repo = realpathSync(mkdtempSync(join(tmpdir(), "mortise-repo-")));
  git("init", "--quiet", "--initial-branch=main");
  mkdirSync(join(repo, "sub"));
  writeFileSync(join(repo, "kept.txt"), "one\ntwo\nthree\n");
  writeFileSync(join(repo, "sub", "deep.txt"), "deep\n");
  git("add", "--all");
  git("commit", "--quiet", "-m", "start");
});
afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
  rmSync(repo, { recursive: true, force: true });
});

/** Every child runs the shell command that is its task. */
const shell =
  (...tasks: Record<string, unknown>[]): Play =>
  ({ told, turn }) => {
    if (turn > 0) return says("done");
    return told === "Go" ? spawns("c1", ...tasks) : calls({ id: `b-${told.slice(0, 8)}`, name: "bash", args: { command: told } });
  };

async function run(config: string, play: Play, cwd = repo) {
  const started = await start(play, { cwd, files: { "config.yml": config } });
  daemon = started.daemon;
  const [result] = taskResults(await daemon.prompt("Go"));
  await noneLeft(daemon);
  return result;
}
const leftovers = () => git("worktree", "list").trim().split("\n").length - 1;
const read = (path: string) => readFileSync(join(repo, path), "utf8");

describe("isolated subagents", () => {
  it("see uncommitted work, and their changes come back as a patch to the files alone", async () => {
    writeFileSync(join(repo, "kept.txt"), "one\nTWO\nthree\n");
    writeFileSync(join(repo, "grüße.txt"), "untracked\n");
    const result = await run(
      "agent:\n  isolation:\n    mode: auto\n",
      shell(
        { task: "grep -q TWO kept.txt && cat grüße.txt && printf 'four\\n' >> kept.txt && pwd" },
        { task: "printf '\\000\\377bin' > new.bin && rm sub/deep.txt" },
      ),
    );
    expect(result?.details.results.map(({ exitCode, patchPath }) => [exitCode, patchPath])).toEqual([
      [0, undefined],
      [0, undefined],
    ]);
    expect(read("kept.txt")).toBe("one\nTWO\nthree\nfour\n");
    expect([...readFileSync(join(repo, "new.bin"))]).toEqual([0, 255, 98, 105, 110]);
    expect(existsSync(join(repo, "sub/deep.txt"))).toBe(false);
    expect(git("diff", "--cached", "--name-only")).toBe("");
    expect(git("log", "--oneline").trim().split("\n")).toHaveLength(1);
    expect(leftovers()).toBe(0);
  });

  it("keep a patch that does not apply, and say where", async () => {
    const result = await run(
      "agent:\n  isolation:\n    mode: auto\n",
      shell({ task: "sed -i s/two/left/ kept.txt" }, { task: "sleep 0.2; sed -i s/two/right/ kept.txt" }),
    );
    expect(read("kept.txt")).toMatch(/^one\n(left|right)\nthree\n$/);
    const kept = result?.details.results.filter(({ patchPath }) => patchPath !== undefined) ?? [];
    expect(kept).toHaveLength(1);
    expect(kept[0]?.output).toContain("could not be applied");
    expect(readFileSync(String(kept[0]?.patchPath), "utf8")).toContain("-two");
  });

  it("come back as a commit with agent.isolation.merge: branch; a conflict keeps the branch", async () => {
    const result = await run(
      "agent:\n  isolation:\n    mode: auto\n    merge: branch\n",
      shell(
        { task: "sed -i s/two/left/ kept.txt", description: "Go left" },
        { task: "sleep 0.2; sed -i s/two/right/ kept.txt", description: "Go right" },
      ),
    );
    const branches = result?.details.results.map(({ branchName }) => branchName).filter((name) => name !== undefined) ?? [];
    expect(branches).toHaveLength(1);
    expect(git("log", "--format=%s").trim()).toMatch(/^Go (left|right)\nstart$/);
    expect(git("branch", "--list", "mortise/*").trim()).toBe(branches[0]);
    expect(git("status", "--porcelain")).toBe("");
    expect(leftovers()).toBe(0);
  });

  it("that are aborted leave no tree behind, apply nothing and keep what they had changed as a patch", async () => {
    const play = shell({ task: "echo half >> kept.txt; echo ready; sleep 60" });
    const { daemon: d } = await start(play, { cwd: repo, files: { "config.yml": "agent:\n  isolation:\n    mode: auto\n" } });
    daemon = d;
    await d.ask("set_subagent_subscription", { level: "events" });
    const run = d.prompt("Go");
    await d.next((frame) => JSON.stringify(frame).includes("ready\\"), { timeoutMs: 15_000 });
    const file = String((await d.ask("get_state"))["sessionFile"]);
    await d.ask("abort");
    await run;
    await noneLeft(d);
    await d.daemon.close("ended");
    expect(leftovers()).toBe(0);
    expect(read("kept.txt")).toBe("one\ntwo\nthree\n");
    const [patch] = readdirSync(file.replace(/\.jsonl$/, "")).filter((name) => name.includes("patch"));
    expect(readFileSync(join(file.replace(/\.jsonl$/, ""), String(patch)), "utf8")).toContain("+half");
  });

  it("work in the same place of the tree as their parent, and only where it was asked for", async () => {
    const play = shell({ task: "pwd > where.txt", isolated: true }, { task: "pwd > direct.txt", isolated: false });
    const result = await run("", play, join(repo, "sub"));
    expect(result?.details.results.map(({ exitCode }) => exitCode)).toEqual([0, 0]);
    expect(read("sub/where.txt")).toMatch(/mortise-worktree-\w+\/tree\/sub\n$/);
    expect(read("sub/direct.txt")).toBe(`${join(repo, "sub")}\n`);
  });

  it("fail with a reason outside of a repository", async () => {
    const outside = realpathSync(mkdtempSync(join(tmpdir(), "mortise-outside-")));
    try {
      const result = await run("agent:\n  isolation:\n    mode: auto\n", shell({ task: "touch x" }), outside);
      expect(result?.details.results[0]).toMatchObject({
        exitCode: 1,
        error: expect.stringContaining("is in no git repository"),
      });
      expect(readdirSync(outside)).toEqual([]);
    } finally {
      await daemon?.stop();
      daemon = undefined;
      rmSync(outside, { recursive: true, force: true });
    }
  });
});
