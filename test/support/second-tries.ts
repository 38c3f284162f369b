// Names what passed only when it was run again, so that a second try never hides a test that fails now and then.
import type { Reporter, TestCase, TestModule } from "vitest/node";

/** Prints, after the run, every test that needed more than one try, with the first line of what went wrong. */
export class SecondTries implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const again = tests.filter((test) => test.diagnostic()?.flaky === true);
    if (again.length === 0) return;
    console.log(`\n${again.length} passed only when run again (docs/decisions/second-try.md):`);
    for (const test of again) console.log(`  ${test.module.relativeModuleId} > ${test.fullName}\n    ${reasonOf(test)}`);
  }
}

function reasonOf(test: TestCase): string {
  const message = test.result().errors?.[0]?.message ?? "The error was not kept";
  return message.split("\n", 1)[0] ?? message;
}
