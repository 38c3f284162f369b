// The skills of the daemon as they stand on disk.
import type { Skill } from "mortise/extension";
import { type SkillFolder, scanSkills } from "./_scan.ts";

export class SkillStore {
  readonly #folders: () => readonly SkillFolder[];
  readonly #warn: (message: string) => void;
  #skills: readonly Skill[] = [];
  #listing = "[]";
  #watched: readonly string[];

  /** @param folders asked at each scan. */
  constructor(folders: () => readonly SkillFolder[], warn: (message: string) => void) {
    this.#folders = folders;
    this.#warn = warn;
    this.#watched = folders().map(({ path }) => path);
  }

  /** Folders whose changes matter as of the last scan. */
  get watched(): readonly string[] {
    return this.#watched;
  }

  list(): readonly Skill[] {
    return this.#skills;
  }

  find(name: string): Skill | undefined {
    return this.#skills.find((skill) => skill.name === name);
  }

  /** Reads the folders; true when a name, description or place changed. */
  async scan(): Promise<boolean> {
    const { skills, watch } = await scanSkills(this.#folders(), this.#warn);
    this.#watched = watch;
    const listing = JSON.stringify(skills);
    if (listing === this.#listing) return false;
    this.#listing = listing;
    this.#skills = skills;
    return true;
  }
}
