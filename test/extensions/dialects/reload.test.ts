// Hot reload of units written for pi: nothing twice, nothing left, nothing lost, while a turn runs.
import { describe, expect, it } from "vitest";
import type { TestDaemon } from "../../../core/testing.ts";
import { errors, notices, start, toolResults } from "./_start.ts";

const path = "extensions/unit.ts";
const rounds = process.env["MORTISE_SOAK"] ? 100 : 10;

/** A unit that registers one of everything and tells its version. */
const version = (n: number) => `
import { Type } from "@sinclair/typebox";
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";
export default function (pi: ExtensionAPI) {
  pi.registerTool({ name: "version", description: "v", parameters: Type.Object({}), execute: async () => "version ${n}" });
  pi.registerCommand("ver", { description: "v${n}", handler: async (_args, ctx) => ctx.ui.notify("command ${n}") });
  pi.events.on("ask", () => pi.events.emit("answer", ${n}));
  pi.events.on("answer", (n) => pi.appendEntry("answered", n));
  pi.on("session_start", (event, ctx) => ctx.ui.notify("start ${n} " + event.reason));
  pi.on("session_shutdown", (event, ctx) => ctx.ui.notify("stop ${n} " + event.reason));
  pi.on("tool_result", (event) => ({ content: [...event.content, { type: "text", text: "seen by ${n}" }] }));
  setInterval(() => { globalThis.ticks = (globalThis.ticks ?? 0) + 1; }, 5);
}`;

const slow = `
export default function (pi) {
  let release;
  pi.registerTool({ name: "slow", description: "waits", execute: (id, params, signal) => new Promise((resolve, reject) => {
    release = () => resolve("slow is done");
    signal.addEventListener("abort", () => reject(signal.reason));
  }) });
  pi.registerCommand("release", { handler: async () => release() });
}`;

async function reloaded(daemon: TestDaemon, n: number): Promise<void> {
  const from = daemon.frames.length;
  daemon.write(path, version(n));
  await daemon.next((frame) => frame["message"] === `start ${n} reload`, { after: from });
}

function unitOf(daemon: TestDaemon) {
  const unit = daemon.daemon.loader.units().find((each) => each.id.endsWith("unit.ts"));
  if (unit === undefined) throw new Error("The unit is not known");
  return unit;
}

describe("hot reload", () => {
  it(`${rounds} reloads in the middle of a turn: each version starts and stops once, nothing is registered twice`, async () => {
    const daemon = await start({ "unit.ts": version(0), "slow.ts": slow });
    try {
      await daemon.daemon.loader.watching;
      const contributes = unitOf(daemon).contributes;
      const turn = daemon.prompt("call slow {}\ncall version {}");
      await daemon.next("tool_execution_start");
      for (let n = 1; n <= rounds; n++) await reloaded(daemon, n);
      expect(unitOf(daemon).contributes).toEqual(contributes);
      await daemon.prompt("/release");
      const results = toolResults(await turn);
      expect(results.find((result) => result.name === "slow")?.text).toContain("slow is done");
      const after = toolResults(await daemon.prompt("call version {}"));
      expect(after).toEqual([{ name: "version", isError: false, text: `version ${rounds}\nseen by ${rounds}` }]);
      const told = notices(daemon);
      for (let n = 1; n <= rounds; n++) {
        expect(told.filter((text) => text === `start ${n} reload`)).toHaveLength(1);
        expect(told.filter((text) => text === `stop ${n - 1} reload`).length, `stop ${n - 1}`).toBeLessThanOrEqual(1);
      }
      expect(told[0]).toBe("start 0 startup");
      expect(errors(daemon)).toEqual([]);
    } finally {
      await daemon.stop();
    }
    expect(notices(daemon).filter((text) => text.endsWith("quit"))).toEqual([`stop ${rounds} quit`]);
    expect(notices(daemon).filter((text) => text.startsWith("stop"))).toHaveLength(rounds + 1);
  });

  it("the shared bus reaches the new version only, once, also while a call holds the old one", async () => {
    const unit = (n: number) =>
      version(n).replace(
        "pi.registerCommand(",
        `pi.registerTool({ name: "hold", description: "h", execute: () => new Promise((done) => { globalThis.letGo = () => done("held by ${n}"); }) });
  pi.registerCommand("let-go", { handler: async () => globalThis.letGo() });
  pi.registerCommand(`,
      );
    const asker = `export default (pi) => { pi.registerCommand("ask", { handler: async () => pi.events.emit("ask") }); };`;
    const daemon = await start({ "unit.ts": unit(1), "asker.ts": asker });
    try {
      await daemon.daemon.loader.watching;
      const turn = daemon.prompt("call hold {}");
      await daemon.next("tool_execution_start");
      const from = daemon.frames.length;
      daemon.write(path, unit(2));
      await daemon.next((frame) => frame["message"] === "start 2 reload", { after: from });
      await daemon.prompt("/ask");
      await daemon.prompt("/let-go");
      expect(toolResults(await turn)[0]?.text).toContain("held by 1");
      const { log } = daemon.daemon.conversations.attached;
      const answered = log.entries.filter((entry) => entry.type === "custom" && entry["customType"] === "answered");
      expect(answered.map((entry) => ("data" in entry ? entry.data : undefined))).toEqual([2]);
    } finally {
      await daemon.stop();
    }
  });

  it("timers of the old version die; a stray exception in one is contained and named (pi#4791)", async () => {
    const ticking = (n: number, body: string) => `
      export default function (pi) {
        let ctx;
        pi.on("session_start", (event, given) => { ctx = given; given.ui.notify("start ${n} " + event.reason); });
        setInterval(() => { ${body} }, 5);
      }`;
    const daemon = await start({
      "unit.ts": ticking(1, `if (ctx) { ctx.ui.setStatus("tick", "1"); throw new Error("Stray"); }`),
    });
    try {
      await daemon.daemon.loader.watching;
      const error = await daemon.next("extension_error", { after: 0 });
      expect(error).toMatchObject({ error: expect.stringContaining("Stray") });
      expect(String(error["extensionPath"])).toContain("unit.ts");
      const from = daemon.frames.length;
      daemon.write(path, ticking(2, `ctx?.ui.setStatus("tick", "2");`));
      await daemon.next((frame) => frame["message"] === "start 2 startup" || frame["message"] === "start 2 reload", {
        after: from,
      });
      const at = daemon.frames.length;
      await daemon.next((frame) => frame["statusText"] === "2", { after: at });
      await daemon.next((frame) => frame["statusText"] === "2", { after: daemon.frames.length });
      const since = daemon.frames.slice(at);
      expect(since.some((frame) => frame["statusText"] === "1")).toBe(false);
      expect(since.filter((frame) => frame.type === "extension_error")).toEqual([]);
      expect(await daemon.request("get_state")).toMatchObject({ success: true });
    } finally {
      await daemon.stop();
    }
  });

  it("handles of a disposed version refuse by name, notices of it are dropped", async () => {
    const unit = (n: number) => `
      export default function (pi) {
        pi.on("session_start", (event, ctx) => {
          ctx.ui.notify("start ${n} " + event.reason);
          if (${n} === 1) globalThis.stale = { pi, ctx };
        });
        pi.registerCommand("use-stale", { handler: async (_args, ctx) => {
          const { stale } = globalThis;
          stale.ctx.ui.notify("never shown");
          const tried = [];
          for (const use of [() => stale.pi.sendUserMessage("x"), () => stale.pi.registerCommand("x", { handler() {} }), () => stale.pi.on("input", () => {}), () => stale.pi.events.emit("x"), () => stale.pi.exec("true", [])]) {
            try { await use(); tried.push("worked"); } catch (error) { tried.push(error.name); }
          }
          try { await stale.ctx.ui.confirm("x", "y"); tried.push("worked"); } catch (error) { tried.push(error.name); }
          ctx.ui.notify(tried.join());
        } });
      }`;
    const daemon = await start({ "unit.ts": unit(1) });
    try {
      await daemon.daemon.loader.watching;
      const from = daemon.frames.length;
      daemon.write(path, unit(2));
      await daemon.next((frame) => frame["message"] === "start 2 reload", { after: from });
      await daemon.daemon.loader.settled();
      await daemon.prompt("/use-stale");
      await daemon.next((frame) => String(frame["message"]).includes("StaleExtensionError"), { after: from });
      expect(notices(daemon).at(-1)).toBe(Array.from({ length: 6 }, () => "StaleExtensionError").join());
      expect(notices(daemon)).not.toContain("never shown");
    } finally {
      await daemon.stop();
    }
  });

  it("a broken save changes nothing; removal takes everything away", async () => {
    const daemon = await start({ "unit.ts": version(1) });
    try {
      await daemon.daemon.loader.watching;
      const from = daemon.frames.length;
      daemon.write(path, "export default function (pi) { pi.registerTool({ name: 1 }); }");
      await daemon.next("extension_error", { after: from });
      expect(toolResults(await daemon.prompt("call version {}"))[0]?.text).toContain("version 1");
      const removedFrom = daemon.frames.length;
      const { rmSync } = await import("node:fs");
      rmSync(`${daemon.home}/${path}`);
      await daemon.next("available_commands_update", { after: removedFrom });
      expect(toolResults(await daemon.prompt("call version {}"))[0]).toMatchObject({ isError: true });
      expect(notices(daemon)).toContain("stop 1 quit");
    } finally {
      await daemon.stop();
    }
  });

  it("agent-semantics §12 item 61: a tool registered after the start is there at the next model call, and may replace itself", async () => {
    const daemon = await start({
      "unit.ts": `export default function (pi) {
        const tool = (text) => ({ name: "late", description: text, execute: async () => text });
        pi.on("session_start", () => pi.registerTool(tool("first")));
        pi.registerCommand("again", { handler: async () => pi.registerTool(tool("second")) });
      }`,
    });
    try {
      expect(toolResults(await daemon.prompt("call late {}"))[0]?.text).toBe("first");
      await daemon.prompt("/again");
      expect(toolResults(await daemon.prompt("call late {}"))[0]?.text).toBe("second");
      expect(unitOf(daemon).contributes.filter((key) => key === "tool:late")).toHaveLength(1);
    } finally {
      await daemon.stop();
    }
  });
});
