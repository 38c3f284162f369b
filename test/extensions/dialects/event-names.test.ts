// Which events of the families occur here: the others are said once to be without effect, never silently.
import { expect, it } from "vitest";
import { errors, start } from "./_start.ts";

const OCCUR = [
  "agent_before_settle",
  "agent_end",
  "agent_settled",
  "agent_start",
  "after_provider_response",
  "auto_compaction_end",
  "auto_compaction_start",
  "auto_retry_end",
  "auto_retry_start",
  "before_agent_start",
  "before_provider_request",
  "context",
  "input",
  "message_end",
  "message_start",
  "message_update",
  "model_select",
  "resources_discover",
  "session_before_branch",
  "session_before_compact",
  "session_before_fork",
  "session_before_switch",
  "session_before_tree",
  "session_branch",
  "session_compact",
  "session_compact_failed",
  "session_fork",
  "session_shutdown",
  "session_start",
  "session_stop",
  "session_switch",
  "session_tree",
  "thinking_level_select",
  "todo_reminder",
  "tool_call",
  "tool_execution_end",
  "tool_execution_start",
  "tool_execution_update",
  "tool_result",
  "ttsr_triggered",
  "turn_end",
  "turn_start",
  "user_bash",
];
const DO_NOT = ["project_trust", "session.compacting", "tool_approval_requested", "no_such_event"];

it("every event that occurs is taken silently, every other one is named once in the log", async () => {
  const warnings: string[] = [];
  const silent = () => {};
  const log = { debug: silent, info: silent, warn: (message: string) => void warnings.push(message), error: silent };
  const unit = `export default function (pi) {
    for (const name of ${JSON.stringify([...OCCUR, ...DO_NOT, ...DO_NOT])}) pi.on(name, () => {});
  }`;
  const daemon = await start({ "unit.ts": unit }, { log });
  try {
    await daemon.prompt("hello");
    const told = warnings.filter((message) => message.includes("does not occur here"));
    expect(told).toEqual(DO_NOT.map((name) => `The event ${name} does not occur here`));
    expect(errors(daemon)).toEqual([]);
  } finally {
    await daemon.stop();
  }
});
