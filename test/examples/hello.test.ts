// A test of an extension: a whole daemon in this process over a home of its own, with real files. Only the pipes are left out.
import { checkLeaks, startDaemon } from "mortise/testing";
import { expect, test } from "vitest";

const extension = [`${import.meta.dirname}/hello.ts`];

test("the model can call the tool", async () => {
  const daemon = await startDaemon({ options: { extension } });
  try {
    const { text, isError } = await daemon.callTool("hello", { name: "Ada" });
    expect(text).toBe("Hello, Ada!");
    expect(isError).toBe(false);
    await checkLeaks(daemon, "hello", { reloads: 10 });
  } finally {
    await daemon.stop();
  }
});
