// `session_before_compact`, `session_compact` and `session_compact_failed`.
import { describe, expect, it } from "vitest";
import type { TestDaemon } from "../../../core/testing.ts";
import { errors, notices, start, withUnit } from "./_start.ts";

describe("compaction", () => {
  const text = (answer: string) => `
    import { serializeConversation } from "@mariozechner/pi-coding-agent";
    export default function (pi) {
      pi.on("session_before_compact", (event) => {
        const { preparation } = event;
        const words = serializeConversation(preparation.messagesToSummarize);
        return ${answer};
      });
      pi.on("session_compact", (event, ctx) => ctx.ui.notify(event.fromExtension + " " + event.compactionEntry.summary));
      pi.on("session_compact_failed", ({ reason, errorMessage, aborted, willRetry, fromExtension }, ctx) =>
        ctx.ui.notify(JSON.stringify({ reason, errorMessage, aborted, willRetry, fromExtension })));
    }`;
  const fill = async (daemon: TestDaemon) => {
    for (let n = 0; n < 3; n++) await daemon.prompt(`number ${n} ${"word ".repeat(20_000)}`);
  };

  it("a handler may give the summary, or cancel", async () => {
    const own =
      '{ compaction: { summary: "Own: " + words.slice(0, 15), firstKeptEntryId: preparation.firstKeptEntryId, tokensBefore: preparation.tokensBefore } }';
    await withUnit(text(own), async (daemon) => {
      await fill(daemon);
      const result = await daemon.ask("compact");
      expect(result["summary"]).toBe("Own: [User] number 0");
      expect(notices(daemon)).toEqual(["true Own: [User] number 0"]);
    });
    await withUnit(text("{ cancel: true }"), async (daemon) => {
      await fill(daemon);
      expect(await daemon.request("compact")).toMatchObject({ success: false });
      expect(notices(daemon).map((text) => JSON.parse(text))).toEqual([
        { reason: "manual", aborted: true, willRetry: false, fromExtension: false },
      ]);
    });
  });

  it("a failure is told with its reason, and nothing has changed", async () => {
    await withUnit(text("undefined"), async (daemon) => {
      await fill(daemon);
      const before = await daemon.ask("get_messages");
      // A script that is not there: the summariser fails.
      await daemon.ask("set_model", { provider: "offline", modelId: "script" });
      expect(await daemon.request("compact")).toMatchObject({ success: false });
      expect(notices(daemon).map((notice) => JSON.parse(notice))).toEqual([
        {
          reason: "manual",
          errorMessage: expect.stringContaining("MORTISE_OFFLINE_SCRIPT"),
          aborted: false,
          willRetry: false,
          fromExtension: false,
        },
      ]);
      expect(await daemon.ask("get_messages")).toEqual(before);
    });
  });

  it("an automatic compaction is told with its reason, and takes the summary that a handler gives", async () => {
    const own =
      '(notes.push(event.reason + " " + event.willRetry), { compaction: { summary: "Own", firstKeptEntryId: preparation.firstKeptEntryId } })';
    const unit = `const notes = [];${text(own)}`.replace(
      "pi.on(",
      'pi.registerCommand("notes", { handler: async (_args, ctx) => ctx.ui.notify(notes.join()) });\n      pi.on(',
    );
    const daemon = await start({ "unit.ts": unit }, { files: { "config.yml": "compaction: {thresholdTokens: 30000}\n" } });
    try {
      await fill(daemon);
      const end = await daemon.next("auto_compaction_end", { after: 0 });
      expect(end).toMatchObject({ result: { summary: "Own" } });
      await daemon.prompt("/notes");
      expect(notices(daemon)).toContain("true Own");
      expect(notices(daemon).at(-1)).toMatch(/^threshold false/);
      expect(errors(daemon)).toEqual([]);
    } finally {
      await daemon.stop();
    }
  });
});
