// What the two extensions of this folder share: the name of a service and its type. A file whose name starts with `_` is a helper,
// never an extension. Two tokens of one name are the same service, so each side may also declare it for itself.
import { createToken } from "mortise/extension";

export interface Words {
  all(): readonly string[];
}

export const Words = createToken<Words>("words");
