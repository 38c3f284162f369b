// What extensions do to a daemon, by accident or on purpose. Each is a module; `due` is the event of the `extension_error` that has
// to name it, where one is due.
export interface Trick {
  readonly name: string;
  readonly code: string;
  /** Part of the text of the error, or undefined when none is due. */
  readonly due?: RegExp;
  /** A prompt sent once it is loaded; "hi" otherwise. */
  readonly prompt?: string;
  /** The error comes only when it is taken out. */
  readonly atEnd?: boolean;
  /** Abort once its tool has answered: the model of the tests would say all of it again. */
  readonly cut?: boolean;
}

const door = 'import * as m from "mortise/extension"; const { z } = m;\n';
const tool = (name: string, run: string) =>
  `${door}export default m.defineTool({ name: "${name}", description: "d", params: z.object({}), run: ${run} });`;
const setup = (body: string, head = "") =>
  `${door}${head}\nexport default m.defineExtension({ name: "e", setup(scope) { ${body} } });`;
const onRun = (body: string, head = "") =>
  `${door}${head}\nexport default m.defineHook(m.runStarting, async (value, ctx) => { ${body} });`;
const call = (name: string) => `call ${name} {}`;

export const TRICKS: readonly Trick[] = [
  // ── Errors that arrive late ────────────────────────────────────────────────────────────────────────────────────────────
  { name: "throws in a timer", code: setup('setTimeout(() => { throw new Error("late timer") }, 1)'), due: /late timer/ },
  {
    name: "throws in an immediate",
    code: setup('setImmediate(() => { throw new Error("late immediate") })'),
    due: /late immediate/,
  },
  { name: "throws in nextTick", code: setup('process.nextTick(() => { throw new Error("late tick") })'), due: /late tick/ },
  {
    name: "throws in a microtask",
    code: setup('queueMicrotask(() => { throw new Error("late microtask") })'),
    due: /late microtask/,
  },
  { name: "rejects and nobody listens", code: setup('Promise.reject(new Error("late rejection"))'), due: /late rejection/ },
  {
    name: "throws late in an async function",
    code: setup('(async () => { await 1; await null; throw new Error("late async") })()'),
    due: /late async/,
  },
  {
    name: "throws in a callback of fs",
    code: setup('stat("/", () => { throw new Error("late fs") })', 'import { stat } from "node:fs";'),
    due: /late fs/,
  },
  {
    name: "throws in an event of a child",
    code: setup(
      'spawn("true").on("exit", () => { throw new Error("late child") })',
      'import { spawn } from "node:child_process";',
    ),
    due: /late child/,
  },
  {
    name: "emits an error nobody listens to",
    code: setup(
      'const e = new EventEmitter(); setTimeout(() => e.emit("error", new Error("late emitter")), 1)',
      'import { EventEmitter } from "node:events";',
    ),
    due: /late emitter/,
  },
  {
    name: "throws in a listener of the process",
    code: setup('process.on("custom", () => { throw new Error("late listener") }); setTimeout(() => process.emit("custom"), 1)'),
    due: /late listener/,
  },
  {
    name: "spawns what does not exist",
    code: setup('spawn("/no/such/program")', 'import { spawn } from "node:child_process";'),
    due: /ENOENT/,
  },
  {
    name: "connects to what does not listen",
    code: setup('connect(1, "127.0.0.1")', 'import { connect } from "node:net";'),
    due: /ECONNREFUSED|EACCES|EPERM/,
  },
  { name: "rejects in a storm", code: setup('for (let i = 0; i < 2000; i++) Promise.reject(new Error("storm"))'), due: /storm/ },
  {
    name: "throws what is no error",
    code: setup("setTimeout(() => { throw null }, 1); setTimeout(() => { throw { toString() { throw 1 } } }, 2)"),
    due: /./,
  },
  {
    name: "throws an error with getters that throw",
    code: onRun(
      'const e = new Error("x"); Object.defineProperty(e, "message", { get() { throw new Error("getter of message") } }); Object.defineProperty(e, "stack", { get() { throw 1 } }); throw e;',
    ),
    due: /./,
  },
  // ── Ending the process ─────────────────────────────────────────────────────────────────────────────────────────────────
  { name: "exits while loading", code: `process.exit(3);\n${setup("")}`, due: /process\.exit is not available/ },
  { name: "exits in a timer", code: setup("setTimeout(() => process.exit(3), 1)"), due: /process\.exit is not available/ },
  {
    name: "exits through the module",
    code: setup("exit(3)", 'import { exit } from "node:process";'),
    due: /process\.exit is not available/,
  },
  { name: "aborts", code: setup("setTimeout(() => process.abort(), 1)"), due: /process\.abort is not available/ },
  {
    name: "kills the process",
    code: setup('setTimeout(() => process.kill(process.pid, "SIGKILL"), 1)'),
    due: /process\.kill is not available/,
  },
  {
    name: "kills the process group",
    code: setup('setTimeout(() => process.kill(0, "SIGKILL"), 1)'),
    due: /process\.kill is not available/,
  },
  { name: "uses reallyExit", code: setup("setTimeout(() => process.reallyExit(3), 1)"), due: /reallyExit is not available/ },
  { name: "emits a signal", code: setup('setTimeout(() => process.emit("SIGTERM"), 1)'), due: /SIGTERM/ },
  { name: "emits exit", code: setup('setTimeout(() => process.emit("exit", 1), 1)'), due: /emit\("exit"\)/ },
  { name: "sets an exit code", code: setup("process.exitCode = 7") },
  {
    name: "exits in a worker",
    code: setup(
      "new Worker(\"process.stdout.write('worker'); process.exit(3)\", { eval: true, stdout: true })",
      'import { Worker } from "node:worker_threads";',
    ),
  },
  // ── Standard streams ───────────────────────────────────────────────────────────────────────────────────────────────────
  {
    name: "writes to stdout in every way",
    code: setup(
      'process.stdout.write("a"); console.log("b"); process.stdout.end("c"); writeSync(1, "d"); writeFileSync("/dev/stdout", "e"); createWriteStream("/dev/fd/1").end("f"); writeFileSync(1, "g")',
      'import { writeSync, writeFileSync, createWriteStream } from "node:fs";',
    ),
  },
  {
    name: "lets children inherit stdout",
    code: setup(
      'execSync("echo x", { stdio: "inherit" }); spawn("echo", ["y"], { stdio: [0, 1, 2] }); spawnSync("echo", ["z"], { stdio: "inherit" })',
      'import { execSync, spawn, spawnSync } from "node:child_process";',
    ),
  },
  {
    name: "closes stdout",
    code: setup(
      "try { closeSync(1) } catch {} try { process.stdout.destroy() } catch {}",
      'import { closeSync } from "node:fs";',
    ),
  },
  {
    name: "closes stdin",
    code: setup("try { closeSync(0) } catch {} try { process.stdin.destroy() } catch {}", 'import { closeSync } from "node:fs";'),
  },
  {
    name: "reads stdin",
    code: setup(
      'process.stdin.on("data", () => {}); process.stdin.resume(); try { readSync(0, Buffer.alloc(10)) } catch {} createInterface({ input: process.stdin })',
      'import { readSync } from "node:fs"; import { createInterface } from "node:readline";',
    ),
  },
  { name: "destroys every handle", code: setup("for (const handle of process._getActiveHandles()) handle.destroy?.()") },
  { name: "prints in a storm", code: setup('for (let i = 0; i < 20000; i++) console.log("x".repeat(50))') },
  // ── The process and its globals ────────────────────────────────────────────────────────────────────────────────────────
  {
    name: "removes all listeners of the process",
    code: setup(
      'process.removeAllListeners(); process.removeAllListeners("uncaughtException"); for (const l of process.listeners("uncaughtException")) process.off("uncaughtException", l); setTimeout(() => { throw new Error("still caught") }, 1)',
    ),
    due: /still caught/,
  },
  {
    name: "captures uncaught exceptions",
    code: setup("setTimeout(() => process.setUncaughtExceptionCaptureCallback(() => {}), 1)"),
    due: /CaptureCallback is not available/,
  },
  { name: "replaces JSON.stringify", code: setup('try { JSON.stringify = () => "x"; JSON.parse = () => ({}) } catch {}') },
  {
    name: "replaces globals",
    code: setup(
      "globalThis.Promise = class {}; globalThis.JSON = {}; globalThis.setTimeout = () => {}; globalThis.Buffer = null; globalThis.process = {}; globalThis.AbortController = null",
    ),
  },
  {
    name: "pollutes Object.prototype",
    code: setup('Object.prototype.polluted = "yes"; scope.own(() => { delete Object.prototype.polluted })'),
  },
  {
    name: "changes the directory",
    code: setup('setTimeout(() => process.chdir("/"), 1)'),
    due: /process\.chdir is not available/,
  },
  {
    name: "empties the environment",
    code: setup("for (const key of Object.keys(process.env)) delete process.env[key]"),
    prompt: 'call bash {"command":"printenv PATH"}',
  },
  { name: "starts a hundred thousand timers", code: setup("for (let i = 0; i < 1e5; i++) setTimeout(() => {}, 1e7)") },
  {
    name: "leaks file descriptors",
    code: setup('for (let i = 0; i < 200; i++) openSync("/dev/null", "r")', 'import { openSync } from "node:fs";'),
  },
  {
    name: "poisons the module loader",
    code: setup(
      'try { Module._load = () => { throw 1 }; Module._resolveFilename = () => "/x"; require.cache = null } catch {} scope.own(() => {})',
      'import Module from "node:module";',
    ),
  },
  {
    name: "plays with AsyncLocalStorage",
    code: setup(
      'const als = new AsyncLocalStorage(); als.enterWith({}); als.disable(); als.exit(() => setTimeout(() => { throw new Error("als") }, 1))',
      'import { AsyncLocalStorage } from "node:async_hooks";',
    ),
    due: /als/,
  },
  // ── What handlers do and give ──────────────────────────────────────────────────────────────────────────────────────────
  { name: "recurses in a handler", code: onRun("const f = () => f() + 1; f();"), due: /Maximum call stack/ },
  { name: "throws in a handler", code: onRun('throw new Error("in handler")'), due: /in handler/ },
  {
    name: "changes frozen input",
    code: `${door}export default m.defineHook(m.toolSeal, ({ args }) => { Object.assign(args, { path: "/etc" }); });`,
    prompt: 'call ls {"path":"."}',
    due: /read only|not extensible|Cannot/,
  },
  {
    name: "answers hooks with proxies",
    code: `${door}export default [m.defineHook(m.contextBuilding, () => new Proxy({}, { get() { throw new Error("trap") } })), m.defineHook(m.beforeAgentStart, () => new Proxy({}, { has() { throw 1 }, get: () => undefined }))];`,
  },
  { name: "gives a giant string", code: tool("giant", '() => "x".repeat(6e6)'), prompt: call("giant"), cut: true },
  {
    name: "gives a circle",
    code: tool(
      "circle",
      '() => { const details = {}; details.self = details; return { content: [{ type: "text", text: "ok" }], details } }',
    ),
    prompt: call("circle"),
  },
  {
    name: "gives a BigInt",
    code: tool("bigint", '() => ({ content: [{ type: "text", text: "ok" }], details: { n: 1n } })'),
    prompt: call("bigint"),
  },
  {
    name: "gives a proxy with getters that throw",
    code: tool(
      "trap",
      '() => new Proxy({}, { get(_, key) { if (key === "then") return undefined; throw new Error("trap") }, has() { throw 1 } })',
    ),
    prompt: call("trap"),
  },
  {
    name: "gives a thenable that never settles as text",
    code: tool("odd", "() => ({ content: { then() {} } })"),
    prompt: call("odd"),
  },
  { name: "gives nothing, numbers and symbols", code: tool("nothing", "() => Symbol('x')"), prompt: call("nothing") },
  {
    name: "sends updates that are no JSON",
    code: tool(
      "updates",
      '(ctx) => { const c = {}; c.c = c; for (const v of [1n, c, null, { content: 1 }, () => {}]) try { ctx.update(v) } catch {} return "ok" }',
    ),
    prompt: call("updates"),
  },
  {
    name: "keeps sending after its end",
    code: tool(
      "late",
      '(ctx) => { setTimeout(() => ctx.update({ content: [{ type: "text", text: "late" }] }), 20); return "ok" }',
    ),
    prompt: call("late"),
  },
  {
    name: "throws in the getters of a definition",
    code: `${door}const d = m.defineTool({ name: "g", description: "d", params: z.object({}), run: () => "" }); Object.defineProperty(d, "name", { get() { throw new Error("getter") } }); export default d;`,
    due: /getter/,
  },
  // ── Loading ────────────────────────────────────────────────────────────────────────────────────────────────────────────
  { name: "exports a thenable", code: "export default { then(resolve) { resolve(1) } };", due: /must export/ },
  {
    name: "exports a proxy that throws",
    code: 'export default new Proxy({}, { get() { throw new Error("proxy default") }, has() { throw new Error("proxy default") } });',
    due: /proxy default|must export/,
  },
  { name: "throws while loading", code: 'throw new Error("at load");', due: /at load/ },
  { name: "throws undefined while loading", code: "throw undefined;", due: /./ },
  {
    name: "deletes itself while loading",
    code: `import { unlinkSync } from "node:fs";\nunlinkSync(import.meta.filename);\n${setup("")}`,
  },
  { name: "never ends loading", code: `await new Promise(() => {});\n${setup("")}` },
  {
    name: "never ends its set-up",
    code: `${door}export default m.defineExtension({ name: "e", setup: () => new Promise(() => {}) });`,
  },
  {
    name: "registers names in a loop",
    code: setup(
      'let off; const t = setInterval(() => { off?.(); off = scope.add(m.defineTool({ name: "loop", description: "d", params: z.object({}), run: () => "" })) }, 1); setTimeout(() => clearInterval(t), 100)',
    ),
  },
  {
    name: "registers ten thousand tools",
    code: setup(
      'scope.add(...Array.from({ length: 1e4 }, (_, i) => m.defineTool({ name: "t" + i, description: "d", params: z.object({}), run: () => "" })))',
    ),
    prompt: call("t9999"),
  },
  { name: "registers what is no definition", code: setup('scope.add({ kind: "tool", name: "fake" }, null)'), due: /./ },
  {
    name: "fakes a frame of the daemon",
    code: onRun('ctx.sendRaw({ type: "x", get bad() { throw new Error("frame getter") } })'),
  },
  { name: "sends a circular frame", code: onRun('const c = { type: "x" }; c.c = c; ctx.sendRaw(c)') },
  {
    name: "hangs when it is told to go",
    code: setup("scope.own(() => new Promise(() => {})); scope.onRetire(() => new Promise(() => {}))"),
  },
  {
    name: "throws when it is told to go",
    code: setup('scope.own(() => { throw new Error("in undo") }); scope.onRetire(() => { throw new Error("in retire") })'),
    due: /in retire|in undo/,
    atEnd: true,
  },
];
