// The connections of all providers, and how long they may stay silent.
import { defineService, Transport } from "mortise/extension";
import { idleSetting } from "./_exchange.ts";
import { createTransport } from "./_transport.ts";

export default [idleSetting, defineService(Transport, { create: createTransport })];
