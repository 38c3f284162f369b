import { Type } from "typebox";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { toJsonSchema, toParams } from "../../../extensions/dialects/_schema.ts";

describe("tool parameters of the families", () => {
  it("typebox becomes plain JSON Schema without its markers", () => {
    const params = toParams(
      Type.Object({
        path: Type.String({ description: "Where" }),
        mode: Type.Optional(Type.Union([Type.Literal("a"), Type.Literal("b")])),
      }),
      "x",
    );
    expect(params).toEqual({
      type: "object",
      required: ["path"],
      properties: {
        path: { type: "string", description: "Where" },
        mode: {
          anyOf: [
            { type: "string", const: "a" },
            { type: "string", const: "b" },
          ],
        },
      },
    });
    expect(Object.getOwnPropertyNames(params)).not.toContain("~kind");
  });

  it("zod 4 schemas stay what they are, so that defaults apply", () => {
    const schema = z.object({ count: z.number().default(3) });
    expect(toParams(schema, "x")).toBe(schema);
    expect(toJsonSchema(schema)).toMatchObject({ type: "object", properties: { count: { default: 3 } } });
  });

  it("arktype-like values are asked for their JSON Schema", () => {
    const params = toParams(
      Object.assign(() => {}, { toJsonSchema: () => ({ type: "object", properties: {} }) }),
      "x",
    );
    expect(params).toEqual({ type: "object", properties: {} });
  });

  it("no parameters are an object without properties, a schema without type is an object", () => {
    expect(toParams(undefined, "x")).toEqual({ type: "object", properties: {} });
    expect(toParams({ properties: { a: { type: "string" } } }, "x")).toEqual({
      type: "object",
      properties: { a: { type: "string" } },
    });
    expect(toParams({ anyOf: [{ type: "object" }] }, "x")).toEqual({ anyOf: [{ type: "object" }] });
  });

  it.each([
    ["a text", "nope", /must be a typebox, zod or JSON Schema object, found string/],
    ["a schema of a string", { type: "string" }, /must describe an object, found type "string"/],
    ["zod 3", { _def: {}, safeParse: () => {} }, /zod 3 schema: import zod 4/],
  ])("%s is refused with the tool's name", (_name, parameters, message) => {
    expect(() => toParams(parameters, "broken")).toThrow(message);
    expect(() => toParams(parameters, "broken")).toThrow(/"broken"/);
  });
});
