// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of shells
// How rules read shell commands: what allows must never be fooled, what denies rather finds too much.

import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { matchesCommand, possibleCommands, simpleCommands, wildcard } from "../../../extensions/approval/_commands.ts";
import { covers, findTouching, rulesOf, type ToolCall } from "../../../extensions/approval/_rules.ts";

const SOAK = process.env["MORTISE_SOAK"] !== undefined;
const bash = (command: string): ToolCall => ({ tool: "bash", subject: { kind: "command", command }, cwd: "/p" });
const allow = (pattern: string, command: string) => covers(rulesOf({ [`bash(${pattern})`]: "allow" }), [], bash(command));
const deny = (pattern: string, command: string) =>
  findTouching(rulesOf({ [`bash(${pattern})`]: "deny" }), bash(command)) !== undefined;

describe("An allow rule covers", () => {
  test.each([
    "git status",
    "git   status -s",
    "git status && git status --short",
    "git status 2>&1",
    "git status >/dev/null 2>&1; git status",
    "git status 'a;b' \"x && y\"",
    "git status a\\;b",
    "git sta\\\ntus",
    "git status | git status\ngit status",
  ])("%j", (command) => expect(allow("git status*", command)).toBe(true));

  test.each([
    "git status; rm -rf x",
    "git status && rm -rf x",
    "git status || rm x",
    "git status & rm x",
    "git status | sh",
    "git status\nrm -rf x",
    "git status $(rm x)",
    'git status "$(rm x)"',
    "git status `rm x`",
    'git status "`rm x`"',
    "git status <(rm x)",
    "git status > ~/.bashrc",
    "git status >> file",
    "git status &> file",
    "git status >/dev/null/../x",
    "git status ${x:-$(rm x)}",
    "git status ${x@P}",
    "git status $[$(rm x)]",
    "git status # ' \nrm -rf x # '",
    "git status $'\\'; rm x; #'",
    "git status <<E\n$(rm x)\nE",
    "(rm x) git status",
    "{ git status; rm x; }",
    "FOO=1 git status",
    "PATH=. git status",
    "git statu",
    "sudo git status",
    "git status 'unclosed",
    "git status \\",
    "! git status",
    "",
  ])("but not %j", (command) => expect(allow("git status*", command)).toBe(false));

  test("everything when it has no pattern", () => {
    expect(covers(rulesOf({ bash: "allow" }), [], bash("a; $(b)"))).toBe(true);
    expect(allow("*", "a; $(b)")).toBe(true);
  });

  test("a whole word with :*", () => {
    expect([allow("npm test:*", "npm test"), allow("npm test:*", "npm test -- a"), allow("npm test:*", "npm testing")]).toEqual([
      true,
      true,
      false,
    ]);
  });

  test("several commands by several rules", () => {
    const rules = rulesOf({ "bash(ls*)": "allow", "bash(pwd)": "allow", "bash(cat *)": "prompt" });
    expect(
      covers(
        rules.filter((rule) => rule.verdict === "allow"),
        [],
        bash("ls -l; pwd"),
      ),
    ).toBe(true);
    expect(
      covers(
        rules.filter((rule) => rule.verdict === "allow"),
        [],
        bash("ls -l; pwd; id"),
      ),
    ).toBe(false);
  });
});

describe("A deny rule looks behind the options of a program", () => {
  test.each(["git push", "git -C dir push origin", "git --no-pager push", "git -c a=b --git-dir x push", "sudo git -C x push"])(
    "%j",
    (command) => expect(deny("git push*", command)).toBe(true),
  );
  test.each(["git commit -m push", "git log -S push", "git -C dir status", "echo git push", "find . -name git -name push"])(
    "but not further: %j",
    (command) => expect(deny("git push*", command)).toBe(false),
  );
});

describe("A deny rule finds", () => {
  test.each([
    "rm x",
    "ls; rm x",
    "ls\nrm x",
    "/bin/rm x",
    "sudo rm x",
    "sudo -u root /usr/bin/rm x",
    "env -i A=1 rm x",
    "A=1 B=2 rm x",
    '"rm" x',
    "r\\m x",
    "'r'm x",
    "r\\\nm x",
    "$(rm x)",
    "echo `rm x`",
    "if true; then rm x; fi",
    "while ! rm x; do :; done",
    "(rm x)",
    "{ rm x; }",
    "bash -c 'rm x'",
    'sh -c "cd /; rm x"',
    "find . | xargs -0 rm x",
    "timeout 5 rm x",
    "true && nohup nice -n 5 rm x &",
    "busybox rm x",
    "find . -name x -exec rm {} \\;",
    "find . -type f -execdir /bin/rm -f {} +",
    "ls | xargs rm",
    "ls | xargs -n1 -- rm -f",
    "parallel rm ::: x",
    ">f rm x",
    "<f rm x",
    "2>>log rm x",
    "rm>f x",
    "trap 'rm x' EXIT",
    "alias q='rm x'",
    "flock lock rm x",
  ])("%j", (command) => expect(deny("rm *", command)).toBe(true));

  test.each(["ls rm x", "git commit -m 'rm old files'", "echo farm x", "rmdir x"])("but not %j", (command) =>
    expect(deny("rm *", command)).toBe(false),
  );
});

test("the wildcard takes linear time", () => {
  const started = performance.now();
  expect(wildcard(`${"*a".repeat(500)}b`, "a".repeat(100_000))).toBe(false);
  expect(performance.now() - started).toBeLessThan(1000);
  expect(matchesCommand("git *", "git")).toBe(false);
});

test("what counts as simple is what bash runs: no part of it starts another command", () => {
  // Pieces that bash gives a meaning; `mark` is a function that tells of every call.
  const piece = fc.constantFrom(
    "mark",
    " ",
    "a",
    "'",
    '"',
    "\\",
    "$",
    "(",
    ")",
    ";",
    "&",
    "|",
    "\n",
    "`",
    "#",
    "{",
    "}",
    "<",
    ">",
    "=",
    "!",
    "$(mark evil)",
    "`mark evil`",
    "evil",
  );
  fc.assert(
    fc.property(fc.array(piece, { minLength: 1, maxLength: 9 }), (parts) => {
      const command = `mark ok ${parts.join("")}`;
      if (!covers(rulesOf({ "bash(mark ok*)": "allow" }), [], bash(command))) return;
      const script = `mark() { if [ "$1" != ok ]; then echo "FOOLED:$*"; fi; }; evil() { echo FOOLED; }; ${"$"}{0:+} 2>/dev/null; ${command}`;
      let output = "";
      try {
        output = execFileSync("bash", ["--norc", "-c", script], {
          encoding: "utf8",
          cwd: "/",
          timeout: 5000,
          stdio: ["ignore", "pipe", "ignore"],
        });
      } catch (error) {
        output = String((error as { stdout?: unknown }).stdout ?? "");
      }
      expect(output).not.toContain("FOOLED");
    }),
    { numRuns: SOAK ? 20_000 : 1500 },
  );
}, 120_000);

test("possible commands begin with the text itself, and simple ones keep quotes", () => {
  expect(possibleCommands("a; b")[0]).toBe("a; b");
  expect(simpleCommands("a 'b  c'   d")).toEqual(["a 'b  c' d"]);
});
