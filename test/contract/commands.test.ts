// The contract of every command that is registered, whichever unit it comes from.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { z } from "zod";
import { startDaemon, type TestDaemon } from "../../core/testing.ts";
import { collect } from "../../docs/collect.ts";
import { builtinModules, jsonSchema, kebab, wrongFor } from "./_registered.ts";

const commands = collect("command").map(({ definition, unit }) => ({ name: definition.name, definition, unit }));
let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await startDaemon({ watch: false });
});
afterAll(() => daemon.stop());

it("the daemon registers exactly the commands of the catalogue", () => {
  const registered = daemon.daemon.kernel.registry.list("command").map((entry) => entry.name);
  expect([...registered].sort()).toEqual(commands.map(({ name }) => name).sort());
});

it("each stands in a file of its name", async () => {
  for (const { path, fileName, definitions } of await builtinModules()) {
    for (const each of definitions) if (each.kind === "command") expect(fileName, path).toBe(kebab(each.name));
  }
});

describe.each(commands)("$name", ({ name, definition }) => {
  const params = definition.params as z.ZodType;
  const example = definition.example.params;

  it("is named, grouped and described in the house's form", () => {
    expect(name).toMatch(/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/);
    expect(definition.group).toMatch(/^[A-Z]/);
    expect(definition.summary.length).toBeGreaterThan(10);
    expect(definition.summary).toMatch(/^[A-Z]/);
    expect(definition.summary).not.toContain("\n");
    expect(["serial", "concurrent"]).toContain(definition.concurrency);
    expect(["000", "002", "both", "mortise"]).toContain(definition.source ?? "mortise");
  });

  it("has an example that fits its own schemas", () => {
    expect(params.safeParse(example).error?.issues ?? []).toEqual([]);
    const { result, failure } = definition.example;
    if (result !== undefined && result !== null) {
      expect(definition.result, "an example result needs a result schema").toBeDefined();
      expect((definition.result as z.ZodType).safeParse(result).error?.issues ?? []).toEqual([]);
    }
    if (failure !== undefined) expect(failure).toMatch(/^\S.*[^\s]$/);
  });

  it("can be printed as JSON Schema, its parameters as an object", () => {
    const schema = jsonSchema(params, "input");
    expect(schema.type).toBe("object");
    for (const reserved of ["id", "type"]) expect(schema.properties ?? {}).not.toHaveProperty(reserved);
    if (definition.result !== undefined) expect(jsonSchema(definition.result as z.ZodType, "output")).toBeTypeOf("object");
  });

  it("ignores keys it does not know", () => {
    const id = "x";
    expect(params.parse({ ...example, id, type: name, zz_unknown: { deep: 1 } })).toEqual(params.parse(example));
  });

  it("refuses values of the wrong type under the request's id, string or number", async () => {
    const { properties = {}, required = [] } = jsonSchema(params, "input");
    let number = 0;
    const refused = async (broken: Record<string, unknown>, what: string) => {
      const ids: (string | number)[] = [`wrong-${name}-${what}`, 100_000 + Math.floor(Math.random() * 1e9) + number++];
      for (const id of ids) {
        const after = daemon.frames.length;
        daemon.send({ ...broken, id, type: name });
        const response = await daemon.next((frame) => frame.type === "response" && frame["id"] === id, { after });
        expect(response, what).toMatchObject({
          id,
          command: name,
          success: false,
          error: expect.any(String),
        });
        // A few commands check a value themselves, with the words of the wire documents.
        if (!params.safeParse(broken).success) expect(response["code"], what).toBe("invalid_params");
        expect(String(response["error"]).length).toBeLessThan(1_000);
      }
    };
    for (const [key, property] of Object.entries(properties)) {
      const wrong = wrongFor(property);
      if (wrong !== undefined) await refused({ ...example, [key]: wrong.value }, key);
    }
    for (const key of required) {
      const { [key]: _left, ...rest } = example;
      await refused(rest, `without ${key}`);
    }
  });

  it("answers once under the request's id", async () => {
    // Without its required parameters a command that has some does nothing, so every one can be asked.
    for (const id of [`echo-${name}`, 7_000_000 + commands.findIndex((each) => each.name === name)]) {
      const after = daemon.frames.length;
      daemon.send({ id, type: name });
      const response = await daemon.next((frame) => frame.type === "response" && frame["id"] === id, { after });
      expect(response).toMatchObject({ id, type: "response", command: name, success: expect.any(Boolean) });
      if (response["success"] === true && definition.result === undefined) expect(response).not.toHaveProperty("data");
      if (response["success"] === false) expect(response["error"]).toMatch(/\S/);
      daemon.send({ id: `after-${id}`, type: "abort" });
      await daemon.next((frame) => frame["id"] === `after-${id}`, { after });
      expect(daemon.frames.filter((frame) => frame.type === "response" && frame["id"] === id)).toHaveLength(1);
    }
  });
});
