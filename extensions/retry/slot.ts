import { chainSlot, returnSlot } from "./_state.ts";

export default [chainSlot, returnSlot];
