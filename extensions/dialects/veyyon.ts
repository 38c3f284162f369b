import { defineFamily } from "./_family.ts";
import { VEYYON } from "./_traits.ts";

export default defineFamily(VEYYON, "Extensions written for veyyon.", 20);
