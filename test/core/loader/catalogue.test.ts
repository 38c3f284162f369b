import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { catalogueUnits, renderCatalogue } from "../../../core/loader/catalogue.ts";

const repository = fileURLToPath(new URL("../../../", import.meta.url));

test("folders are units, tools are units of one file, helpers and tests are none", () => {
  const units = catalogueUnits([
    "extensions/models/set-model.ts",
    "extensions/models/_catalogue.ts",
    "extensions/models/data.json",
    "extensions/models/deep/never.ts",
    "extensions/loose.ts",
    "extensions/_draft/x.ts",
    "extensions/models/cycle-model.ts",
    "builtin-tools/read.ts",
    "builtin-tools/_path.ts",
    "builtin-tools/read.test.ts",
  ]);
  expect(units).toEqual([
    {
      id: "builtin:models",
      name: "models",
      sources: "extensions/models",
      modules: ["extensions/models/cycle-model.ts", "extensions/models/set-model.ts"],
    },
    { id: "builtin:tool/read", name: "read", sources: "builtin-tools/read.ts", modules: ["builtin-tools/read.ts"] },
  ]);
  const text = renderCatalogue(units);
  expect(text).toContain('import m0 from "../../builtin-tools/read.ts";');
  expect(text).toContain('{ id: "builtin:models", name: "models", sources: "extensions/models", definitions: () => [m1, m2] },');
});

test("the committed catalogue is not stale; `npm run docs` brings it up to date", () => {
  const arguments_ = ["ls-files", "--cached", "--others", "--exclude-standard", "extensions", "builtin-tools"];
  const listed = execFileSync("git", arguments_, { cwd: repository, encoding: "utf8" });
  const files = listed.split("\n").filter((file) => file !== "" && existsSync(new URL(file, `file://${repository}`)));
  const committed = readFileSync(new URL("core/loader/builtins.generated.ts", `file://${repository}`), "utf8");
  expect(committed).toBe(renderCatalogue(catalogueUnits(files)));
});
