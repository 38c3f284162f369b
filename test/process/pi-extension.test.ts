// One extension written for pi, unmodified, on the built daemon: everything it does is seen through frames, ten saves in the
// middle of a streaming turn change nothing but the version, and nothing is there or happens twice.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { Frame } from "../../protocol/frame.ts";
import { ask, request, textOf, useProcesses, wait } from "../cases/_support.ts";
import { type FakeServer, startFakeAnthropic } from "../support/fake-anthropic.ts";
import { type DaemonProcess, ROOT } from "../support/process.ts";

const SAVES = 10;
const PATH = "extensions/workshop.ts";
const source = readFileSync(join(ROOT, "test/examples/pi/workshop.ts"), "utf8");
const version = (n: number) => source.replace("const VERSION = 0;", `const VERSION = ${n};`);

const { start, later } = useProcesses();
/** Whatever still waits when a test ends early. */
const releases: (() => void)[] = [];
afterEach(() => {
  for (const release of releases.splice(0)) release();
});

async function begin(mode: "rpc" | "rpc-ui"): Promise<{ daemon: DaemonProcess; service: FakeServer }> {
  const service = await startFakeAnthropic();
  later(() => service.close());
  const daemon = start({
    mode,
    model: "anthropic/claude-sonnet-4-5",
    env: { ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: service.url, PI_RPC_EMIT_TITLE: "1" },
    files: { [PATH]: version(0), "cwd/precious/notes.txt": "kept" },
  });
  const first = await wait(daemon, (frame) => frame["statusKey"] === "workshop", 0);
  expect(first["statusText"]).toBe("Version 0 after startup");
  // Steering comes in every round, and is not to skip the calls of the answer it meets.
  await ask(daemon, "set_interrupt_mode", { mode: "wait" });
  return { daemon, service };
}

/** Scripts an answer that streams words until it is released, then calls the tools. */
function scriptTurn(service: FakeServer, n: number): () => void {
  let release = (): void => {};
  const hold = new Promise<void>((resolve) => {
    release = resolve;
  });
  releases.push(release);
  service.script({
    text: Array.from({ length: 20 }, (_, index) => `word ${index} `),
    hold,
    holdAfter: 8,
    toolCalls: [
      { name: "bash", arguments: { command: `echo tok_secret${n}` } },
      { name: "bash", arguments: { command: "rm -r precious" } },
      { name: "count_words", arguments: { lines: ["one two", "three", "four five six"] } },
    ],
  });
  return release;
}

/** Scripts an answer of words alone that begins only when it is released: until then nothing of its turn is in the frames. */
function scriptEnd(service: FakeServer, text: string): () => void {
  let release = (): void => {};
  const hold = new Promise<void>((resolve) => {
    release = resolve;
  });
  releases.push(release);
  service.script({ text, hold });
  return release;
}

const ui = (frames: readonly Frame[], method: string) =>
  frames.filter((frame) => frame.type === "extension_ui_request" && frame["method"] === method);
const statuses = (frames: readonly Frame[]) =>
  ui(frames, "setStatus")
    .filter((frame) => frame["statusKey"] === "workshop")
    .map((frame) => String(frame["statusText"]));

/** `/workshop`: every method of `ctx.ui` arrives once, with this version's words, and every answer comes back. */
async function tour(daemon: DaemonProcess, n: number): Promise<void> {
  const from = daemon.frames.length;
  const asked = (title: string) => wait(daemon, (frame) => frame["title"] === title, from);
  const answer = async (title: string, fields: Record<string, unknown>) =>
    daemon.send({ type: "extension_ui_response", id: (await asked(title))["id"], ...fields });
  daemon.send({ id: `tour-${n}`, type: "prompt", message: "/workshop of tools" });
  await answer("Pick", { value: "green" });
  await answer("Sure?", { confirmed: true });
  await answer("Name", { value: "Ada" });
  await answer("Text", { value: "written" });
  await wait(daemon, (frame) => frame["notifyType"] === "error", from);
  await wait(daemon, (frame) => frame.type === "prompt_result" && frame["id"] === `tour-${n}`, from);

  const told = { version: n, choice: "green", sure: true, name: "Ada", text: "written", withdrawn: false };
  const withdrawn = (await asked("Withdrawn"))["id"];
  const shown = daemon.frames
    .slice(from)
    .filter((frame) => frame.type === "extension_ui_request" && frame["statusKey"] === undefined)
    .map(({ type, id, ...fields }) => fields);
  expect(shown).toEqual([
    { method: "setTitle", title: `Workshop ${n}` },
    { method: "setWidget", widgetKey: "workshop", widgetLines: [`Version ${n}`, "of tools"], widgetPlacement: "belowEditor" },
    { method: "set_editor_text", text: `text of version ${n}` },
    { method: "set_editor_text", text: "pasted" },
    { method: "select", title: "Pick", options: ["red", "green"] },
    { method: "confirm", title: "Sure?", message: `Version ${n} asks` },
    { method: "input", title: "Name", placeholder: "first name" },
    { method: "editor", title: "Text", prefill: "prefilled" },
    { method: "input", title: "Too late", timeout: 30 },
    { method: "confirm", title: "Withdrawn", message: "Nobody has to answer" },
    { method: "cancel", targetId: withdrawn },
    { method: "setWidget", widgetKey: "workshop" },
    ...["info", "warning", "error"].map((notifyType) => ({ method: "notify", message: JSON.stringify(told), notifyType })),
  ]);
}

/** What the host is told of the unit names each of its things once. */
async function nothingIsThereTwice(daemon: DaemonProcess, generation: number): Promise<void> {
  const state = (await ask(daemon, "get_state")) as { dumpTools: { name: string }[] };
  expect(state.dumpTools.filter((tool) => tool.name === "count_words")).toHaveLength(1);
  expect(new Set(state.dumpTools.map((tool) => tool.name)).size).toBe(state.dumpTools.length);
  const { commands } = (await ask(daemon, "get_available_commands")) as { commands: { name: string }[] };
  expect(commands.filter((command) => command.name === "workshop")).toHaveLength(1);
  const { extensions } = (await ask(daemon, "get_extensions")) as {
    extensions: { path?: string; state: string; generation: number; errors: number; contributes: string[] }[];
  };
  const units = extensions.filter((unit) => unit.path?.endsWith("workshop.ts"));
  expect(units).toHaveLength(1);
  expect(units[0]).toMatchObject({ state: "active", generation, errors: 0 });
  expect(units[0]?.contributes.toSorted()).toEqual(CONTRIBUTES);
}

/** One hook a handler, but one for all events that are frames, and two for a handler of `tool_call`. */
const CONTRIBUTES = [
  "hook:beforeAgentStart",
  "hook:contextBuilding",
  "hook:frameEmitted",
  "hook:input",
  "hook:sessionBranched",
  "hook:sessionSwitched",
  "hook:toolDecide",
  "hook:toolFinished",
  "hook:toolRewrite",
  "slash command:workshop",
  "tool:count_words",
];

/** Lets the held answer call its tools, and waits until the model is asked again. */
async function toolsOf(daemon: DaemonProcess, service: FakeServer, n: number, release: () => void): Promise<Frame[]> {
  const from = daemon.frames.length;
  const requests = service.requests.length;
  release();
  const gate = await wait(daemon, (frame) => String(frame["title"]).includes("dangerous command"), from);
  expect(gate).toMatchObject({ method: "select", title: `Version ${n} found a dangerous command: rm -r precious` });
  daemon.send({ type: "extension_ui_response", id: gate["id"], value: "Refuse" });
  await wait(daemon, (frame) => frame["statusText"] === `Version ${n}: turn_end`, from);
  await service.request(requests + 1);
  const frames = daemon.frames.slice(from);

  const ends = frames.filter((frame) => frame.type === "tool_execution_end");
  expect(ends.map((frame) => [frame["toolName"], frame["isError"], textOf(frame["result"])])).toEqual(
    expect.arrayContaining([
      ["bash", false, expect.stringMatching(new RegExp(`^tok_…\\s*cleaned by version ${n}$`))],
      ["bash", true, expect.stringContaining(`Refused by version ${n}`)],
      ["count_words", false, `version ${n} counted 6 words`],
    ]),
  );
  expect(ends).toHaveLength(3);
  expect(existsSync(join(daemon.cwd, "precious/notes.txt"))).toBe(true);
  expect(ui(frames, "select")).toHaveLength(1);
  const progress = frames.filter((frame) => frame.type === "tool_execution_update" && frame["toolName"] === "count_words");
  // Reports that follow closely are merged on the wire; the first one leaves at once.
  const reported = progress.map((frame) => textOf(frame["partialResult"]));
  expect(reported[0]).toBe(`version ${n}: 2 words`);
  const possible = [2, 3, 6].map((words) => `version ${n}: ${words} words`);
  expect(reported).toEqual(possible.filter((text) => reported.includes(text)));
  const counting = ui(frames, "setStatus").filter((frame) => frame["statusKey"] === "workshop.count");
  expect(counting.map((frame) => frame["statusText"])).toEqual([
    ...[1, 2, 3].map((line) => `Version ${n}: line ${line}`),
    undefined,
  ]);
  expectOncePerEvent(frames, n, ["tool_execution_start", "tool_execution_end", "turn_end"]);
  return frames;
}

/** As many status lines as frames of the event, all of this version. */
function expectOncePerEvent(frames: readonly Frame[], n: number, events: readonly string[]): void {
  for (const event of events) {
    const told = statuses(frames).filter((text) => text.endsWith(`: ${event}`));
    expect(told, event).toEqual(frames.filter((frame) => frame.type === event).map(() => `Version ${n}: ${event}`));
  }
}

/** The texts of the user, as the service got them. */
function userTexts(body: unknown): string[] {
  const { messages } = body as { messages: { role: string; content: string | { text?: string }[] }[] };
  return messages
    .filter((message) => message.role === "user")
    .flatMap(({ content }) => (typeof content === "string" ? [content] : content.map((part) => part.text ?? "")));
}

const expanded = (text: string, n: number) => `${text} (a short answer, says version ${n})`;

describe.each(["rpc", "rpc-ui"] as const)("An extension written for pi, with %s", (mode) => {
  it("does everything once per event, before, during and after ten saves in the middle of a turn", async () => {
    const { daemon, service } = await begin(mode);
    let release = scriptTurn(service, 0);
    let last = (): void => {};
    daemon.send({ id: "turn", type: "prompt", message: "?? begin" });
    await service.request(1);

    for (let n = 0; n <= SAVES; n++) {
      const lastTurn = daemon.frames.findLastIndex((frame) => frame.type === "turn_end");
      await wait(daemon, "message_update", lastTurn + 1);
      if (n > 0) await save(daemon, n);
      await tour(daemon, n);
      expect(await request(daemon, "prompt", { message: `?? note ${n}`, streamingBehavior: "steer" })).toMatchObject({
        success: true,
      });
      await nothingIsThereTwice(daemon, n + 1);
      expect(await ask(daemon, "get_state")).toMatchObject({ isStreaming: true });
      const finish = release;
      if (n < SAVES) release = scriptTurn(service, n + 1);
      else last = scriptEnd(service, "All done");
      await toolsOf(daemon, service, n, finish);
      const texts = userTexts(service.requests[n + 1]?.body);
      expect(texts.filter((text) => text.includes(`note ${n}`))).toEqual([expanded(`note ${n}`, n)]);
      expect(texts.filter((text) => text.startsWith("Workshop note"))).toEqual([`Workshop note of version ${n}`]);
    }
    last();
    await wait(daemon, (frame) => frame["statusText"] === `Version ${SAVES}: agent_settled`);
    expect(daemon.frames.filter((frame) => frame.type === "agent_start")).toHaveLength(1);
    expect(daemon.frames.filter((frame) => frame.type === "agent_end")).toHaveLength(1);

    await afterwards(daemon, service);
    expect(await daemon.end()).toBe(0);
    const ends = ui(daemon.frames, "notify").filter((frame) => / ends: /.test(String(frame["message"])));
    expect(ends.map((frame) => frame["message"]).sort(byVersion)).toEqual([
      ...Array.from({ length: SAVES }, (_, n) => `Version ${n} ends: reload`),
      `Version ${SAVES} ends: quit`,
    ]);
    expect(daemon.frames.filter((frame) => frame.type === "extension_error")).toEqual([]);
    expect(service.requests.map((each) => each.refusal).filter(Boolean)).toEqual([]);
  }, 120_000);
});

const byVersion = (a: unknown, b: unknown) => Number(/\d+/.exec(String(a))?.[0]) - Number(/\d+/.exec(String(b))?.[0]);

/** Saves a version and waits until it says that it is there; it starts once. */
async function save(daemon: DaemonProcess, n: number): Promise<void> {
  const from = daemon.frames.length;
  daemon.write(PATH, version(n));
  await wait(daemon, (frame) => frame["statusText"] === `Version ${n} after reload`, from);
  expect(statuses(daemon.frames).filter((text) => text === `Version ${n} after reload`)).toHaveLength(1);
}

/** A whole turn of the last version: also the events that only begin and end a run. */
async function afterwards(daemon: DaemonProcess, service: FakeServer): Promise<void> {
  const from = daemon.frames.length;
  const before = service.requests.length;
  const release = scriptTurn(service, SAVES);
  const last = scriptEnd(service, "Done again");
  daemon.send({ id: "again", type: "prompt", message: "?? again" });
  const asked = await service.request(before + 1);
  expect(userTexts(asked.body).filter((text) => text.startsWith("again"))).toEqual([expanded("again", SAVES)]);
  expect(JSON.stringify(asked.body).match(/Workshop rules of version \d+/g)).toEqual([`Workshop rules of version ${SAVES}`]);
  await toolsOf(daemon, service, SAVES, release);
  last();
  await wait(daemon, (frame) => frame["statusText"] === `Version ${SAVES}: agent_settled`, from);
  expectOncePerEvent(daemon.frames.slice(from), SAVES, ["agent_start", "turn_start", "turn_end", "agent_end"]);
  expect(statuses(daemon.frames.slice(from)).filter((text) => text.endsWith("agent_settled"))).toHaveLength(1);
  await tour(daemon, SAVES);
  await nothingIsThereTwice(daemon, SAVES + 1);
}
