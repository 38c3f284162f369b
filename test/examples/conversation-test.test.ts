// Scripting both sides: what the model answers, and what the person says to a dialog.
import { calls, says, scriptedProvider, startDaemon } from "mortise/testing";
import { expect, test } from "vitest";

test("a refused command is told to the model", async () => {
  const model = scriptedProvider(calls({ id: "1", name: "bash", args: { command: "sudo true" } }), says("As you wish."));
  const daemon = await startDaemon({
    options: { extension: [`${import.meta.dirname}/permission-gate.ts`], model: "scripted/scripted" },
    extensions: { model: [[model.definition]] },
    answers: { confirm: { confirmed: false } },
  });
  try {
    await daemon.prompt("tidy up");
    expect(await daemon.ask("get_last_assistant_text")).toEqual({ text: "As you wish." });
    expect(JSON.stringify(model.requests[1]?.messages.at(-1))).toContain("did not allow this command");
  } finally {
    await daemon.stop();
  }
});
