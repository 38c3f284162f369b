// Messages in session files with values of any other type in any place: the session opens, and the host gets messages of the
// wire's shape.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { AgentMessage } from "../../../protocol/message.ts";
import { assistant, call, opened, result, soak, tempDir, usage, user } from "./_helpers.ts";

const timestamp = 5;
const samples: Record<string, unknown>[] = [
  { ...user("plain"), synthetic: true, steering: false, attribution: "user" },
  {
    role: "user",
    content: [
      { type: "text", text: "t", textSignature: "s" },
      { type: "image", data: "aGk=", mimeType: "image/png", detail: "low" },
    ],
    timestamp,
  },
  { role: "developer", content: "d", attribution: "agent", timestamp },
  {
    ...assistant([
      { type: "thinking", thinking: "h", thinkingSignature: "s", itemId: "i" },
      { type: "text", text: "t" },
      { ...call("c1"), thoughtSignature: "s", intent: "i" } as ReturnType<typeof call>,
    ]),
    usage: { ...usage, reasoningTokens: 1 },
    errorMessage: "e",
    errorStatus: 500,
    responseId: "r",
    duration: 1,
    ttft: 1,
  },
  { ...result("c1"), details: { any: 1 } },
  { role: "custom", customType: "x", content: [{ type: "text", text: "t" }], display: true, attribution: "user", timestamp },
  { role: "hookMessage", customType: "x", content: "h", display: true, timestamp },
  {
    role: "bashExecution",
    command: "c",
    output: "o",
    exitCode: 1,
    cancelled: false,
    truncated: false,
    fullOutputPath: "/x",
    excludeFromContext: false,
    timestamp,
  },
  { role: "pythonExecution", code: "c", output: "o", excludeFromContext: false, timestamp },
  { role: "fileMention", files: [{ path: "p", content: "c" }], timestamp },
  { role: "branchSummary", summary: "s", fromId: "f", timestamp },
  { role: "compactionSummary", summary: "s", shortSummary: "s", tokensBefore: 1, timestamp },
];

type Path = readonly (string | number)[];
function pathsOf(value: unknown, at: Path = []): Path[] {
  if (typeof value !== "object" || value === null) return [at];
  return [at, ...Object.entries(value).flatMap(([key, member]) => pathsOf(member, [...at, key]))];
}
function replaced(value: unknown, [key, ...rest]: Path, by: unknown): unknown {
  if (key === undefined) return by;
  const copy: Record<string | number, unknown> | unknown[] = Array.isArray(value) ? [...value] : { ...(value as object) };
  Reflect.set(copy, key, replaced(Reflect.get(copy, key), rest, by));
  return copy;
}

async function contextOf(messages: readonly unknown[]): Promise<readonly AgentMessage[]> {
  const file = join(tempDir(), "s.jsonl");
  const lines = messages.map((message, n) => ({ type: "message", id: `e${n}`, parentId: n === 0 ? null : `e${n - 1}`, message }));
  const header = { type: "session", version: 3, id: "x", timestamp: "", cwd: "/p" };
  writeFileSync(file, [header, ...lines].map((line) => `${JSON.stringify(line)}\n`).join(""));
  return (await opened(file, true)).log.context();
}

it("with null for any value", async () => {
  const odd = samples.flatMap((sample) => pathsOf(sample).map((path) => replaced(sample, path, null)));
  for (const message of await contextOf(odd))
    expect(AgentMessage.safeParse(message).error, JSON.stringify(message)).toBeUndefined();
});

it("with any other values for some", async () => {
  const other = fc.constantFrom<unknown>(null, 5, 1e300, -1, "", "x", true, [], {}, [null], [{}], { type: "text" });
  const odd = fc
    .constantFrom(...samples)
    .chain((sample) =>
      fc
        .array(fc.tuple(fc.constantFrom(...pathsOf(sample)), other), { minLength: 1, maxLength: 3 })
        .map((changes) => changes.reduce<unknown>((message, [path, by]) => tryReplaced(message, path, by), sample)),
    );
  await fc.assert(
    fc.asyncProperty(fc.array(odd, { minLength: 1, maxLength: 20 }), async (messages) => {
      for (const message of await contextOf(messages)) {
        expect(AgentMessage.safeParse(message).error, JSON.stringify(message)).toBeUndefined();
      }
    }),
    { numRuns: soak ? 1000 : 50 },
  );
});

/** An earlier change may have taken the place away. */
function tryReplaced(message: unknown, path: Path, by: unknown): unknown {
  return pathsOf(message).some((known) => known.join() === path.join()) ? replaced(message, path, by) : message;
}

it("sound ones stay the very objects that were read", async () => {
  const messages = await contextOf(samples);
  const same = messages.filter((message) => samples.some((sample) => JSON.stringify(sample) === JSON.stringify(message)));
  expect(same.map(({ role }) => role)).toEqual(
    samples.map(({ role }) => role).filter((role) => AgentMessage.options.some((option) => option.shape.role.value === role)),
  );
});
