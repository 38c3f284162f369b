// public-bugs 14: values of search tools never become flags, and no shell sees them.
import { chmodSync, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Call, patience, useRigs } from "../builtin-tools/_built.ts";

const { open } = useRigs();
const files = {
  "cwd/p.sh": '#!/bin/sh\ntouch "$(dirname "$0")/RAN"\ncat "$1"\n',
  "cwd/a.txt": "--pre=./p.sh\n-needle\n--version\nx\n",
};

it("finds texts that look like flags and runs nothing (case 14)", patience, async () => {
  const { daemon, turn, call } = await open({ files });
  const script = join(daemon.cwd, "p.sh");
  chmodSync(script, 0o755);
  const texts = async (...calls: Call[]) => (await turn(...calls)).map((result) => result.text);

  expect(await call("grep", { pattern: "--pre=./p.sh" })).toMatchObject({ isError: false, text: "a.txt:1: --pre=./p.sh" });
  expect(
    await texts(
      ["grep", { pattern: `--pre=${script}` }],
      ["grep", { pattern: "-needle" }],
      ["grep", { pattern: "--version" }],
      ["grep", { pattern: "-f/etc/passwd" }],
      ["grep", { pattern: "--" }],
      ["grep", { pattern: "x", glob: "--pre=./p.sh" }],
    ),
  ).toEqual([
    "No matches",
    "a.txt:2: -needle",
    "a.txt:3: --version",
    "No matches",
    "a.txt:1: --pre=./p.sh\na.txt:3: --version",
    "No matches",
  ]);
  const missing = await turn(
    ["grep", { pattern: "x", path: "--pre=./p.sh" }],
    ["find", { pattern: "*", path: "-L" }],
    ["ls", { path: "--all" }],
    ["read", { path: "-rf" }],
  );
  for (const result of missing)
    expect(result, result.name).toMatchObject({ isError: true, text: expect.stringMatching(/not (exist|found)|no such/i) });
  for (const pattern of ["-delete", "-exec", "-fprint=RAN"]) {
    expect(await call("find", { pattern })).toMatchObject({
      isError: false,
      text: expect.stringContaining(`Nothing matches ${pattern}`),
    });
  }
  expect(readdirSync(daemon.cwd).sort()).toEqual(["a.txt", "p.sh"]);
  expect(existsSync(join(daemon.cwd, "RAN"))).toBe(false);
});

it("takes patterns with line breaks and refuses broken and endless ones (case 14)", patience, async () => {
  const { daemon, call } = await open({ files });
  expect(await call("grep", { pattern: "-needle\n--version" })).toMatchObject({
    isError: false,
    text: expect.stringContaining("a.txt:2: -needle"),
  });
  expect(await call("grep", { pattern: "(" })).toMatchObject({
    isError: true,
    text: expect.stringMatching(/^Cannot search: .*regex/s),
  });
  const long = await call("grep", { pattern: "a".repeat(200_000) });
  expect(long).toMatchObject({
    isError: true,
    text: "Cannot search: pattern is 200000 characters long; at most 20000 are possible",
  });
  expect(await call("find", { pattern: "b".repeat(200_000) })).toMatchObject({ isError: true });
  expect(await call("grep", { pattern: "$(touch RAN); `touch RAN`", literal: true })).toMatchObject({ text: "No matches" });
  expect(readdirSync(daemon.cwd).sort()).toEqual(["a.txt", "p.sh"]);
});
