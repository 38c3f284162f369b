// public-bugs 22: in whatever way a file is saved, the last version answers within a second, and a tool that the model calls every
// 20 ms meanwhile is never unknown and never fails.
import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { BIN, type DaemonProcess } from "../support/process.ts";
import { ask, type Service, SOAK, sleep, textOf, useProcesses, wait } from "./_support.ts";

const { start, service, later } = useProcesses();

const SAVES = SOAK ? 20 : 4;
/** Between two saves; the storm afterwards makes as many, 10 ms apart. */
const GAP_MS = SOAK ? 300 : 60;
const CALL_EVERY_MS = 20;
const ANSWERS_WITHIN_MS = 1000;
/** A file that stays unfinished that long counts as saved. */
const SAVE_GRACE_MS = 150;
const NOBODY = 65_534;

/** Three digits, so that versions differ in nothing but their bytes. */
const version = (n: number) => `import { defineTool, z } from "mortise/extension";
export default defineTool({ name: "ver", description: "Tells its version", params: z.object({ call: z.number() }), run: () => "${String(n).padStart(3, "0")}" });
`;

interface Style {
  /** What lies in the home before the daemon starts; version 0. */
  prepare?(home: string): void;
  save(home: string, n: number): void | Promise<void>;
  /** Run the daemon as somebody who may not read everything. */
  unprivileged?: boolean;
}

const FILE = "extensions/x.ts";
function put(home: string, path: string, text: string): string {
  const file = join(home, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

const inPlace = (path: string) => (home: string, n: number) => writeFileSync(join(home, path), version(n));
const viaRename = (path: string, temporary: string) => (home: string, n: number) =>
  renameSync(put(home, temporary, version(n)), join(home, path));

const backupStyle = (home: string, n: number) => {
  const file = join(home, FILE);
  renameSync(file, `${file}~`);
  writeFileSync(file, version(n));
  unlinkSync(`${file}~`);
};

const inFolder = (home: string, folder: string, n: number) => {
  put(home, `${folder}/lib/v.ts`, version(n));
  put(home, `${folder}/index.ts`, 'export { default } from "./lib/v.ts";\n');
};

/** As `ln -sfn`: for a moment there is no link. */
const pointTo = (home: string, n: number) => {
  put(home, `src/x${n}.ts`, version(n));
  rmSync(join(home, FILE), { force: true });
  symlinkSync(`../src/x${n}.ts`, join(home, FILE));
};

const STYLES: Readonly<Record<string, Style>> = {
  "a: overwritten in place": { save: inPlace(FILE) },
  "b: written beside and renamed over": { save: viaRename(FILE, `${FILE}.tmp`) },
  "c: moved to a backup, written new, backup deleted": { save: backupStyle },
  "d: as vim does, with a probe and a swap file": {
    save(home, n) {
      const swap = put(home, "extensions/.x.ts.swp", "swap");
      unlinkSync(put(home, "extensions/4913", ""));
      backupStyle(home, n);
      unlinkSync(swap);
    },
  },
  "e: truncated, a pause, written in two halves": {
    async save(home, n) {
      const file = put(home, FILE, "");
      await sleep(80);
      const text = version(n);
      appendFileSync(file, text.slice(0, text.length / 2));
      await sleep(5);
      appendFileSync(file, text.slice(text.length / 2));
    },
  },
  "f: a symbolic link whose target is replaced by rename": {
    prepare(home) {
      put(home, "src/x.ts", version(0));
      mkdirSync(join(home, "extensions"));
      symlinkSync("../src/x.ts", join(home, FILE));
    },
    save: viaRename("src/x.ts", "src/x.ts.tmp"),
  },
  "g: the symbolic link itself pointed elsewhere": {
    prepare(home) {
      mkdirSync(join(home, "extensions"));
      pointTo(home, 0);
    },
    save: pointTo,
  },
  "h: the whole folder swapped by rename": {
    prepare: (home) => inFolder(home, "extensions/pkg", 0),
    save(home, n) {
      inFolder(home, `build${n}`, n);
      renameSync(join(home, "extensions/pkg"), join(home, `old${n}`));
      renameSync(join(home, `build${n}`), join(home, "extensions/pkg"));
    },
  },
  "i: a linked folder with an entry in its package.json": {
    prepare(home) {
      put(home, "src/pkg/package.json", '{"mortise": "./main.ts"}\n');
      put(home, "src/pkg/main.ts", version(0));
      mkdirSync(join(home, "extensions"));
      symlinkSync("../src/pkg", join(home, "extensions/pkg"));
    },
    save: inPlace("src/pkg/main.ts"),
  },
  "j: same size and same time, in place": {
    save(home, n) {
      const file = join(home, FILE);
      const { atime, mtime } = statSync(file);
      writeFileSync(file, version(n));
      utimesSync(file, atime, mtime);
    },
  },
  "j: same size and same time, by rename": {
    save(home, n) {
      const { atime, mtime } = statSync(join(home, FILE));
      const fresh = put(home, `${FILE}.tmp`, version(n));
      utimesSync(fresh, atime, mtime);
      renameSync(fresh, join(home, FILE));
    },
  },
  "k: made unreadable, then readable": {
    unprivileged: true,
    async save(home, n) {
      const file = join(home, FILE);
      chmodSync(file, 0o000);
      await sleep(10);
      // Whoever may write it for its owner: root here, the owner itself elsewhere.
      if (process.getuid?.() !== 0) chmodSync(file, 0o200);
      writeFileSync(file, version(n));
      await sleep(10);
      chmodSync(file, 0o644);
    },
  },
};

/** The command that runs the daemon as nobody; undefined when it runs as an ordinary user anyway. */
function asNobody(home: string): readonly [string, ...string[]] | undefined {
  if (process.getuid?.() !== 0) return undefined;
  for (const path of ["", ...readdirSync(home, { recursive: true, encoding: "utf8" })])
    chownSync(join(home, path), NOBODY, NOBODY);
  return ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups", process.execPath, BIN];
}
const canDropRights = process.getuid?.() !== 0 || spawnSync("setpriv", ["--version"]).status === 0;

function begin(style: Style, fake: Service): DaemonProcess {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "mortise-saves-")));
  later(() => rmSync(home, { recursive: true, force: true }));
  if (style.prepare) style.prepare(home);
  else put(home, FILE, version(0));
  mkdirSync(join(home, "work"));
  const command = style.unprivileged ? asNobody(home) : undefined;
  return start({ ...fake.daemon, home, ...(command === undefined ? {} : { command }) });
}

interface Caller {
  /** The longest time between two calls since it was last asked: 20 ms, unless the machine is busy. */
  slowest(): number;
  stop(): void;
}

/** A model that calls `ver` every 20 ms until it is told to stop. */
function caller(fake: Service): Caller {
  let calls = 0;
  let last = performance.now();
  let slowest = 0;
  let due = 0;
  let stopped = false;
  fake.otherwise(async () => {
    const now = performance.now();
    slowest = Math.max(slowest, now - last);
    last = now;
    due = Math.max(now, due + CALL_EVERY_MS);
    await sleep(due - now);
    if (stopped) return { text: "Enough" };
    return { toolCalls: [{ name: "ver", arguments: { call: ++calls } }] };
  });
  return {
    slowest() {
      const told = slowest;
      slowest = 0;
      return told;
    },
    stop() {
      stopped = true;
    },
  };
}

/** Waits until a call is answered by version `n`; gives how long it took. */
async function answeredBy(daemon: DaemonProcess, n: number): Promise<number> {
  const began = performance.now();
  const told = String(n).padStart(3, "0");
  await daemon.next((frame) => frame.type === "tool_execution_end" && textOf(frame["result"]).trim() === told, {
    after: Math.max(0, daemon.frames.length - 20),
    timeoutMs: 10_000,
  });
  return performance.now() - began;
}

it.for(Object.entries(STYLES).filter(([, style]) => !style.unprivileged || canDropRights))(
  `%s: ${SAVES} saves and a storm, while the model calls the tool every 20 ms (case 22)`,
  async ([, style]) => {
    const fake = await service();
    const daemon = begin(style, fake);
    const model = caller(fake);
    daemon.send({ id: "p", type: "prompt", message: "go" });
    await answeredBy(daemon, 0);

    let longestSave = 0;
    const save = async (n: number) => {
      const began = performance.now();
      await style.save(daemon.home, n);
      longestSave = Math.max(longestSave, performance.now() - began);
    };
    const answersInTime = async (n: number) => {
      model.slowest();
      const took = await answeredBy(daemon, n);
      // A call that began before the second was over may still be answered by an older version.
      expect(took, `version ${n}`).toBeLessThan(ANSWERS_WITHIN_MS + 2 * model.slowest());
    };
    for (let n = 1; n <= SAVES; n++) {
      await save(n);
      await answersInTime(n);
      await sleep(GAP_MS);
    }
    for (let n = SAVES + 1; n <= 2 * SAVES; n++) {
      await save(n);
      await sleep(10);
    }
    await answersInTime(2 * SAVES);
    model.stop();
    await wait(daemon, "agent_end", 0);

    const told = daemon.frames.filter((frame) => frame.type === "tool_execution_end");
    expect(told.filter((frame) => frame["isError"] !== false)).toEqual([]);
    const versions = told.map((frame) => Number(textOf(frame["result"])));
    expect(versions).toEqual(versions.toSorted((a, b) => a - b));
    expect(versions.length).toBeGreaterThan(4 * SAVES);
    // A busy machine may stretch a save until its first half looks finished.
    if (longestSave < SAVE_GRACE_MS) expect(daemon.frames.filter((frame) => frame.type === "extension_error")).toEqual([]);
    expect(fake.requests.map((request) => request.refusal).filter(Boolean)).toEqual([]);
    expect(await daemon.end()).toBe(0);
  },
);

/** How often the unit was loaded so far. */
async function generation(daemon: DaemonProcess): Promise<number> {
  const { extensions } = (await ask(daemon, "get_extensions")) as { extensions: { path?: string; generation: number }[] };
  return extensions.find((unit) => unit.path?.endsWith("x.ts"))?.generation ?? 0;
}

/** Directories and files the process watches, as the system counts them. */
function inotifyWatches(pid: number | undefined): number {
  const folder = `/proc/${pid}/fdinfo`;
  let count = 0;
  for (const fd of readdirSync(folder)) {
    try {
      count += readFileSync(join(folder, fd), "utf8").match(/^inotify wd:/gm)?.length ?? 0;
    } catch {
      // It was closed while we looked.
    }
  }
  return count;
}

it.runIf(process.platform === "linux")(
  "leftovers of editors reload nothing, a storm is a few reloads, and 200 rename saves take no further watch (case 22)",
  async () => {
    const daemon = start({ files: { [FILE]: version(0) } });
    const untilTold = async (n: number) => {
      const told = String(n).padStart(3, "0");
      for (let call = 0; ; call++) {
        const after = daemon.frames.length;
        daemon.send({ type: "prompt", message: `call ver {"call": ${call}}` });
        const end = await wait(daemon, "tool_execution_end", after);
        await wait(daemon, "agent_end", after);
        if (textOf(end["result"]) === told) return;
        if (call > 200) throw new Error(`Version ${n} never answered`);
      }
    };
    // The first reload shows that edits are followed.
    await ask(daemon, "get_state");
    await sleep(300);
    daemon.write(FILE, version(1));
    await untilTold(1);
    const loaded = await generation(daemon);
    for (const name of [".x.ts.swp", "x.ts~", "4913", "x.ts.tmp", "y.ts.swp", "#x.ts#"]) {
      unlinkSync(daemon.write(`extensions/${name}`, version(99)));
    }
    await sleep(400);
    expect(await generation(daemon)).toBe(loaded);

    const watches = inotifyWatches(daemon.child.pid);
    expect(watches).toBeGreaterThan(0);
    const rename = viaRename(FILE, `${FILE}.tmp`);
    for (let n = 2; n <= 21; n++) {
      rename(daemon.home, n);
      await sleep(10);
    }
    await untilTold(21);
    expect(await generation(daemon)).toBeLessThan(loaded + 12);

    for (let n = 101; n <= 300; n++) {
      rename(daemon.home, n);
      await sleep(5);
    }
    await untilTold(300);
    expect(inotifyWatches(daemon.child.pid)).toBe(watches);
    expect(daemon.frames.filter((frame) => frame.type === "extension_error")).toEqual([]);
    expect(await daemon.end()).toBe(0);
  },
);

it.runIf(canDropRights).each(["x.ts", "_required.cjs"])(
  "k: %s unreadable for longer than a save takes is told once, the old version answers, and its return is seen (case 22)",
  async (name) => {
    const files = (n: number): Record<string, string> => ({
      [FILE]: `const helper = require("./_required.cjs");\n${version(n).replace("run: () => ", "run: () => helper + ")}`,
      "extensions/_required.cjs": `module.exports = "helper ${n} ";\n`,
    });
    const fake = await service();
    const prepare = (home: string) => {
      for (const [path, text] of Object.entries(files(0))) put(home, path, text);
    };
    const daemon = begin({ prepare, save: () => {}, unprivileged: true }, fake);
    const model = caller(fake);
    daemon.send({ id: "p", type: "prompt", message: "go" });
    const answered = (text: string) =>
      daemon.next((frame) => frame.type === "tool_execution_end" && textOf(frame["result"]).startsWith(text), { after: 0 });
    await answered("helper 0 000");

    const file = join(daemon.home, "extensions", name);
    chmodSync(file, 0o000);
    const error = await daemon.next("extension_error", { after: 0 });
    expect(error).toMatchObject({ event: "load", error: expect.stringContaining(`EACCES`) });
    expect(String(error["error"])).toContain(name);
    await sleep(600);
    expect(daemon.frames.filter((frame) => frame.type === "extension_error")).toHaveLength(1);
    writeFileSync(file, files(1)[`extensions/${name}`] ?? "");
    chmodSync(file, 0o644);
    await answered(name === "x.ts" ? "helper 0 001" : "helper 1 000");
    model.stop();
    await wait(daemon, "agent_end", 0);
    const failed = daemon.frames.filter((frame) => frame.type === "tool_execution_end" && frame["isError"] !== false);
    expect(failed).toEqual([]);
    expect(await daemon.end()).toBe(0);
  },
);
