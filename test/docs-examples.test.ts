// docs/extensions.md says nothing that is not so: its code is compiled and run, its tables are derived, its names exist.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineExtension, defineTool, type SetupScope, type ToolContext, z } from "mortise/extension";
import { startDaemon } from "mortise/testing";
import { describe, expect, it } from "vitest";
import * as door from "../core/extension.ts";
import { extensionsPage } from "../docs/extensions-page.ts";
import { root } from "../docs/root.ts";

const page = readFileSync(join(root, "docs/extensions.md"), "utf8");
const included = [...page.matchAll(/<!-- include (\S+) -->/g)].map((match) => match[1] ?? "");
/** The page without its code. */
const prose = page.replaceAll(/```[\s\S]*?```/g, "");

describe("docs/extensions.md", () => {
  it("is as its sources say (else: npm run docs)", () => {
    expect(extensionsPage(page)).toBe(page);
  });

  it("holds no code that is not a file of the examples", () => {
    const written = page.replaceAll(/<!-- include \S+ -->[\s\S]*?<!-- end include -->/g, "");
    const fences = [...written.matchAll(/```(\w*)\n/g)].map((match) => match[1]);
    expect(fences.filter((language) => language !== "sh" && language !== "")).toEqual([]);
    for (const path of included) expect(path, path).toMatch(/^test\/examples\/[\w./-]+\.(ts|json|yml)$/);
  });

  it("shows examples that a test runs", () => {
    const tests = ["test/examples/examples.test.ts", "test/extensions/dialects/examples.test.ts"].map((path) =>
      readFileSync(join(root, path), "utf8"),
    );
    for (const path of included) {
      if (path.endsWith(".test.ts")) continue;
      const name = path.replace(/^test\/examples\/(pi\/)?/, "").replace(/(\/.*|\.\w+)$/, "");
      expect(
        tests.some((text) => text.includes(`it("${name}: `)),
        path,
      ).toBe(true);
    }
  });

  it("shows shell lines that do what they say", async () => {
    const line = /^\{"type": "prompt".*\}$/m.exec(page)?.[0] ?? "";
    const daemon = await startDaemon({ options: { extension: [join(root, "test/examples/hello.ts")] } });
    try {
      daemon.send(line);
      const end = await daemon.next("tool_execution_end");
      expect(JSON.stringify(end["result"])).toContain("Hello, Ada!");
      await daemon.next("agent_end");
    } finally {
      await daemon.stop();
    }
  });

  it("names functions of the door, each for its kind", () => {
    const rows = [...page.matchAll(/^\| ([a-z ]+) \| `(\w+)` \|/gm)];
    expect(rows.length).toBeGreaterThan(15);
    for (const [, kind, made] of rows) {
      expect(door, made).toHaveProperty(made ?? "");
      const make = (door as Record<string, unknown>)[made ?? ""] as (...args: unknown[]) => { kind: string };
      const takesToken = made === "defineService" || made === "defineHook" || made === "overrideCommand";
      const made1 = takesToken
        ? make(made === "overrideCommand" ? "x" : { name: "x" }, {})
        : make({ name: "x", content: "skills", path: "/x" });
      expect(made1.kind).toBe(kind);
    }
  });

  it("lists every hook point of the door", () => {
    const points = Object.values(door).filter(
      (value): value is { name: string; combine: string } & typeof value =>
        typeof value === "object" && value !== null && "combine" in value && "summary" in value,
    );
    expect(points.length).toBeGreaterThan(20);
    for (const { name } of points) expect(page).toContain(`| \`${name}\` | `);
  });

  it("names members that exist", async () => {
    const seen: { ctx?: ToolContext; scope?: SetupScope } = {};
    const probe = defineExtension({
      name: "probe",
      setup: (scope) => {
        seen.scope = scope;
        scope.add(
          defineTool({
            name: "probe",
            description: "",
            params: z.object({}),
            run: (ctx) => {
              seen.ctx = ctx;
              return "";
            },
          }),
        );
      },
    });
    const daemon = await startDaemon({ extensions: { probe: [probe] } });
    try {
      await daemon.callTool("probe");
      const holders = { ctx: seen.ctx, scope: seen.scope, daemon, "ctx.conversation": seen.ctx?.conversation };
      for (const [name, holder] of Object.entries(holders)) {
        for (const [, member] of prose.matchAll(new RegExp(`\`${name.replace(".", "\\.")}\\.(\\w+)`, "g"))) {
          expect(member !== undefined && holder !== undefined && member in holder, `${name}.${member}`).toBe(true);
        }
      }
    } finally {
      await daemon.stop();
    }
  });

  it("has links that lead somewhere", () => {
    const headings = [...prose.matchAll(/^#+ (.*)$/gm)].map(([, text = ""]) =>
      text
        .toLowerCase()
        .replace(/[^\w\- ]/g, "")
        .replaceAll(" ", "-"),
    );
    for (const [, anchor] of prose.matchAll(/\]\(#([^)]+)\)/g)) expect(headings).toContain(anchor);
    for (const [, path = ""] of prose.matchAll(/\]\((?!#|https?:)([^)#]+)/g))
      expect(existsSync(join(root, "docs", path))).toBe(true);
  });
});
