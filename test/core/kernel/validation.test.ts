// What a caller reads when a value does not fit.
import { expect, it } from "vitest";
import { z } from "zod";
import { describeIssues } from "../../../core/kernel/validation.ts";

function said(schema: z.ZodType, value: unknown): string {
  const parsed = schema.safeParse(value);
  if (parsed.success) throw new Error("The value fits");
  return describeIssues(parsed.error);
}

it("names where, and what was expected", () => {
  expect(said(z.object({ limit: z.number() }), { limit: "x" })).toBe("limit: Invalid input: expected number, received string");
  expect(said(z.string(), 3)).toBe("Invalid input: expected string, received number");
});

it("says of a union what its members expect, each once", () => {
  const level = z.union([z.enum(["low", "high"]), z.literal("auto"), z.literal("auto"), z.union([z.number(), z.null()])]);
  expect(said(z.object({ level }), { level: "hard" })).toBe(
    'level: Invalid input: expected "low" or "high" or "auto" or number or null',
  );
  expect(said(z.union([z.object({ path: z.string() }), z.string().min(3)]), {})).toBe(
    "Invalid input: expected path as string or string",
  );
});

it("shows no value, and at most five issues", () => {
  const secret = "sk-secret-value";
  expect(said(z.object({ key: z.union([z.number(), z.boolean()]) }), { key: secret })).not.toContain(secret);
  const many = z.object(Object.fromEntries("abcdefg".split("").map((name) => [name, z.number()])));
  expect(said(many, {})).toMatch(/; and 2 more$/);
});
