// A service that refuses a choice of tools is asked once more without it.
import type { ProviderError } from "../kernel/errors.ts";
import type { ToolChoice } from "./provider.ts";

const refusals = /tool[ _-]?choice|forc(?:es?|ed|ing) tool|function[ _]?calling[ _]?config/i;

/** True when the answer was to call a tool, or none, and the service takes no such order. */
export function refusesChoice(error: ProviderError | undefined, choice: ToolChoice | undefined): boolean {
  if (choice === undefined || choice === "auto") return false;
  return error?.kind === "fatal" && refusals.test(error.message);
}
