// Session names: what is stored is safe to print, log and put into a title.
import { CommandError } from "../kernel/errors.ts";

const MAX_NAME_LENGTH = 500;
/** Terminal sequences, then whatever other control characters there are. */
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-_])/g;
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g;

/** Without control characters and outer blanks. @throws {CommandError} when nothing is left (protocol-facts §1.9). */
export function cleanName(name: string): string {
  const clean = name
    .replace(ESCAPES, "")
    .replace(CONTROLS, " ")
    .replace(/\p{Surrogate}/gu, "\uFFFD")
    .trim();
  if (clean === "") throw new CommandError("Session name cannot be empty", "invalid_params");
  return clean.length <= MAX_NAME_LENGTH ? clean : [...clean].slice(0, MAX_NAME_LENGTH).join("").trim();
}

/** Who gave a name; a name of the user's is never replaced by an automatic one. */
export type NameSource = "user" | "auto";
