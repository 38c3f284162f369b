// The configuration files behind the layers, their last good content, and when they change.
import { join, resolve } from "node:path";
import { errorMessage, type PathWatch, SettingsFileError, watchPaths } from "mortise/extension";
import type { Data } from "./_data.ts";
import { isStream, parseText, readText } from "./_file.ts";

/** What is known of a file. */
interface State {
  /** Last good content. */
  data: Data;
  text: string | undefined;
  /** Why the file as it is now is not used. */
  error: SettingsFileError | undefined;
  /** What was read cannot be read again. */
  once: boolean;
}

export interface Source extends State {
  readonly layer: "user" | "project" | "overlay";
  readonly file: string;
}

/** A file that vanished or became empty is believed after this long: editors save in two steps. */
const SETTLE_MS = 150;

export class Sources {
  /** Lowest layer first. */
  readonly list: readonly Source[];
  #watch: PathWatch | undefined;
  #settle: NodeJS.Timeout | undefined;
  #onChange: (apply: () => void) => void = (apply) => apply();
  #reading: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(home: string, cwd: string, overlays: readonly string[]) {
    const source = (layer: Source["layer"], file: string): Source => ({
      layer,
      file,
      data: {},
      text: undefined,
      error: undefined,
      once: false,
    });
    const user = source("user", join(home, "config.yml"));
    const project = source("project", join(cwd, ".mortise", "config.yml"));
    this.list = [
      user,
      // A daemon started in the home directory has one file, not two.
      ...(project.file === user.file ? [] : [project]),
      ...overlays.map((file) => source("overlay", resolve(cwd, file))),
    ];
  }

  /** Reads everything for the first time. Never rejects; failures stand in `error`. */
  load(): Promise<void> {
    return this.#read(true);
  }

  /** From now on `onChange` is called for every change; the new content holds once it called `apply`. */
  watch(onChange: (apply: () => void) => void): void {
    this.#onChange = onChange;
    this.#watch = watchPaths(
      this.list.map((source) => source.file),
      () => void this.#read(false),
    );
    // Edits between `load` and now.
    void this.#read(false);
  }

  /** Reads again now; resolves when the changes were told. */
  reload(): Promise<void> {
    return this.#read(true);
  }

  close(): void {
    this.#closed = true;
    this.#watch?.close();
    clearTimeout(this.#settle);
  }

  /** One reading at a time; each starts after the change that asked for it. */
  #read(settled: boolean): Promise<void> {
    // Whatever went wrong the time before was told then.
    this.#reading = this.#reading.catch(() => {}).then(() => this.#readNow(settled));
    return this.#reading;
  }

  async #readNow(settled: boolean): Promise<void> {
    const changes = await Promise.all(this.list.map((source) => changeOf(source, settled)));
    if (this.#closed) return;
    clearTimeout(this.#settle);
    if (changes.includes("unsettled")) {
      this.#settle = setTimeout(() => void this.#read(true), SETTLE_MS);
      this.#settle.unref();
    }
    const applicable = changes.filter((change) => typeof change === "object");
    if (applicable.length === 0) return;
    this.#onChange(() => {
      for (const { source, state } of applicable) Object.assign(source, state);
    });
  }
}

type Change = "same" | "unsettled" | { source: Source; state: Partial<State> };

/** What became of a file since it was last read. */
async function changeOf(source: Source, settled: boolean): Promise<Change> {
  if (source.once) return "same";
  try {
    const once = await isStream(source.file);
    const text = await readText(source.file);
    const missingOverlay = text === undefined && source.layer === "overlay";
    if (text === source.text && source.error === undefined && !missingOverlay) return "same";
    const gone = text === undefined || text.trim() === "";
    if (gone && !settled && source.text !== undefined) return "unsettled";
    if (missingOverlay) {
      throw new SettingsFileError(source.file, `Cannot use settings file "${source.file}": it does not exist`);
    }
    const data = text === undefined ? {} : await parseText(source.file, text);
    return { source, state: { data, text, error: undefined, once } };
  } catch (error) {
    const problem = SettingsFileError.is(error)
      ? error
      : new SettingsFileError(source.file, `Cannot use settings file "${source.file}": ${errorMessage(error)}`, { cause: error });
    return source.error?.message === problem.message ? "same" : { source, state: { error: problem } };
  }
}
