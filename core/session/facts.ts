// What is worked out of a message once and asked for often. It rides on the object as a private field: nobody sees it, no copy
// takes it along, and a session of ten thousands of messages pays less for it than for a weak table.
import type { AgentMessage, AssistantMessage, ToolResultMessage, UserMessage } from "../../protocol/message.ts";

/** Undefined stands for "not worked out yet", null for "there is none". */
export interface Facts {
  /** The message in context that a stored one stands for. */
  message: AgentMessage | null | undefined;
  /** Its size, roughly. */
  tokens: number | undefined;
  /** What a provider gets of it. */
  form: UserMessage | AssistantMessage | ToolResultMessage | null | undefined;
}

/** A constructor that gives back what it is given, so that the fields of a class below it are put on that. */
const Given = function given(object: object) {
  return object;
} as unknown as new (
  object: object,
) => object;

class Bearer extends Given {
  readonly #facts: Facts = { message: undefined, tokens: undefined, form: undefined };

  static factsOf(object: object): Facts {
    return #facts in object ? object.#facts : new Bearer(object).#facts;
  }
}

/** The facts of a message, or of an entry that becomes one; by identity, so neither may change afterwards. */
export function factsOf(object: object): Facts {
  return Bearer.factsOf(object);
}
