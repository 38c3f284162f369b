// Results that extensions hand over as JSON text: what is none, or breaks the line, never reaches the host.
import { expect, test } from "vitest";
import { startDaemon } from "../../../core/testing.ts";

const command = (name: string, json: string) =>
  `m.defineCommand({ name: "${name}", group: "x", summary: "x", params: m.z.object({}), example: { params: {} }, run: () => new m.Serialized(${json}) })`;

test("text of an extension is looked at, of a command as of an override", async () => {
  const unit = `import * as m from "mortise/extension"; export default [
    ${command("spread", '"{\\n \\"a\\": 1}"')}, ${command("broken", '"{not json"')}, ${command("two", '"1},{"')}, ${command("none", "undefined")},
    m.overrideCommand("get_state", { run: async (ctx, params, next) => new m.Serialized((await next()).json + "]") }),
  ];`;
  const daemon = await startDaemon({ files: { "extensions/unit.ts": unit } });
  try {
    await daemon.daemon.loader.settled();
    expect(await daemon.request("spread")).toMatchObject({ success: true, data: { a: 1 } });
    for (const name of ["broken", "two", "none", "get_state"]) {
      expect(await daemon.request(name), name).toMatchObject({
        success: false,
        error: `What "${name}" answers with as serialised is no JSON`,
      });
    }
  } finally {
    await daemon.stop();
  }
});
