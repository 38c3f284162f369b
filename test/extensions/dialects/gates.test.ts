// tool_call and tool_result: a safety check that fails, hangs or never ran does not mean yes.
import { describe, expect, it } from "vitest";
import { errors, notices, start, toolResults, uiFrames } from "./_start.ts";

const tool = `
import { Type } from "typebox";
export default function (pi) {
  pi.registerTool({
    name: "probe",
    description: "Tells its arguments",
    parameters: Type.Object({ n: Type.Number(), s: Type.Optional(Type.String()) }),
    async execute(id, params) { return { content: [{ type: "text", text: "ran " + JSON.stringify(params) }], details: { first: 1 } }; },
  });
  pi.registerTool({ name: "fails", description: "Fails", execute: async () => { throw new Error("Out of order"); } });
}`;

async function run(units: Record<string, string>, message: string) {
  const daemon = await start({ "a-tool.ts": tool, ...units });
  try {
    const frames = await daemon.prompt(message);
    return {
      results: toolResults(frames),
      errors: errors(daemon),
      notices: notices(daemon),
      dialogs: uiFrames(daemon, "confirm").length,
    };
  } finally {
    await daemon.stop();
  }
}

const gate = (body: string) => `export default function (pi) { pi.on("tool_call", ${body}); }`;

describe("tool_call", () => {
  it("a handler that throws blocks and is reported", async () => {
    const { results, errors } = await run({ "g.ts": gate(`() => { throw new Error("No idea"); }`) }, 'call probe {"n": 1}');
    expect(results).toEqual([{ name: "probe", isError: true, text: expect.stringContaining("No idea") }]);
    expect(errors).toEqual([expect.objectContaining({ event: "tool_call", error: "No idea" })]);
  });

  it("changed input is what runs, handlers see each other's changes, and it is validated again", async () => {
    const { results } = await run(
      {
        "g1.ts": gate(`async (event) => { event.input.n = event.input.n + 1; }`),
        "g2.ts": gate(`(event) => { event.input.s = "n was " + event.input.n; }`),
      },
      'call probe {"n": 1}',
    );
    expect(results).toEqual([{ name: "probe", isError: false, text: 'ran {"n":2,"s":"n was 2"}' }]);
    const invalid = await run({ "g.ts": gate(`(event) => { event.input.n = "many"; }`) }, 'call probe {"n": 1}');
    expect(invalid.results[0]).toMatchObject({ isError: true, text: expect.stringContaining("n") });
    expect(invalid.results[0]?.text).not.toContain("ran");
  });

  it("after a block later handlers are not asked, so no second dialog appears; no answer unblocks", async () => {
    const { results, dialogs } = await run(
      {
        "g1.ts": gate(`() => ({ block: true, reason: "First says no" })`),
        "g2.ts": gate(`async (event, ctx) => { await ctx.ui.confirm("Sure?", "?"); return { block: false }; }`),
      },
      'call probe {"n": 1}',
    );
    expect(results).toEqual([{ name: "probe", isError: true, text: expect.stringContaining("First says no") }]);
    expect(dialogs).toBe(0);
  });

  it("a block without a reason still says who", async () => {
    const { results } = await run({ "g.ts": gate(`() => ({ block: true })`) }, 'call probe {"n": 1}');
    expect(results[0]).toMatchObject({ isError: true, text: expect.stringContaining("blocked by an extension") });
  });

  it("changing nested input does not reach the stored call", async () => {
    const daemon = await start({ "a-tool.ts": tool, "g.ts": gate(`(event) => { event.input.n = 7; }`) });
    try {
      await daemon.prompt('call probe {"n": 1}');
      const messages = (await daemon.ask("get_messages"))["messages"] as {
        role: string;
        content: { type: string; arguments?: unknown }[];
      }[];
      const call = messages
        .flatMap((message) => (message.role === "assistant" ? message.content : []))
        .find((block) => block.type === "toolCall");
      expect(call?.arguments).toEqual({ n: 1 });
    } finally {
      await daemon.stop();
    }
  });
});

describe("tool_result", () => {
  const patch = (body: string) => `export default function (pi) { pi.on("tool_result", ${body}); }`;

  it("patches chain in load order; details and content are independent", async () => {
    const { results } = await run(
      {
        "r1.ts": patch(`(event) => ({ content: [...event.content, { type: "text", text: "one" }] })`),
        "r2.ts": patch(
          `(event) => ({ content: event.content.concat({ type: "text", text: event.content.length + " " + event.details.first }) })`,
        ),
      },
      'call probe {"n": 1}',
    );
    expect(results[0]?.text).toBe('ran {"n":1}\none\n2 1');
  });

  it("agent-semantics §12 item 64: the text of a failed tool may be rewritten, and a failure be made good", async () => {
    const { results } = await run(
      { "r.ts": patch(`(event) => event.isError ? { content: "Mended: " + event.content[0].text, isError: false } : undefined`) },
      "call fails {}",
    );
    expect(results).toEqual([{ name: "fails", isError: false, text: expect.stringContaining("Mended: Out of order") }]);
  });

  it("agent-semantics §12 item 60: a handler that throws is reported, the result and later handlers stay", async () => {
    const { results, errors } = await run(
      { "r1.ts": patch(`() => { throw new Error("Broken"); }`), "r2.ts": patch(`() => ({ content: "later" })`) },
      'call probe {"n": 1}',
    );
    expect(results[0]?.text).toBe("later");
    expect(errors).toHaveLength(1);
  });
});
