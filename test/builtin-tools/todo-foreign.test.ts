// The plan of a session that another program wrote.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startDaemon, type TestDaemon } from "mortise/testing";
import { afterEach, expect, test } from "vitest";
import { sessionText, userMessage } from "../cases/_support.ts";

let daemon: TestDaemon | undefined;
afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
});

const phases = [
  {
    name: "Build",
    tasks: [
      { content: "a", status: "completed" },
      { content: "b", status: "in_progress", notes: [] },
      { content: "c", status: "blocked", blocker: "x" },
    ],
  },
  { name: "Over", tasks: [{ content: "d", status: "abandoned" }] },
];
const call = (id: string) => ({
  role: "assistant",
  content: [{ type: "toolCall", id, name: "todo", arguments: { op: "view" } }],
  api: "x",
  provider: "x",
  model: "x",
  usage: {
    input: 1,
    output: 1,
    cacheRead: 0,
    cacheWrite: 0,
    totalTokens: 2,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
  },
  stopReason: "toolUse",
  timestamp: 2,
});
const result = (id: string, details: unknown, isError = false) => ({
  role: "toolResult",
  toolCallId: id,
  toolName: "todo",
  content: [{ type: "text", text: "plan" }],
  details,
  isError,
  timestamp: 3,
});

test("a foreign session brings its last plan, without what is over, and is not written for that", async () => {
  daemon = await startDaemon({ watch: false });
  const older = [{ name: "Old", tasks: [{ content: "z", status: "pending" }] }];
  const messages = [
    userMessage("go"),
    call("t1"),
    result("t1", { phases: older }),
    call("t2"),
    result("t2", { phases }),
    call("t3"),
    result("t3", { phases: older }, true),
  ];
  const file = join(daemon.home, "foreign.jsonl");
  const text = sessionText(daemon.cwd, messages);
  writeFileSync(file, text);
  await daemon.ask("switch_session", { sessionPath: file });
  const open = [
    {
      name: "Build",
      tasks: [
        { content: "b", status: "in_progress" },
        { content: "c", status: "pending" },
      ],
    },
  ];
  expect(await daemon.ask("get_state")).toMatchObject({ todoPhases: open });
  expect(readFileSync(file, "utf8")).toBe(text);
  await daemon.ask("set_todos", { phases: [] });
  expect(await daemon.ask("get_state")).toMatchObject({ todoPhases: [] });
});
