// public-bugs 7: a reply over the frame limit comes whole or fails clearly; it is never a small success.
import { expect, it } from "vitest";
import type { Frame } from "../../protocol/frame.ts";
import { ask, ofId, useProcesses, wait } from "./_support.ts";

const { start } = useProcesses();

const models = Array.from({ length: 9_000 }, (_, index) => ({
  id: `model-${index}`,
  name: `Model number ${index} of a long list`,
}));
// JSON is YAML.
const files = {
  "models.yml": JSON.stringify({
    providers: { big: { baseUrl: "http://127.0.0.1:9/v1", api: "openai-completions", auth: "none", models } },
  }),
};
const LIMIT = 1_048_576;

const isBig = (list: unknown): number => (list as { provider: string }[]).filter((model) => model.provider === "big").length;

it("v1: fails with the id, the size, the limit and the way out (case 7 A)", async () => {
  const daemon = start({ files });
  daemon.send({ id: "c1", type: "get_available_models" });
  const response = await wait(daemon, (frame) => frame["id"] === "c1");
  expect(response).toMatchObject({ command: "get_available_models", success: false, code: "too_large" });
  expect(response).not.toHaveProperty("data");
  const error = String(response["error"]);
  expect(error).toContain(String(LIMIT));
  expect(Number(/of (\d{7}) bytes/.exec(error)?.[1])).toBeGreaterThan(1_500_000);
  expect(error).toMatch(/negotiate_protocol|--max-frame-bytes/);
  expect(await ask(daemon, "get_state")).toMatchObject({ isStreaming: false });
  for (const line of daemon.stdout().split("\n")) expect(Buffer.byteLength(line)).toBeLessThan(LIMIT);
}, 90_000);

it("v1 without a limit gives the whole reply (case 7 A)", async () => {
  const daemon = start({ files, args: ["--max-frame-bytes", "0"] });
  const { models: list } = await ask(daemon, "get_available_models");
  expect(isBig(list)).toBe(9_000);
}, 90_000);

it("v2: one uninterrupted sequence of chunks among streaming events (case 7 B)", async () => {
  const daemon = start({ files });
  expect(await ask(daemon, "negotiate_protocol", { protocolVersion: 2 })).toEqual({ protocolVersion: 2 });
  daemon.send({ id: "p", type: "prompt", message: `delay 2\n${"word ".repeat(2_000)}` });
  await wait(daemon, "message_update");
  const lines = [
    { id: "c2", type: "get_available_models" },
    { id: "c3", type: "get_state" },
  ];
  daemon.send(Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join("")));
  const last = await wait(daemon, (frame) => frame.type === "rpc_chunk" && Number(frame["index"]) === Number(frame["count"]) - 1);
  await wait(daemon, (frame) => frame["id"] === "c3", 0);
  await wait(daemon, "message_update", daemon.frames.length);

  const first = daemon.frames.findIndex((frame) => frame.type === "rpc_chunk" && frame["index"] === 0);
  const count = Number(last["count"]);
  const sequence = daemon.frames.slice(first, first + count);
  expect(sequence.map((frame) => [frame.type, frame["chunkId"], frame["index"], frame["count"]])).toEqual(
    Array.from({ length: count }, (_, index) => ["rpc_chunk", last["chunkId"], index, count]),
  );
  for (const line of daemon.stdout().split("\n")) expect(Buffer.byteLength(line) + 1).toBeLessThanOrEqual(LIMIT);
  const bytes = Buffer.concat(sequence.map((frame) => Buffer.from(String(frame["data"]), "base64")));
  expect(bytes.length).toBe(last["byteLength"]);
  const response = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as Frame;
  expect(response).toMatchObject({ id: "c2", type: "response", command: "get_available_models", success: true });
  expect(isBig((response["data"] as { models: unknown }).models)).toBe(9_000);
  expect(ofId(daemon, "c3")).toHaveLength(1);
  await ask(daemon, "abort");
}, 90_000);

it("refuses other versions and stays as it was (case 7 C)", async () => {
  const daemon = start({ files });
  for (const protocolVersion of [3, "2", 1, null]) {
    const id = `v${String(protocolVersion)}`;
    daemon.send({ id, type: "negotiate_protocol", protocolVersion });
    expect(await wait(daemon, (frame) => frame["id"] === id, 0)).toMatchObject({
      command: "negotiate_protocol",
      success: false,
      error: `Unsupported RPC protocol version: ${String(protocolVersion)}`,
    });
  }
  daemon.send({ id: "none", type: "negotiate_protocol" });
  expect(await wait(daemon, (frame) => frame["id"] === "none", 0)).toMatchObject({ success: false, code: "invalid_params" });
  daemon.send({ id: "still-v1", type: "get_available_models" });
  expect(await wait(daemon, (frame) => frame["id"] === "still-v1", 0)).toMatchObject({ success: false, code: "too_large" });
  for (const id of ["n1", "n2"]) {
    daemon.send({ id, type: "negotiate_protocol", protocolVersion: 2 });
    expect(await wait(daemon, (frame) => frame["id"] === id, 0)).toMatchObject({ success: true, data: { protocolVersion: 2 } });
  }
  daemon.send({ id: "n3", type: "negotiate_protocol", protocolVersion: 3 });
  expect(await wait(daemon, (frame) => frame["id"] === "n3", 0)).toMatchObject({ success: false });
  daemon.send({ id: "still-v2", type: "get_available_models" });
  await wait(daemon, "rpc_chunk");
  expect(await daemon.end()).toBe(0);
}, 90_000);
