// The RPC client class of @oh-my-pi/pi-coding-agent 18.2.3, unmodified and under Bun, drives the built daemon with protocol v2.
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { BIN } from "../support/process.ts";
import { installed } from "./_folder.ts";

const client = installed("omp", "@oh-my-pi/pi-coding-agent/src/modes/rpc/rpc-client.ts");
const bun = installed("omp", `@oven/bun-${process.platform}-${process.arch}/bin/bun`);
const session = fileURLToPath(new URL("./_omp-session.mjs", import.meta.url));

it.skipIf(client === undefined || bun === undefined)(
  "oh-my-pi's client runs a session: prompts, queues, host tools, pages, chunks, state",
  async () => {
    const home = realpathSync(mkdtempSync(join(tmpdir(), "mortise-foreign-omp-")));
    mkdirSync(join(home, "work"));
    try {
      const { stdout } = await promisify(execFile)(bun ?? "", ["run", session, client ?? "", BIN, join(home, "work")], {
        cwd: home,
        env: { ...process.env, MORTISE_HOME: home, HOME: home },
        timeout: 150_000,
        maxBuffer: 64 * 1024 * 1024,
      });
      const seen = JSON.parse(stdout) as Record<string, unknown>;
      expect(seen["error"]).toBeUndefined();
      expect(seen["prompt"]).toEqual(expect.arrayContaining(["agent_start", "message_update", "message_end", "agent_end"]));
      expect(seen).toMatchObject({
        text: "hello there",
        hostTool: "double answered: twice is 42",
        page: 2,
        bash: { output: "out\n", exitCode: 3, cancelled: false },
        state: { isStreaming: false, interruptMode: "immediate" },
        models: expect.arrayContaining(["echo"]),
        commands: expect.any(Number),
        providers: expect.arrayContaining(["anthropic", "openai"]),
        stats: { userMessages: expect.any(Number) },
        big: 1_500_000,
        newSession: { cancelled: false },
        empty: [],
      });
      expect((seen["users"] as string[]).slice(0, 5)).toEqual(expect.arrayContaining(["hello there", "steered", "followed"]));
      expect(seen["lifecycle"]).toEqual(
        expect.arrayContaining(["turn_start", "tool_execution_start", "tool_execution_end", "agent_end"]),
      );
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  },
  180_000,
);
