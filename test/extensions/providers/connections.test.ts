// Between us and the service: redirects, TLS, endless bodies, hints about waiting.
import { expect, it } from "vitest";
import type { FakeReply } from "../../support/fake-anthropic.ts";
import { failureOf } from "../../support/provider-context.ts";
import { changeModel, contextWith, fake, run, useAnthropic } from "./_anthropic.ts";

useAnthropic();

it.each([301, 302, 303, 307, 308])("status %i names the address to use, and takes the key nowhere", async (status) => {
  const target = "https://other.example/v1/messages";
  const error = failureOf(await run({ raw: { status, headers: { location: target }, writes: [] } }));
  expect(error).toMatchObject({ kind: "fatal", status, message: expect.stringContaining(`redirects to "${target}"`) });
  expect(fake.requests).toHaveLength(1);
});

it("a server without TLS behind an https address is no fault of the line", async () => {
  changeModel({ baseUrl: fake.url.replace("http:", "https:") });
  const error = failureOf(await run({ text: "never" }));
  expect(error).toMatchObject({ kind: "fatal", message: expect.stringContaining("speaks no TLS") });
});

it("a port that no web request may go to is no fault of the line", async () => {
  changeModel({ baseUrl: "http://127.0.0.1:1" });
  expect(failureOf(await run({ text: "never" })).kind).toBe("fatal");
});

// Each of these texts once took minutes, or would take them: nothing else of the daemon runs meanwhile.
it.each<[string, string]>([
  ["letters", "x".repeat(300_000)],
  ["words", "a.".repeat(150_000)],
  ["addresses", "a://b:".repeat(50_000)],
  ["blanks", `authorization${" ".repeat(300_000)}`],
  ["markup", `<html>${"<".repeat(300_000)}`],
  ["JSON", JSON.stringify({ error: { type: "api_error", message: "x".repeat(300_000) } })],
])("an error of a great many %s is told in short", async (_name, text) => {
  for (const end of ["end", "open"] as const) {
    const error = failureOf(await run({ raw: { status: 500, writes: [text], end } }));
    expect(error.kind).toBe("retryable");
    expect(error.message.length).toBeLessThan(1000);
  }
});

it("an error whose text never ends is what its status says", async () => {
  const ctx = contextWith({ "providers.idleTimeoutMs": 600 });
  const error = failureOf(await run({ raw: { status: 401, writes: ['{"error": {"mess'], end: "open" } }, {}, ctx));
  expect(error).toMatchObject({ kind: "auth", status: 401 });
  expect(await fake.requests[0]?.closed).toBe(true);
});

it("a date says how long to wait", async () => {
  const date = new Date(Date.now() + 3_600_000).toUTCString();
  const error = failureOf(await run({ failure: { status: 503, headers: { "retry-after": date } } }));
  expect(error.retryAfterMs).toBeGreaterThan(3_000_000);
  expect(error.retryAfterMs).toBeLessThanOrEqual(3_600_000);
});

it.each<[number, string, string]>([
  [429, "false", "quota"],
  [429, "true", "retryable"],
  [529, "false", "retryable"],
])("status %i with x-should-retry %s is %s", async (status, hint, kind) => {
  const reply: FakeReply = { failure: { status, type: "rate_limit_error", headers: { "x-should-retry": hint } } };
  expect(failureOf(await run(reply)).kind).toBe(kind);
});

it.each([
  "Context size has been exceeded.",
  "context_length_exceeded",
  "The number of tokens to keep from the initial prompt is greater than the context length",
  "Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)",
  "Prompt exceeds max length",
  "invalid params, context window exceeds limit",
])("“%s” is an overflow, and no other failure", async (message) => {
  const error = failureOf(await run({ failure: { status: 400, type: "invalid_request_error", message } }));
  expect(error.kind).toBe("overflow");
});
