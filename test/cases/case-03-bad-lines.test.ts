// public-bugs 3, agent-semantics 12.2: no line ends the reading of lines.
import { expect, it } from "vitest";
import { ask, ofId, useProcesses, wait } from "./_support.ts";

const { start } = useProcesses();

it("answers every broken line once and goes on (case 3, item 2)", async () => {
  const daemon = start();
  await ask(daemon, "set_todos", { phases: [{ name: "P", tasks: [{ content: "kept", status: "pending" }] }] });
  const before = daemon.frames.length;
  daemon.send(
    Buffer.from(
      [
        '\ufeff{"id":"l0","type":"get_state"}',
        "",
        "   ",
        "\r",
        '{"id":"l1","type":"get_state"}\r',
        '{"id":"l2","type":',
        "[]",
        "null",
        "42",
        '"get_state"',
        '{"id":"l3"}',
        '{"id":"l4","type":17}',
        '{"id":"l5","type":"prompt"}',
        '{"id":"l6","type":"set_todos","phases":"no"}',
        '{"id":"l9","type":"get_state"}',
        "x".repeat(300_000),
        '{"id":"l10","type":"get_state"}',
        "",
      ].join("\n"),
    ),
  );
  await wait(daemon, (frame) => frame["id"] === "l10", before);
  for (const id of ["l0", "l1", "l9", "l10"]) expect(ofId(daemon, id), id).toMatchObject([{ success: true }]);
  expect(ofId(daemon, "l5")).toMatchObject([{ command: "prompt", success: false, error: expect.stringContaining("message") }]);
  expect(ofId(daemon, "l6")).toMatchObject([{ command: "set_todos", success: false, code: "invalid_params" }]);
  expect(ofId(daemon, "l9")[0]?.["data"]).toMatchObject({
    todoPhases: [{ name: "P", tasks: [{ content: "kept" }] }],
    isStreaming: false,
  });

  const nameless = daemon.frames.slice(before).filter((frame) => frame.type === "response" && frame["id"] === undefined);
  // The cut line, null and the 300 KB are `parse`; [], 42, a string, l3 and l4 are no commands.
  expect(nameless.filter((frame) => frame["command"] === "parse")).toHaveLength(3);
  expect(nameless.filter((frame) => frame["command"] === undefined)).toHaveLength(5);
  expect(nameless.every((frame) => frame["success"] === false)).toBe(true);
  // 14 lines have something in them; each is answered once.
  expect(daemon.frames.slice(before).filter((frame) => frame.type === "response")).toHaveLength(14);
  for (const frame of nameless) {
    expect(String(frame["error"]).length).toBeLessThan(500);
    expect(String(frame["error"])).not.toContain("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
  }
  expect(await daemon.end()).toBe(0);
  expect(daemon.stderr()).not.toMatch(/unhandled|xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx/i);
});

it("skips a line that is no UTF-8 and a last line without its end is still read (case 3)", async () => {
  const daemon = start();
  daemon.send(
    Buffer.concat([Buffer.from('{"id":"a","type":"set_session_name","name":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}\n')]),
  );
  daemon.send(Buffer.from('{"id":"b","type":"get_state"}\n{"id":"c","type":"get_state"}'));
  await wait(daemon, (frame) => frame["id"] === "b");
  expect(await daemon.end()).toBe(0);
  expect(ofId(daemon, "a")).toEqual([]);
  expect(daemon.frames.find((frame) => frame["command"] === "parse")).toMatchObject({
    success: false,
    error: expect.stringContaining("UTF-8"),
  });
  expect(ofId(daemon, "c")).toMatchObject([{ success: true }]);
});
