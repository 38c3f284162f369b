import { chainSlot } from "./_state.ts";

export default chainSlot;
