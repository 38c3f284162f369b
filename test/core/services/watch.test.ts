import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { watchPaths } from "mortise/extension";
import { expect, test } from "vitest";

test("a folder that is removed and made anew at once is followed on", async () => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "mortise-watch-")));
  const folder = join(base, "d");
  mkdirSync(folder);
  let changes = 0;
  const watch = watchPaths([join(folder, "config.yml")], () => changes++, { debounceMs: 5 });
  const changed = async (act: () => void) => {
    const before = changes;
    act();
    for (let round = 0; changes === before && round < 400; round++) await sleep(5);
    expect(changes).toBeGreaterThan(before);
    await sleep(50);
  };
  try {
    for (let round = 0; round < 3; round++) {
      await changed(() => writeFileSync(join(folder, "config.yml"), String(round)));
      await changed(() => {
        rmSync(folder, { recursive: true });
        mkdirSync(folder);
      });
    }
  } finally {
    watch.close();
    rmSync(base, { recursive: true });
  }
});
