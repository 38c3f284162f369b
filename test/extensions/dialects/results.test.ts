import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toImages, toPromptBlocks, toToolResult } from "../../../extensions/dialects/_results.ts";
import { ToolResult } from "../../../protocol/message.ts";

const runs = { numRuns: process.env["MORTISE_SOAK"] ? 5000 : 200 };

describe("answers of tools", () => {
  it("a text, nothing and a list are results", () => {
    expect(toToolResult("done")).toEqual({ content: [{ type: "text", text: "done" }] });
    expect(toToolResult(undefined)).toEqual({ content: [] });
    expect(toToolResult(["a", { type: "text", text: "b" }])).toEqual({
      content: [
        { type: "text", text: "a" },
        { type: "text", text: "b" },
      ],
    });
  });

  it("images of both shapes are kept, other blocks become text", () => {
    const { content } = toToolResult({
      content: [
        { type: "image", data: "AAAA", mimeType: "image/png" },
        { type: "image", source: { type: "base64", media_type: "image/gif", data: "BBBB" } },
        { type: "image", url: "http://x" },
        { type: "chart", points: [1] },
      ],
    });
    expect(content).toEqual([
      { type: "image", data: "AAAA", mimeType: "image/png" },
      { type: "image", data: "BBBB", mimeType: "image/gif" },
      { type: "text", text: '{"type":"image","url":"http://x"}' },
      { type: "text", text: '{"type":"chart","points":[1]}' },
    ]);
  });

  it("details that JSON cannot hold are replaced by a note instead of breaking the session file", () => {
    const details: Record<string, unknown> = {};
    details["self"] = details;
    expect(toToolResult({ content: "x", details }).details).toEqual({ note: expect.stringContaining("JSON cannot hold") });
    expect(toToolResult({ content: "x", details: { n: 1n } }).details).toEqual({ note: expect.any(String) });
    expect(toToolResult({ content: "x", details: { ok: 1 }, isError: true })).toEqual({
      content: [{ type: "text", text: "x" }],
      details: { ok: 1 },
      isError: true,
    });
  });

  it("whatever a tool gives back is a valid result that can be stored", () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withMap: true, withNullPrototype: true }), (value) => {
        const result = toToolResult(value);
        ToolResult.parse(result);
        JSON.stringify(result);
      }),
      runs,
    );
  });
});

describe("other answers", () => {
  it("system prompts are read as one text or as blocks", () => {
    expect(toPromptBlocks("a")).toEqual(["a"]);
    expect(toPromptBlocks(["a", 1, "b"])).toEqual(["a", "b"]);
    expect(toPromptBlocks({})).toBeUndefined();
  });

  it("images without a type are images, other things are dropped", () => {
    expect(toImages([{ data: "A", mimeType: "image/png" }, 4, {}])).toEqual([
      { type: "image", data: "A", mimeType: "image/png" },
    ]);
    expect(toImages("x")).toBeUndefined();
  });
});
