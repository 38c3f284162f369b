// Built-ins are extensions like any other: each can be taken away, and comes back as a copy in the user's folder.
import { cpSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { isDefinition, isExtension } from "../core/kernel/definition.ts";
import { builtins } from "../core/loader/builtins.generated.ts";
import type { BuiltinUnit } from "../core/loader/host.ts";
import { startDaemon, type TestDaemon } from "../core/testing.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
// One home for all, so that modules are transformed once.
const home = realpathSync(mkdtempSync(join(tmpdir(), "mortise-builtins-")));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const KINDS = [
  "command",
  "tool",
  "slash command",
  "ui",
  "host request",
  "event",
  "provider",
  "service",
  "slot",
  "setting",
  "state field",
] as const;

/** `kind:name` of everything that answers, sorted. */
function answers(daemon: TestDaemon): string[] {
  return KINDS.flatMap((kind) => daemon.daemon.kernel.registry.list(kind).map((entry) => `${kind}:${entry.name}`)).sort();
}

/** What a unit contributes by itself, without its set-up. */
function fixedAnswers(unit: BuiltinUnit): string[] {
  const flat = (value: unknown): string[] => {
    if (Array.isArray(value)) return value.flatMap(flat);
    if (isExtension(value)) return value.contributes.flatMap(flat);
    return isDefinition(value) && (KINDS as readonly string[]).includes(value.kind) ? [`${value.kind}:${value.name}`] : [];
  };
  return unit.definitions().flatMap(flat);
}

async function start(units: readonly BuiltinUnit[], contained: (daemon: TestDaemon) => Promise<void>): Promise<void> {
  const daemon = await startDaemon({ builtins: units, home, watch: false });
  try {
    await contained(daemon);
  } finally {
    await daemon.stop();
  }
}

/** Puts the unit's files where a user's extension would be. */
function copyToUserFolder(unit: BuiltinUnit): void {
  const sources = join(root, unit.sources ?? "");
  const target = join(home, "extensions");
  mkdirSync(target, { recursive: true });
  if (!sources.endsWith(".ts")) {
    cpSync(sources, join(target, unit.name), { recursive: true });
    return;
  }
  cpSync(sources, join(target, basename(sources)));
  const folder = join(root, "builtin-tools");
  for (const file of readdirSync(folder)) if (file.startsWith("_")) cpSync(join(folder, file), join(target, file));
}

describe("Every built-in", () => {
  let all: string[] = [];
  it("starts with all of them", () =>
    start(builtins, async (daemon) => {
      all = answers(daemon);
      expect(all.length).toBeGreaterThan(100);
    }));

  for (const unit of builtins) {
    it(`${unit.id} can be taken away, and is restored by a copy in the user's folder`, async () => {
      const own = fixedAnswers(unit);
      const others = builtins.filter((other) => other !== unit);
      rmSync(join(home, "extensions"), { recursive: true, force: true });
      await start(others, async (daemon) => {
        // Unknown commands are answered without the id, so the answer is looked for by its command.
        daemon.send({ id: "s", type: "get_state" });
        const response = await daemon.next((frame) => frame["command"] === "get_state");
        if (unit.id === "builtin:state") expect(response["error"]).toBe("Unknown command: get_state");
        else expect(response["success"]).toBe(true);
        const left = answers(daemon);
        for (const key of own) expect(left).not.toContain(key);

        // The copy comes while the daemon runs.
        copyToUserFolder(unit);
        await daemon.reload();
        const failed = daemon.frames.filter((frame) => frame.type === "extension_error");
        expect(failed).toEqual([]);
        expect(answers(daemon)).toEqual(all);
        expect((await daemon.request("get_state"))["success"]).toBe(true);
      });
    });
  }
});
