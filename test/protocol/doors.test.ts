import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { describe, expect, it } from "vitest";
import * as root from "../../protocol/index.ts";
import * as protocol from "../../protocol/protocol.ts";

async function inputs(door: string): Promise<string[]> {
  const entry = fileURLToPath(new URL(`../../protocol/${door}`, import.meta.url));
  const result = await build({
    entryPoints: [entry],
    bundle: true,
    platform: "node",
    format: "esm",
    metafile: true,
    write: false,
  });
  return Object.keys(result.metafile.outputs["index.js"]?.inputs ?? Object.values(result.metafile.outputs)[0]?.inputs ?? {});
}

describe("doors", () => {
  it("mortise: the client alone, nothing but Node at run time", async () => {
    expect(Object.keys(root).sort()).toEqual(["HostClient", "HostError"]);
    const files = await inputs("index.ts");
    expect(files.length).toBeGreaterThan(8);
    expect(files.filter((file) => !file.startsWith("protocol/"))).toEqual([]);
    expect(files.filter((file) => /protocol\/(message|content|model|frame)\.ts$/.test(file))).toEqual([]);
  });

  it("mortise/protocol: schemas and framing, nothing of the daemon", async () => {
    const files = await inputs("protocol.ts");
    expect(files.filter((file) => file.startsWith("core/"))).toEqual([]);
    expect(protocol.ResponseFrame.parse({ type: "response", success: true })).toEqual({ type: "response", success: true });
    expect(Object.keys(protocol)).toEqual(
      expect.arrayContaining(["LineSplitter", "FrameDecoder", "chunkLines", "AgentMessage", "Model"]),
    );
  });
});
