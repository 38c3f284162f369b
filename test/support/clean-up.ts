// What helper modules undo after a test or a test file. They are evaluated once for many files, so hooks of their own would only
// serve the first one; setup.ts runs what is given here for each.
type Undo = () => unknown;

const ofTest: Undo[] = [];
const ofFile: Undo[] = [];

/** Runs after the test, last one first. */
export function afterTest(undo: Undo): void {
  ofTest.push(undo);
}

/** Runs after the test file, last one first. */
export function afterFile(undo: Undo): void {
  ofFile.push(undo);
}

/** Runs everything, also when some of it fails. @throws {Error} the first failure. */
async function run(undos: Undo[]): Promise<void> {
  const failures: unknown[] = [];
  for (const undo of undos.splice(0).reverse()) {
    try {
      await undo();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

export const endTest = (): Promise<void> => run(ofTest);
export const endFile = (): Promise<void> => run(ofFile);
