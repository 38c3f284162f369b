// Something that happens a while after a run: once per run, as the conversation, and never after the extension is gone.
import { expect, test } from "vitest";
import { generation, setup, useDaemons } from "../../reload/_support.ts";

const start = useDaemons();

test("it comes after the run, what it throws is named, and a reload takes what still waits with it", async () => {
  const path = "extensions/after.ts";
  const unit = (text: string, waitMs: string) =>
    setup(`m.afterRuns(scope, "afterwards", {
      wait: (ctx) => (ctx.conversation.isSubagent ? undefined : ${waitMs}),
      run: async (ctx) => { throw new Error("${text} " + ctx.conversation.messages.length); },
    });`);
  const daemon = await start({ files: { [path]: unit("late", "100_000") } });
  const errors = () => daemon.frames.filter((frame) => frame.type === "extension_error").map((frame) => frame["error"]);
  await daemon.prompt("one");
  // One waits: the same run's end asks once, the next one's instead of it.
  await daemon.prompt("two");
  daemon.write(path, unit("soon", "1"));
  await generation(daemon, path, 2);
  await daemon.prompt("three");
  const error = await daemon.next("extension_error");
  expect(error).toMatchObject({ event: "afterwards", error: "soon 6", extensionPath: `${daemon.home}/${path}` });
  daemon.write(path, unit("never", "undefined"));
  await generation(daemon, path, 3);
  await daemon.prompt("four");
  expect(errors()).toEqual(["soon 6"]);
});
