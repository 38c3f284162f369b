import { Told, Turns } from "./_state.ts";

export default [Told, Turns];
