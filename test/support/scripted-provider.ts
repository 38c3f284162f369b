// The scripted model service of the test kit, under the name that our own tests use.
export * from "../../core/testing/scripted-provider.ts";
