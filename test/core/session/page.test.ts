import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CommandError } from "../../../core/kernel/errors.ts";
import { messagesPage, PAGE_BYTES, type PageSource } from "../../../core/session/page.ts";
import type { AgentMessage } from "../../../protocol/message.ts";
import { user } from "./_helpers.ts";

const source = (messages: readonly AgentMessage[], leafId: string | null = "leaf"): PageSource => ({
  sessionId: "s",
  leafId,
  messages,
});
const cursorOf = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

function failure(action: () => unknown): { message: string; code: string | undefined } {
  try {
    action();
  } catch (error) {
    if (error instanceof CommandError) return { message: error.message, code: error.code };
  }
  throw new Error("Expected a CommandError");
}

describe("get_messages_page", () => {
  it("of an empty history is empty and the last one", () => {
    expect(messagesPage(source([]))).toEqual({ messages: [], totalMessages: 0 });
  });

  it("a walk gives every message once, in order, within limit and budget", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(300_000), { maxLength: 40 }),
        fc.option(fc.integer({ min: 1, max: 256 }), { nil: undefined }),
        (sizes, limit) => {
          const messages = sizes.map((size, i) => user("\u6f22".repeat(Math.floor(size / 3)), i));
          const seen: AgentMessage[] = [];
          let cursor: string | undefined;
          do {
            const page = messagesPage(source(messages), cursor, limit);
            expect(page.totalMessages).toBe(messages.length);
            expect(page.messages.length).toBeLessThanOrEqual(limit ?? 100);
            if (page.messages.length > 1)
              expect(Buffer.byteLength(JSON.stringify(page.messages))).toBeLessThanOrEqual(PAGE_BYTES);
            if (page.nextCursor !== undefined) expect(page.messages.length).toBeGreaterThan(0);
            seen.push(...page.messages);
            cursor = page.nextCursor;
          } while (cursor !== undefined);
          expect(seen).toEqual(messages);
        },
      ),
      { numRuns: 20 },
    );
  });

  it("a message bigger than the budget makes a page of its own", () => {
    const messages = [user("a"), user("x".repeat(PAGE_BYTES)), user("b")];
    const first = messagesPage(source(messages));
    const second = messagesPage(source(messages), first.nextCursor);
    expect([first.messages.length, second.messages.length]).toEqual([1, 1]);
    expect(messagesPage(source(messages), second.nextCursor)).toEqual({ messages: [user("b")], totalMessages: 3 });
  });

  it("limits: 1 to 256, default 100, null is the default", () => {
    const many = source(Array.from({ length: 300 }, (_, i) => user("m", i)));
    expect(messagesPage(many).messages).toHaveLength(100);
    expect(messagesPage(many, undefined, null).messages).toHaveLength(100);
    expect(messagesPage(many, null, 256).messages).toHaveLength(256);
    for (const limit of [0, 257, -1, 1.5, Number.NaN, "10", true]) {
      expect(failure(() => messagesPage(many, undefined, limit))).toEqual({
        message: "RPC message page limit must be between 1 and 256",
        code: "invalid_params",
      });
    }
  });

  it("a cursor of another session, leaf or count is stale", () => {
    const messages = [user("a"), user("b"), user("c")];
    const cursor = messagesPage(source(messages), undefined, 1).nextCursor;
    for (const changed of [
      source(messages, "other"),
      source(messages, null),
      source([...messages, user("d")]),
      { ...source(messages), sessionId: "t" },
    ]) {
      expect(failure(() => messagesPage(changed, cursor))).toEqual({
        message: "RPC message cursor is stale",
        code: "stale_cursor",
      });
    }
  });

  it("a malformed cursor is named as such", () => {
    const good = { version: 1, sessionId: "s", leafId: "leaf", messageCount: 3, offset: 1 };
    const messages = source([user("a"), user("b"), user("c")]);
    expect(messagesPage(messages, cursorOf(good)).messages).toHaveLength(2);
    // The last digit of base64url may have bits that mean nothing; only one spelling is ours.
    const padded =
      [0, 1, 2].map((n) => cursorOf({ ...good, sessionId: "s".repeat(n) })).find((text) => text.length % 4 === 2) ?? "";
    const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const respelt = padded.slice(0, -1) + digits[digits.indexOf(padded.slice(-1)) + 1];
    expect(Buffer.from(respelt, "base64url").equals(Buffer.from(padded, "base64url"))).toBe(true);
    const bad: unknown[] = [
      respelt,
      "",
      "x".repeat(2049),
      "a+b/",
      `${cursorOf(good)}=`,
      "AB",
      cursorOf("text"),
      cursorOf({ ...good, version: 2 }),
      cursorOf({ ...good, offset: -1 }),
      cursorOf({ ...good, offset: 3 }),
      cursorOf({ ...good, extra: 1 }),
      7,
      {},
    ];
    for (const cursor of bad)
      expect(
        failure(() => messagesPage(messages, cursor)),
        String(cursor),
      ).toEqual({ message: "Invalid RPC message cursor", code: "invalid_params" });
  });
});
