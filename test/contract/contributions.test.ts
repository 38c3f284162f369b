// The contracts of every tool, UI method, slash command, frame, host request and setting that is registered.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { z } from "zod";
import { check, jsonSchemaOf } from "../../core/agent/tool-schema.ts";
import { SlashEntry } from "../../core/services/slash.ts";
import { startDaemon, type TestDaemon } from "../../core/testing.ts";
import { collect } from "../../docs/collect.ts";
import { builtinModules, jsonSchema, kebab, type Module, wrongFor } from "./_registered.ts";

let daemon: TestDaemon;
let modules: Module[];
beforeAll(async () => {
  daemon = await startDaemon({ watch: false, options: { mode: "rpc-ui" } });
  modules = await builtinModules();
});
afterAll(() => daemon.stop());

const named = <K extends Parameters<typeof collect>[0]>(kind: K) =>
  collect(kind).map(({ definition }) => ({ name: definition.name, definition }));

describe.each(named("tool"))("tool $name", ({ name, definition }) => {
  it("is named and described for a model", () => {
    expect(name).toMatch(/^[a-z][a-z0-9_]{0,63}$/);
    expect(definition.description.length).toBeGreaterThan(20);
    expect(definition.description).toMatch(/^[A-Z]/);
  });

  it("has a plain JSON Schema of an object as parameters (agent-semantics 12.17)", () => {
    const schema = jsonSchemaOf(definition.params) as ReturnType<typeof jsonSchema>;
    expect(schema.type).toBe("object");
    expect(JSON.parse(JSON.stringify(schema))).toEqual(schema);
  });

  it("refuses arguments of the wrong type", async () => {
    const schema = jsonSchemaOf(definition.params) as ReturnType<typeof jsonSchema>;
    for (const [key, property] of Object.entries(schema.properties ?? {})) {
      const wrong = wrongFor(property);
      if (wrong !== undefined) expect((await check(definition.params, { [key]: wrong.value })).ok, key).toBe(false);
    }
    for (const value of [[], "text", 7, null])
      expect((await check(definition.params, value)).ok, JSON.stringify(value)).toBe(false);
  });
});

describe.each(named("ui"))("UI method $name", ({ definition }) => {
  const params = definition.params as z.ZodType;

  it("has an example that fits, and a printable schema", () => {
    expect(params.safeParse(definition.example).error?.issues ?? []).toEqual([]);
    const schema = jsonSchema(params, "output");
    expect(schema.type).toBe("object");
    for (const reserved of ["type", "id", "method", "timeout"]) expect(schema.properties ?? {}).not.toHaveProperty(reserved);
    expect(definition.summary).toMatch(/^[A-Z].{10}/);
  });

  it("reads answers of its own kind only", () => {
    if (definition.mode === "notice") return expect(definition.read).toBeUndefined();
    const example = params.parse(definition.example) as never;
    for (const misfit of [{}, { value: 7 }, { value: null }, { confirmed: "yes" }, { value: ["x"] }, { confirmed: null }]) {
      expect(definition.read?.(misfit, example), JSON.stringify(misfit)).toBeUndefined();
    }
  });
});

describe.each(named("event"))("frame $name", ({ name, definition }) => {
  it("has an example of its own type whose fields fit, and a printable schema", () => {
    const { type, ...fields } = definition.example;
    expect(type).toBe(name);
    expect(name).toMatch(/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/);
    expect((definition.fields as z.ZodType).safeParse(fields).error?.issues ?? []).toEqual([]);
    expect(jsonSchema(definition.fields as z.ZodType, "output").properties ?? {}).not.toHaveProperty("type");
    expect(["conversation", "process"]).toContain(definition.scope);
    expect(definition.summary).toMatch(/^[A-Z].{10}/);
  });
});

describe.each(named("host request"))("host request $name", ({ name, definition }) => {
  it("has types of its own and printable schemas", () => {
    const types = [name, definition.answerType, definition.progressType, definition.cancelType].filter(
      (type) => type !== undefined,
    );
    expect(new Set(types).size).toBe(types.length);
    for (const type of types) expect(type).toMatch(/^[a-z][a-z0-9_]*$/);
    for (const schema of [definition.ask, definition.answer])
      expect(jsonSchema(schema as z.ZodType, "output").type).toBe("object");
    for (const text of [definition.misfitMessage, definition.disconnectMessage]) expect(text).toMatch(/^[A-Z].*[^.]$/);
  });

  it("takes answers and cancels by id; answers to nothing are ignored", async () => {
    const after = daemon.frames.length;
    daemon.send({ type: definition.answerType, id: `${definition.idPrefix}_999`, result: { content: [] }, content: "x" });
    if (definition.progressType !== undefined) {
      daemon.send({ type: definition.progressType, id: `${definition.idPrefix}_999`, partialResult: { content: [] } });
    }
    await daemon.ask("abort");
    expect(daemon.frames.slice(after).filter((frame) => frame.type === "response")).toHaveLength(1);
  });
});

describe("slash commands", () => {
  it("have names that can be typed, a description, and no name or alias twice", async () => {
    const taken = new Map<string, string>();
    const entries = daemon.daemon.kernel.registry.list("slash command").map((entry) => entry.definition);
    expect(entries.length).toBeGreaterThan(5);
    for (const each of entries) {
      expect(each.name).toMatch(/^[a-z][a-z0-9-]*(:[a-z0-9._-]+)?$/);
      expect(each.description, each.name).toMatch(/^[A-Z].{5}/);
      for (const name of [each.name, ...(each.aliases ?? [])]) {
        expect(taken.get(name), name).toBeUndefined();
        taken.set(name, each.name);
      }
    }
    const { commands } = (await daemon.ask("get_available_commands")) as { commands: unknown[] };
    expect(commands).toHaveLength(entries.length);
    for (const command of commands) expect(SlashEntry.safeParse(command).error?.issues ?? []).toEqual([]);
  });
});

describe.each(named("setting"))("setting $name", ({ name, definition }) => {
  it("has defaults that fit its schema, and a name no other has", () => {
    expect(name).toMatch(/^[a-z][A-Za-z0-9]*(\.[a-z][A-Za-z0-9]*)*$/);
    expect(definition.summary).toMatch(/^[A-Z].{5}/);
    if (definition.default !== undefined) expect(definition.schema.safeParse(definition.default).error?.issues ?? []).toEqual([]);
    if (definition.hostDefault !== undefined) {
      expect(definition.schema.safeParse(definition.hostDefault).error?.issues ?? []).toEqual([]);
    }
    const others = collect("setting").filter((each) => each.definition !== definition);
    for (const other of others) {
      expect(other.definition.name).not.toBe(name);
      for (const alias of definition.aliases ?? [])
        expect([other.definition.name, ...(other.definition.aliases ?? [])]).not.toContain(alias);
    }
  });
});

describe("files", () => {
  it("a module that is one tool, frame or UI method has its name", () => {
    const kinds = new Set(["tool", "event", "ui", "host request"]);
    for (const { path, fileName, definitions } of modules) {
      const [only, ...more] = definitions.filter((each) => kinds.has(each.kind));
      if (only === undefined || more.length > 0 || definitions.some((each) => each.kind === "command")) continue;
      if (definitions.length === 1 || only.kind === "tool") expect(fileName, path).toBe(kebab(only.name));
    }
  });
});
