import { guardSlot } from "./_state.ts";

export default guardSlot;
