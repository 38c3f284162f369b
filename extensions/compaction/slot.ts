import { blankedSlot } from "./_blanking.ts";
import { guardSlot } from "./_state.ts";

export default [guardSlot, blankedSlot];
