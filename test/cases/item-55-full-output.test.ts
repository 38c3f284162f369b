// agent-semantics 12.55: what is named as the full output is the full output.
import { existsSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { patience, useRigs } from "../builtin-tools/_built.ts";
import { ask, eventually } from "./_support.ts";

const { open } = useRigs();
const LINES = 30_000;
const expected = `${Array.from({ length: LINES }, (_, index) => index + 1).join("\n")}\n`;
const fileOf = (text: string) => /\[Full output: ([^,\]]+)/.exec(text)?.[1] ?? "";
const read = (path: string) => readFileSync(path, "utf8");

it.each(["rpc", "rpc-ui"] as const)(
  "the file holds everything, in the foreground and behind it, with %s (item 55)",
  patience,
  async (mode) => {
    const files = { "config.yml": "bash:\n  autoBackground:\n    enabled: true\n    thresholdMs: 2500\n" };
    const rig = await open({ mode, files });
    rig.fake.otherwise({ text: "Noted" });
    const direct = await rig.call("bash", { command: `seq ${LINES}` });
    expect(read(fileOf(direct.text))).toBe(expected);
    expect(direct.details["fullOutputPath"]).toBe(fileOf(direct.text));

    const moved = await rig.call("bash", { command: `seq ${LINES / 2}; sleep 4; seq ${LINES / 2 + 1} ${LINES}` });
    expect(moved.details["async"]).toMatchObject({ state: "running" });
    const told = await eventually("the job is told", () => {
      const frame = rig.daemon.frames.find(
        (each) => each.type === "message_end" && JSON.stringify(each).includes("async-result"),
      );
      return frame && JSON.stringify(frame);
    });
    expect(read(fileOf(told.replaceAll("\\n", "\n")))).toBe(expected);

    const answer = await ask(rig.daemon, "bash", { command: `seq ${LINES}` });
    expect(answer).toMatchObject({ truncated: true, totalLines: LINES });
    expect(read(String(answer["fullOutputPath"]))).toBe(expected);
  },
);

it("artifact:// reads it back, with lines and selectors, for this conversation only (item 55)", patience, async () => {
  const rig = await open();
  const direct = await rig.call("bash", { command: `seq ${LINES}` });
  const id = String(direct.details["artifactId"]);
  expect(direct.text).toContain(`artifact://${id}]`);
  const lines = await rig.call("read", { path: `artifact://${id}:20000-20002,29999` });
  expect(lines.text).toBe("[Lines 20000-20002 of 30000]\n20000\n20001\n20002\n[Lines 29999-30000 of 30000]\n29999\n30000");
  expect(await rig.call("read", { path: `ARTIFACT://${id}`, offset: 30_000 })).toMatchObject({
    isError: false,
    text: expect.stringMatching(/^30000\n/),
  });
  for (const path of ["artifact://999", "artifact://../../etc/passwd", "artifact://"]) {
    expect(await rig.call("read", { path }), path).toMatchObject({ isError: true });
  }
  expect(await rig.call("write", { path: `artifact://${id}`, content: "x" })).toMatchObject({ isError: true });
  await ask(rig.daemon, "new_session");
  expect(await rig.call("read", { path: `artifact://${id}` })).toMatchObject({ isError: true });
});

it(
  "the oldest outputs go when all together take more than artifacts.maxBytes, and the model is told (item 55)",
  patience,
  async () => {
    const rig = await open({ files: { "config.yml": "artifacts:\n  maxBytes: 400000\n" } });
    const ids: string[] = [];
    const paths: string[] = [];
    for (let round = 0; round < 4; round++) {
      const { details } = await rig.call("bash", { command: "head -c 150000 /dev/zero | tr '\\0' x" });
      ids.push(String(details["artifactId"]));
      paths.push(String(details["fullOutputPath"]));
    }
    await ask(rig.daemon, "bash", { command: "head -c 150000 /dev/zero | tr '\\0' y" });
    await eventually("the oldest are gone", () => paths.slice(0, 3).every((path) => !existsSync(path)));
    const gone = await rig.call("read", { path: `artifact://${ids[0]}` });
    expect(gone).toMatchObject({ isError: true, text: expect.stringContaining("the oldest are removed") });
    expect(await rig.call("read", { path: `artifact://${ids[3]}` })).toMatchObject({ isError: false });
  },
);
