import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { catalogueUnits, renderCatalogue } from "../core/loader/catalogue.ts";
import { generated } from "../docs/generate.ts";
import { root } from "../docs/root.ts";

describe("Generated files", () => {
  it("are as the definitions say (else: npm run docs)", async () => {
    for (const [path, text] of await generated()) expect(readFileSync(join(root, path), "utf8"), path).toBe(text);
  });

  it("list every tracked built-in", () => {
    const tracked = execFileSync("git", ["ls-files", "extensions", "builtin-tools"], { cwd: root, encoding: "utf8" });
    const expected = renderCatalogue(catalogueUnits(tracked.split("\n").filter(Boolean)));
    expect(readFileSync(join(root, "core/loader/builtins.generated.ts"), "utf8")).toBe(expected);
  });
});
