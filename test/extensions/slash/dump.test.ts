// `/dump`: every kind of message as text (agent-semantics §4).
import { afterEach, expect, it } from "vitest";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import { calls, fail, says, scriptedModel, scriptedProvider } from "../../support/scripted-provider.ts";

let daemon: TestDaemon | undefined;
afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
});

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

it("prints who said what, calls with their results, pictures by their type and failures with their reason", async () => {
  const provider = scriptedProvider(calls({ id: "c1", name: "ls", args: { path: "." } }), says("All seen"), says("Skilled"), [
    fail("It broke", "fatal"),
  ]);
  const d = await startDaemon({
    extensions: { scripted: [[provider.definition]] },
    files: { "cwd/notes.txt": "x", "skills/pdf/SKILL.md": "---\ndescription: PDF\n---\nUse pdftotext." },
  });
  daemon = d;
  d.daemon.conversations.attached.select({ model: scriptedModel });
  expect(await d.slash("/dump")).toBe("There is nothing to print: the session has no messages");
  await d.ask("bash", { command: "echo from the host" });
  const after = d.frames.length;
  await d.ask("prompt", { message: "Look", images: [{ type: "image", data: PIXEL, mimeType: "image/png" }] });
  await d.next("agent_end", { after });
  await d.prompt("/skill:pdf");
  await d.prompt("Again");
  const text = await d.slash("/dump");
  for (const part of [
    "## bash\n$ echo from the host\nfrom the host",
    "## user\nLook\n[image image/png]",
    '## assistant\n[calls ls (c1): {"path":"."}]',
    "## result of ls (c1)\nnotes.txt",
    "## assistant\nAll seen",
    "## skill-prompt\nFollow the skill",
    "## user\nAgain",
    "[error: It broke]",
  ]) {
    expect(text).toContain(part);
  }
  expect(text).not.toContain(PIXEL);
});
