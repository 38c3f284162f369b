// Skills: folders with instructions that the model reads when a task needs them. Implemented by extensions/skills.
import { createToken } from "../kernel/services.ts";

export interface Skill {
  /** What `/skill:name` and `skill://name` say. */
  readonly name: string;
  readonly description: string;
  /** Absolute path of its SKILL.md. */
  readonly file: string;
  /** Its folder; relative paths in the instructions start here. */
  readonly directory: string;
  readonly origin: "user" | "project" | "extension";
  /** Not told to the model; people can still ask for it. */
  readonly hidden: boolean;
}

export interface Skills {
  /** Sorted by name; the same array until something changes. */
  list(): readonly Skill[];
  find(name: string): Skill | undefined;
}

export const Skills = createToken<Skills>("skills");
