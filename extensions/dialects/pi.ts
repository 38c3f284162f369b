import { defineFamily } from "./_family.ts";
import { PI } from "./_traits.ts";

// Last, because it also answers for factories that import nothing and name no family.
export default defineFamily(PI, "Extensions written for pi: a default-exported function that gets the pi object.", 100);
